package memory

import (
	"bytes"
	"fmt"
	"iter"
	"sync"
	"time"

	"synthbot/core"
	"synthbot/memory/kv"
)

// Buckets of the file.
const (
	bucketMeta     = "meta"
	bucketPlaces   = "places"
	bucketLog      = "log"
	bucketIDs      = "runs"
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
	// Documents, which can be indexed again.
	bucketDocuments    = "documents"
	bucketPassages     = "passages"
	bucketPassageWords = "passage words"
	// Older versions stored each id in its own pair. An upgrade drops the bucket.
	bucketFormerIDs = "ids"
)

func buckets() []string {
	return []string{
		bucketMeta, bucketPlaces, bucketLog, bucketIDs, bucketDue, bucketJournal, bucketAliases, bucketGone,
		bucketStates, bucketPlugins, bucketUsage, bucketFacts, bucketWords, bucketVectors, bucketSketches,
		bucketDocuments, bucketPassages, bucketPassageWords,
	}
}

// tx is one transaction. Changed heads stay in memory until the end.
type tx struct {
	kv.Tx
	db     *DB
	now    time.Time
	heads  map[string]*head // by place key
	saved  []uint64         // facts and passages that were written
	writes int              // pairs that were written or deleted
	err    error            // the first error of a write, which fails the transaction

	resolved place // result of the last resolve, until aliases change
}

func newTx(db *DB, b kv.Tx) tx { return tx{Tx: b, db: db, now: db.clock()} }

// bucket is a bucket of a transaction. A change that fails makes the transaction fail.
type bucket struct {
	kv.Bucket
	t    *tx
	name string
}

// bucket returns a bucket. Open has created all of them.
func (t *tx) bucket(name string) bucket { return bucket{t.Bucket(name), t, name} }

func (b bucket) Put(key, value []byte) { b.changed(b.Bucket.Put(key, value)) }

func (b bucket) Delete(key []byte) { b.changed(b.Bucket.Delete(key)) }

func (b bucket) changed(err error) {
	b.t.writes++
	if b.name == bucketAliases {
		b.t.resolved = place{}
	}
	b.t.fail(b.name, err)
}

// set stores a pair, or deletes the key if the value is empty.
func (b bucket) set(key, value []byte) {
	if len(value) == 0 {
		b.Delete(key)
	} else {
		b.Put(key, value)
	}
}

// pairs iterates over a range of keys, to exclusive; a nil to is the end. It may miss changes made meanwhile.
func (b bucket) pairs(from, to []byte) iter.Seq2[[]byte, []byte] {
	return func(yield func(k, v []byte) bool) {
		c := b.Cursor(from, to)
		for k, v := c.Seek(from); isBefore(k, to) && yield(k, v); k, v = c.Next() {
		}
	}
}

func (b bucket) prefixed(prefix []byte) iter.Seq2[[]byte, []byte] {
	return b.pairs(prefix, prefixEnd(prefix))
}

// prefixes lists the distinct beginnings of the keys in a range, up to and including the first terminator.
func (b bucket) prefixes(from, to []byte) (all [][]byte) {
	c := b.Cursor(from, to)
	for k, _ := c.Seek(from); isBefore(k, to); {
		end := bytes.IndexByte(k, terminator) + 1
		if end == 0 {
			k, _ = c.Next()
			continue
		}
		all = append(all, bytes.Clone(k[:end]))
		k, _ = c.Seek(prefixEnd(k[:end]))
	}
	return all
}

// decoded iterates over what a range of a bucket holds. It logs and leaves out the pairs that decode cannot read.
func decoded[T any](t *tx, bucket string, from, to []byte, decode func(k, v []byte) (T, error)) iter.Seq[T] {
	return func(yield func(T) bool) {
		for k, v := range t.bucket(bucket).pairs(from, to) {
			one, err := decode(k, v)
			if err != nil {
				t.db.logUnreadable(fmt.Errorf("%s: %w", bucket, err))
			} else if !yield(one) {
				return
			}
		}
	}
}

func (t *tx) fail(bucket string, err error) {
	if t.err == nil && err != nil {
		t.err = fmt.Errorf("%s: %w", bucket, err)
	}
}

// head returns the head of a place. The caller may modify it: writeHeads stores it.
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

// headOf decodes a head, or rebuilds it if it cannot be read.
func (t *tx) headOf(place, value []byte) head {
	h, err := decodeHead(value)
	if err != nil {
		t.db.logUnreadable(fmt.Errorf("places: %q: %w", place, err))
		return t.rebuiltHead(place)
	}
	return h
}

func (t *tx) finish() error {
	if !t.db.writer.inUse { // the first write stores that the file is in use, and its name
		t.bucket(bucketMeta).Delete([]byte(metaClean))
		t.bucket(bucketMeta).Put([]byte(metaName), []byte(t.db.engine.installation))
	}
	t.writeHeads()
	return t.err
}

func (t *tx) writeHeads() {
	for place, h := range t.heads {
		t.writeHead([]byte(place), *h)
	}
}

func (t *tx) writeHead(place []byte, h head) { t.bucket(bucketPlaces).set(place, encodeHead(h)) }

// entry reads an entry; ok is false if there is none, or if it cannot be read, which is logged.
func (t *tx) entry(p place, seq uint64) (l storedEntry, ok bool) {
	value := t.bucket(bucketLog).Get(seqKey(p.key, seq))
	if value == nil {
		return storedEntry{}, false
	}
	return t.readEntry(p.path, seq, value)
}

