package memory

import (
	"fmt"
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
	db    *DB
	now   time.Time
	floor uint64           // the number before the first of a new place
	heads map[string]*head // by place key
	saved []uint64         // facts that were written
	voids map[string]bool  // buckets that were found empty, or not
}

// bucket is a bucket that notes what is changed in it, for the sake of compaction.
type bucket struct {
	*bbolt.Bucket
	db   *DB
	name string
}

// bucket returns one of the buckets, all of which exist since Open.
func (t *tx) bucket(name string) bucket {
	b := t.Bucket([]byte(name))
	if name != bucketPlaces && name != bucketMeta {
		b.FillPercent = fill
	}
	return bucket{b, t.db, name}
}

// Put is that of the bbolt.Bucket.
func (b bucket) Put(key, value []byte) error {
	b.changes(key)
	return b.Bucket.Put(key, value)
}

// Delete is that of the bbolt.Bucket.
func (b bucket) Delete(key []byte) error {
	b.changes(key)
	return b.Bucket.Delete(key)
}

func (b bucket) changes(key []byte) {
	if b.db.changed != nil {
		b.db.changed[pairKey{b.name, string(key)}] = true
	}
}

// void reports whether a bucket is empty. It looks once: whoever puts something
// into a bucket that is asked about calls filled.
func (t *tx) void(name string) bool {
	void, known := t.voids[name]
	if !known {
		k, _ := t.bucket(name).Cursor().First()
		if void = k == nil; t.voids == nil {
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
func (t *tx) finish() error {
	b := t.bucket(bucketPlaces)
	for place, h := range t.heads {
		if err := writeHead(b, []byte(place), *h); err != nil {
			return fmt.Errorf("head: %w", err)
		}
	}
	return nil
}

func writeHead(b bucket, place []byte, h head) error {
	if h == (head{}) {
		return b.Delete(place)
	}
	return b.Put(place, encodeHead(h))
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
func (t *tx) find(p place, id string) (seq uint64, known bool, err error) {
	value := t.bucket(bucketIDs).Get(idKey(p.ids, id))
	if value == nil {
		return 0, false, nil
	}
	seq, size := uvarint(string(value))
	if size <= 0 { // it is known; where it led is not
		t.db.odd(fmt.Errorf("id %q of %s: %w", id, p.path, errFields))
		return 0, true, nil
	}
	return seq + p.shift, true, nil
}

// place is where a path leads to.
type place struct {
	path  core.Path
	key   []byte
	ids   []byte // the key of the path before it was followed: its ids stay there
	shift uint64 // added to the numbers that were given under that path
}
