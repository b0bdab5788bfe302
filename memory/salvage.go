package memory

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"go.etcd.io/bbolt"

	"synthbot/core"
	"synthbot/memory/rescue"
)

// Salvaged reports what could be saved of a damaged file.
type Salvaged struct {
	Pairs   map[string]int // by bucket
	Dropped int            // pairs that could be read but make no sense
	Faults  []error        // what could not be read, the first of it
}

// derived are the buckets whose content follows from that of others.
func derived() []string { return []string{bucketDue, bucketWords, bucketVectors, bucketSketches} }

// salvageStep is how many pairs are written in one transaction.
const salvageStep = 5000

// Salvage reads what can be read of a damaged file and puts it into a new
// database in dir, which must not hold one. What is derived (heads, due entries,
// ids) is made anew. Where a place's mark was lost, nothing of it waits any more:
// rather one answer too few than an old one again.
func Salvage(dir, damaged string) (Salvaged, error) {
	target := filepath.Join(dir, FileName)
	if _, err := os.Lstat(target); err == nil {
		return Salvaged{}, fmt.Errorf("%s: %w: move it away, or save into another directory", target, ErrNotEmpty)
	}
	f, err := rescue.Open(damaged)
	if err != nil {
		return Salvaged{}, fmt.Errorf("%s: nothing can be saved: %w", damaged, bare(err))
	}
	defer f.Close()
	db, err := Open(dir, Options{})
	if err != nil {
		return Salvaged{}, err
	}
	report, err := salvage(db, f)
	return report, errors.Join(err, db.Close())
}

func salvage(db *DB, f *rescue.File) (Salvaged, error) {
	s := &saver{db: db, report: Salvaged{Pairs: make(map[string]int)}}
	saved := slices.DeleteFunc(buckets(), func(bucket string) bool { return slices.Contains(derived(), bucket) })
	s.report.Faults = f.Pairs(saved, s.add)
	s.flush()
	return s.report, errors.Join(s.err, rebuild(db))
}

// saver collects pairs and writes them.
type saver struct {
	db     *DB
	report Salvaged
	pairs  []savedPair
	err    error
}

type savedPair struct {
	bucket     string
	key, value []byte
}

func (s *saver) add(bucket string, key, value []byte) {
	if bucket == bucketMeta && string(key) != metaSalt && string(key) != metaFloor {
		return // the new file has its own; without the salt, who was forgotten came back
	}
	if !sensible(bucket, key, value) {
		s.report.Dropped++
		return
	}
	s.report.Pairs[bucket]++
	s.pairs = append(s.pairs, savedPair{bucket, key, value})
	if len(s.pairs) >= salvageStep {
		s.flush()
	}
}

func (s *saver) flush() {
	err := s.db.write(context.Background(), &job{run: func(t *tx) error {
		for _, p := range s.pairs {
			t.bucket(p.bucket).Put(p.key, p.value)
		}
		return nil
	}})
	s.pairs, s.err = nil, errors.Join(s.err, err)
}

// sensible reports whether a pair can be what its bucket holds.
func sensible(bucket string, key, value []byte) bool {
	if len(key) == 0 || len(key) > bbolt.MaxKeySize {
		return false
	}
	check, ok := rules()[bucket]
	return !ok || check(key, value) == nil
}

// rules say of each bucket what its pairs must be.
func rules() map[string]func(key, value []byte) error {
	return map[string]func(key, value []byte) error{
		bucketPlaces: func(key, value []byte) error {
			_, err := placeOf(key)
			_, err2 := decodeHead(value)
			return errors.Join(err, err2)
		},
		bucketLog: func(key, value []byte) error {
			_, err := lineOf(key, value)
			return err
		},
		bucketIDs: func(key, value []byte) error {
			_, _, err := cutPath(key)
			seq, _ := uvarint(string(value))
			if seq == 0 {
				err = errFields
			}
			return err
		},
		bucketJournal: func(key, value []byte) error {
			_, err := journalKeyOf(key)
			_, err2 := decodeRecord(value)
			return errors.Join(err, err2)
		},
		bucketFacts: func(key, value []byte) error {
			f, err := decodeFact(key, value)
			return errors.Join(err, checkFact(&f))
		},
		bucketUsage: func(key, value []byte) error {
			_, err := readUse(key, value)
			return err
		},
		bucketPlugins: func(key, value []byte) error {
			_, rest, _ := bytes.Cut(key, []byte{ending})
			_, err := itemAt(rest, value)
			return err
		},
		bucketStates: func(key, value []byte) error {
			_, err := placeOf(key)
			return errors.Join(err, json.Unmarshal(value, new(core.State)))
		},
		bucketAliases: func(key, value []byte) error {
			_, err := placeOf(key)
			return errors.Join(err, json.Unmarshal(value, new(alias)))
		},
	}
}

// rebuild makes anew what is derived from the logs.
func rebuild(db *DB) error {
	return db.write(context.Background(), &job{run: func(t *tx) error {
		r := rebuilder{tx: t, heads: t.headsBelow(core.Path{}), sources: t.idSources()}
		r.entries()
		r.facts()
		return nil
	}})
}

// rebuilder goes through the logs once.
type rebuilder struct {
	*tx
	heads   map[core.Path]head    // that are known
	sources map[core.Path][]place // where ids may lead to a place from
}

// idSources lists the paths that platform ids came with, by where they lead.
func (t *tx) idSources() map[core.Path][]place {
	sources := make(map[core.Path][]place)
	for _, from := range t.placesIn(bucketIDs) {
		p := t.resolve(from)
		sources[p.path] = append(sources[p.path], p)
	}
	return sources
}

// empty makes a bucket anew.
func (t *tx) empty(bucket string) {
	t.fail(bucket, t.DeleteBucket([]byte(bucket)))
	t.makeBuckets(bucket)
}

// entries counts, finds what waits, and completes the ids.
func (r *rebuilder) entries() {
	for path, h := range r.heads {
		h.count = 0
		r.heads[path] = h
	}
	for _, path := range r.placesIn(bucketLog) {
		p := place{path: path, key: placeKey(path), ids: placeKey(path)}
		h, known := r.heads[path]
		for seq, value := range r.numbers(bucketLog, p.key, 0) {
			l, ok := r.readLine(path, seq, value)
			if !ok {
				continue
			}
			h.last, h.count, h.time = max(h.last, seq), h.count+1, l.Message.Time
			h.private = h.private || l.Message.Private
			if l.Due && known && seq > h.answered {
				r.bucket(bucketDue).Put(seqKey(p.key, seq), nil)
			}
			r.findID(p, &l.Message)
		}
		if !known {
			h.answered = h.last
		}
		r.heads[path] = h
	}
	for path, h := range r.heads {
		r.writeHead(placeKey(path), h)
	}
}

// findID lets an entry be found by its id.
func (r *rebuilder) findID(p place, m *core.Message) {
	led := func(source place) bool {
		seq, known := r.find(source, m.ID)
		return known && seq == m.Seq
	}
	if m.ID != "" && !slices.ContainsFunc(r.sources[p.path], led) {
		r.remember(p, m.ID, m.Seq)
	}
}

// facts makes the postings, and gives no number twice.
func (r *rebuilder) facts() {
	b, last := r.bucket(bucketFacts), uint64(0)
	c := b.Cursor()
	for k, v := c.First(); k != nil; k, v = c.Next() {
		if f, err := decodeFact(k, v); err == nil {
			r.putPostings(&f)
			last = binary.BigEndian.Uint64(k)
		}
	}
	r.fail(bucketFacts, b.SetSequence(last))
}