// headsBelow iterates over the places at or below root, with their stored heads.
func (t *tx) headsBelow(root core.Path) iter.Seq2[core.Path, head] {
	return func(yield func(core.Path, head) bool) {
		for k, value := range t.bucket(bucketPlaces).pairs(subtree(root)) {
			if path, err := parsePlace(k); err != nil {
				t.db.logUnreadable(fmt.Errorf("%s: %w", bucketPlaces, err))
			} else if !yield(path, t.headOf(k, value)) {
				return
			}
		}
	}
}

// placesIn lists the places at or below root that have keys in a bucket.
func (t *tx) placesIn(bucket string, root core.Path) (places []core.Path) {
	for _, key := range t.bucket(bucket).prefixes(subtree(root)) {
		path, err := parsePlace(key)
		if err != nil {
			t.db.logUnreadable(fmt.Errorf("%s: %w", bucket, err))
			continue
		}
		places = append(places, path)
	}
	return places
}

// numbers iterates over the numbers, from one on, that follow a place or another prefix in keys, and their values.
func (t *tx) numbers(bucket string, place []byte, from uint64) iter.Seq2[uint64, []byte] {
	return func(yield func(uint64, []byte) bool) {
		for k, value := range t.bucket(bucket).pairs(seqKey(place, from), prefixEnd(place)) {
			if seq, ok := parseSeq(k, place); ok && !yield(seq, value) {
				return
			}
		}
	}
}

// turns iterates over the turns in a range of the journal, with their records.
func (t *tx) turns(from, to []byte) iter.Seq2[core.TurnID, []record] {
	return func(yield func(core.TurnID, []record) bool) {
		var records []record
		for k, v := range t.bucket(bucketJournal).pairs(from, to) {
			key, err := parseJournalKey(k)
			if err != nil {
				t.db.logUnreadable(err)
				continue
			}
			if len(records) > 0 && key.Turn != records[0].key.Turn {
				if !yield(records[0].key.Turn, records) {
					return
				}
				records = nil
			}
			records = append(records, record{key, v})
		}
		if len(records) > 0 {
			yield(records[0].key.Turn, records)
		}
	}
}

func (t *tx) records(turn core.TurnID) (records []record) {
	from := turnKey(turn)
	for _, all := range t.turns(from, prefixEnd(from)) {
		records = all
	}
	return records
}

// place is the place to which a path leads.
type place struct {
	from  core.Path // the original path
	path  core.Path
	key   []byte
	ids   []byte // the key of the original path, where its ids stay
	shift uint64 // added to the numbers that were given under that path
}

const maxUnreadable = 1000

type unreadable struct {
	mu     sync.Mutex
	logged map[string]bool
}

// logUnreadable logs a record that cannot be read, once. Readers skip it: it must not block a place.
func (db *DB) logUnreadable(err error) {
	o := &db.unreadable
	o.mu.Lock()
	defer o.mu.Unlock()
	text := err.Error()
	if !o.logged[text] && len(o.logged) < maxUnreadable {
		o.logged[text] = true
		db.log.Error("an unreadable record is left out", "file", db.engine.name, "err", err)
	}
}

// dropDue removes an unreadable entry from those that wait for an answer. It does not wait for the transaction.
// The entry itself stays, so that a check finds it.
func (db *DB) dropDue(p place, seq uint64) {
	j := &job{done: make(chan error, 1), run: func(t *tx) error {
		key := seqKey(p.key, seq)
		value := t.bucket(bucketLog).Get(key)
		if _, err := decodeEntry(value, p.path, seq); value != nil && err == nil {
			return nil
		}
		t.bucket(bucketDue).Delete(key)
		return nil
	}}
	if db.queue.add(j) == nil {
		db.log.Error("an entry that waited for an answer cannot be read and is skipped", "path", p.path, "entry", seq)
	}
}

// readEntry decodes an entry; ok is false if it cannot be read, which is logged.
func (t *tx) readEntry(path core.Path, seq uint64, value []byte) (l storedEntry, ok bool) {
	l, err := decodeEntry(value, path, seq)
	if err != nil {
		t.db.logUnreadable(fmt.Errorf("log: %w", err))
	}
	return l, err == nil
}

// readRecord decodes a record of the journal. If it is unreadable, a step or a part has an unknown outcome;
// another record is skipped, and the turn writes it again.
func (t *tx) readRecord(key core.Key, value []byte) (w storedRecord, ok bool) {
	w, err := decodeRecord(value)
	if err == nil {
		return w, true
	}
	t.db.logUnreadable(fmt.Errorf("journal: %s, round %d, step %d, part %d: %w", key.Turn, key.Round, key.Step,
		key.Part, err))
	return storedRecord{Progress: core.ProgressUnknown}, key.Step > 0
}

// isPrivate reports whether an entry is private, as far as it can be read.
func isPrivate(value []byte) bool {
	var l storedEntry
	var c codec
	_ = c.read(value, func() { l.fields(&c) })
	return l.Message.Private
}

func (t *tx) rebuiltHead(place []byte) head {
	var h head
	var newest []byte
	for seq, value := range t.numbers(bucketLog, place, 0) {
		h.last, newest = seq, value
		h.count++
		h.private = h.private || isPrivate(value)
	}
	if l, ok := t.readEntry(core.Path{}, h.last, newest); ok {
		h.time = l.Message.Time
	}
	h.answered = h.last
	waiting := t.waiting(place, h.last)
	if len(waiting) > 0 {
		h.answered = waiting[0] - 1
	}
	return h
}
