package memory

import (
	"bytes"
	"fmt"
	"iter"
	"time"

	"go.etcd.io/bbolt"

	"synthbot/core"
)

// Buckets of the file.
const (
	bucketMeta     = "meta"
	bucketPlaces   = "places"
	bucketLog      = "log"
	bucketIDs      = "ids"
	bucketDue      = "due"
	bucketJournal  = "journal"
	bucketAliases  = "aliases"
	bucketGone     = "gone"
	bucketStates   = "states"
	bucketPlugins  = "plugins"
	bucketUsage    = "usage"
	bucketFacts    = "facts"
	bucketWords    = "words"
	bucketVectors  = "vectors"
	bucketSketches = "sketches"
)

func buckets() []string {
	return []string{
		bucketMeta, bucketPlaces, bucketLog, bucketIDs, bucketDue, bucketJournal, bucketAliases, bucketGone,
		bucketStates, bucketPlugins, bucketUsage, bucketFacts, bucketWords, bucketVectors, bucketSketches,
	}
}

// fill is how far pages of buckets that grow at the ends of places are filled.
// The default of one half wants nearly twice the disk.
const fill = 0.9

// tx is one transaction. Heads that were touched stay in memory until the end.
type tx struct {
	*bbolt.Tx
	db      *DB
	now     time.Time
	floor   uint64           // the number before the first of a new place
	heads   map[string]*head // by place key
	saved   []uint64         // facts that were written
	changed changes          // see writer
	voids   map[string]bool  // buckets that were found empty, or not
	err     error            // the first one of writing: the transaction fails
}

// bucket is a bucket that notes what is changed in it, for the sake of compaction.
// What cannot be changed lets the transaction fail.
type bucket struct {
	*bbolt.Bucket
	t    *tx
	name string
}

// bucket returns one of the buckets, all of which exist since Open.
func (t *tx) bucket(name string) bucket {
	b := t.Bucket([]byte(name))
	if name != bucketPlaces && name != bucketMeta {
		b.FillPercent = fill
	}
	return bucket{b, t, name}
}

// Put is that of the bbolt.Bucket.
func (b bucket) Put(key, value []byte) {
	b.changes(key)
	b.t.fail(b.name, b.Bucket.Put(key, value))
}

// Delete is that of the bbolt.Bucket.
func (b bucket) Delete(key []byte) {
	b.changes(key)
	b.t.fail(b.name, b.Bucket.Delete(key))
}

func (b bucket) changes(key []byte) {
	if b.t.changed != nil {
		b.t.changed[pairKey{b.name, string(key)}] = true
	}
}

// fail lets the transaction fail if err is one.
func (t *tx) fail(bucket string, err error) {
	if t.err == nil && err != nil {
		t.err = fmt.Errorf("%s: %w", bucket, err)
	}
}

// void reports whether a bucket is empty. It looks once: code that
// fills a bucket that is asked about calls filled.
func (t *tx) void(name string) bool {
	void, known := t.voids[name]
	if !known {
		k, _ := t.bucket(name).Cursor().First()
		void = k == nil
		if t.voids == nil {
			t.voids = make(map[string]bool)
		}
		t.voids[name] = void
	}
	return void
}

func (t *tx) filled(name string) { delete(t.voids, name) }

// head returns the state of a place, to be changed in place: finish writes it.
func (t *tx) head(place []byte) *head {
	if h, ok := t.heads[string(place)]; ok {
		return h
	}
	h, _ := t.readHead(place)
	if t.heads == nil {
		t.heads = make(map[string]*head)
	}
	t.heads[string(place)] = &h
	return &h
}

func (t *tx) readHead(place []byte) (head, bool) {
	value := t.bucket(bucketPlaces).Get(place)
	if value == nil {
		return head{}, false
	}
	return t.headOf(place, value), true
}

// headOf reads a head; one that cannot be read is made anew.
func (t *tx) headOf(place, value []byte) head {
	h, err := decodeHead(value)
	if err != nil {
		t.db.odd(fmt.Errorf("places: %q: %w", place, err))
		return t.mendHead(place)
	}
	return h
}

// finish writes what was kept in memory, before the commit at the latest.
func (t *tx) finish() {
	for place, h := range t.heads {
		t.writeHead([]byte(place), *h)
	}
}

func (t *tx) writeHead(place []byte, h head) {
	b := t.bucket(bucketPlaces)
	if h == (head{}) {
		b.Delete(place)
	} else {
		b.Put(place, encodeHead(h))
	}
}

// line reads an entry; ok is false where there is none.
func (t *tx) line(p place, seq uint64) (l line, ok bool, err error) {
	value := t.bucket(bucketLog).Get(seqKey(p.key, seq))
	if value == nil {
		return line{}, false, nil
	}
	l, err = decodeLine(value, p.path, seq)
	return l, err == nil, err
}

// find looks a platform id up: its number, whether or not the entry is still
// there.
func (t *tx) find(p place, id string) (seq uint64, known bool) {
	value := t.bucket(bucketIDs).Get(idKey(p.ids, id))
	if value == nil {
		return 0, false
	}
	seq, size := uvarint(string(value))
	if size == 0 { // it is known; where it led is not
		t.db.odd(fmt.Errorf("id %q of %s: %w", id, p.path, errFields))
		return 0, true
	}
	return seq + p.shift, true
}

// places goes through the places at or below root, with their heads as they are stored.
func (t *tx) places(root core.Path) iter.Seq2[core.Path, []byte] {
	return func(yield func(core.Path, []byte) bool) {
		from, to := subtree(root)
		c := t.bucket(bucketPlaces).Cursor()
		for k, value := c.Seek(from); below(k, to); k, value = c.Next() {
			path, err := placeOf(k)
			if err != nil {
				t.db.odd(fmt.Errorf("%s: %w", bucketPlaces, err))
			} else if !yield(path, value) {
				return
			}
		}
	}
}

// placesIn lists the places of a bucket whose keys begin with them.
func (t *tx) placesIn(bucket string) (places []core.Path) {
	c := t.bucket(bucket).Cursor()
	for k, _ := c.First(); k != nil; {
		path, rest, err := cutPath(k)
		if err != nil {
			t.db.odd(fmt.Errorf("%s: %w", bucket, err))
			k, _ = c.Next()
			continue
		}
		places = append(places, path)
		k, _ = c.Seek(after(k[:len(k)-len(rest)]))
	}
	return places
}

// numbers goes through the numbers that a place has in the log or among what waits,
// from one on, with their values.
func (t *tx) numbers(bucket string, place []byte, from uint64) iter.Seq2[uint64, []byte] {
	return func(yield func(uint64, []byte) bool) {
		c := t.bucket(bucket).Cursor()
		for k, value := c.Seek(seqKey(place, from)); bytes.HasPrefix(k, place); k, value = c.Next() {
			if seq, ok := numberOf(k, place); ok && !yield(seq, value) {
				return
			}
		}
	}
}

// place is where a path leads to.
type place struct {
	path  core.Path
	key   []byte
	ids   []byte // the key of the path before it was followed: its ids stay there
	shift uint64 // added to the numbers that were given under that path
}
