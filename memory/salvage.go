package memory

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"go.etcd.io/bbolt"

	"synthbot/core"
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
	if _, err := os.Lstat(target); !errors.Is(err, fs.ErrNotExist) {
		return Salvaged{}, fmt.Errorf("%s: %w: move it away, or save into another directory", target, ErrNotEmpty)
	}
	f, err := os.Open(damaged)
	if err != nil {
		return Salvaged{}, fmt.Errorf("%s: %w", damaged, bare(err))
	}
	defer f.Close()
	size, err := fileSize(f)
	if err != nil {
		return Salvaged{}, fmt.Errorf("%s: %w", damaged, err)
	}
	w := &wreck{file: f, size: size}
	root, err := w.root()
	if err != nil {
		return Salvaged{}, fmt.Errorf("%s: nothing can be saved: %w", damaged, err)
	}
	db, err := Open(dir, Options{})
	if err != nil {
		return Salvaged{}, err
	}
	report, err := db.salvage(w, root)
	return report, errors.Join(err, db.Close())
}

func (db *DB) salvage(w *wreck, root uint64) (Salvaged, error) {
	s := &saver{db: db, report: Salvaged{Pairs: make(map[string]int)}}
	w.walk(root, 0, func(name, value []byte, isBucket bool) {
		if !isBucket || !s.wants(string(name)) {
			return
		}
		w.bucket(string(name), value, func(key, value []byte, nested bool) {
			if !nested {
				s.add(string(name), key, value)
			}
		})
	})
	s.flush()
	s.report.Faults = w.faults
	if s.err == nil {
		s.err = db.rebuild()
	}
	return s.report, s.err
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

func (s *saver) wants(bucket string) bool {
	return slices.Contains(buckets(), bucket) && !slices.Contains(derived(), bucket)
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
	pairs := s.pairs
	s.pairs = nil
	if s.err != nil || len(pairs) == 0 {
		return
	}
	s.err = s.db.write(context.Background(), &job{run: func(t *tx) error {
		for _, p := range pairs {
			if err := t.bucket(p.bucket).Put(p.key, p.value); err != nil {
				return fmt.Errorf("%s: %w", p.bucket, err)
			}
		}
		return nil
	}})
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
			place, seq, err := cutSeq(key)
			if err != nil {
				return err
			}
			path, err := placeOf(place)
			if err != nil {
				return err
			}
			_, err = decodeLine(value, path, seq)
			return err
		},
		bucketIDs: func(key, value []byte) error {
			place, _, err := cutPlace(key)
			if err != nil {
				return err
			}
			if seq, size := uvarint(string(value)); size <= 0 || seq == 0 {
				return errFields
			}
			_, err = placeOf(place)
			return err
		},
		bucketDue: func(key, _ []byte) error {
			_, _, err := cutSeq(key)
			return err
		},
		bucketJournal: func(key, value []byte) error {
			place, rest, err := cutPlace(key)
			if err != nil {
				return err
			}
			path, err := placeOf(place)
			if err != nil {
				return err
			}
			_, err = journalRest(rest, path)
			_, err2 := decodeRecord(value)
			return errors.Join(err, err2)
		},
		bucketFacts: func(key, value []byte) error {
			if len(key) != 8 {
				return errFields
			}
			f, err := decodeFact(value)
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
func (db *DB) rebuild() error {
	return db.write(context.Background(), &job{run: func(t *tx) error {
		r := rebuilder{tx: t, heads: make(map[string]head), lost: make(map[string]bool)}
		for _, do := range []func() error{r.clear, r.entries, r.write, r.facts} {
			if err := do(); err != nil {
				return fmt.Errorf("rebuild: %w", err)
			}
		}
		return nil
	}})
}

// rebuilder goes through the logs once.
type rebuilder struct {
	*tx
	heads   map[string]head
	lost    map[string]bool       // places whose mark is not known
	sources map[core.Path][]place // where ids may lead to a place from
}

// clear forgets the counts and what waits.
func (r *rebuilder) clear() error {
	c := r.bucket(bucketPlaces).Cursor()
	for k, v := c.First(); k != nil; k, v = c.Next() {
		h, err := decodeHead(v)
		if err != nil {
			return err
		}
		h.count = 0
		r.heads[string(k)] = h
	}
	var err error
	r.sources, err = r.idSources()
	return errors.Join(err, r.empty(bucketDue))
}

// idSources lists the paths that platform ids came with, by where they lead.
func (t *tx) idSources() (map[core.Path][]place, error) {
	sources := make(map[core.Path][]place)
	c := t.bucket(bucketIDs).Cursor()
	for k, _ := c.First(); k != nil; {
		key, _, err := cutPlace(k)
		if err != nil {
			return nil, err
		}
		from, err := placeOf(key)
		if err != nil {
			return nil, err
		}
		p, err := t.resolve(from)
		if err != nil {
			return nil, err
		}
		sources[p.path] = append(sources[p.path], p)
		k, _ = c.Seek(after(key))
	}
	return sources, nil
}

func (t *tx) empty(bucket string) error {
	if err := t.DeleteBucket([]byte(bucket)); err != nil {
		return err
	}
	_, err := t.CreateBucket([]byte(bucket))
	return err
}

// entries counts, finds what waits, and mends ids.
func (r *rebuilder) entries() error {
	c := r.bucket(bucketLog).Cursor()
	for k, v := c.First(); k != nil; k, v = c.Next() {
		key, seq, err := cutSeq(k)
		if err != nil {
			return err
		}
		path, err := placeOf(key)
		if err != nil {
			return err
		}
		l, err := decodeLine(v, path, seq)
		if err != nil {
			return err
		}
		h, known := r.heads[string(key)]
		if !known {
			r.lost[string(key)] = true
		}
		h.last, h.count, h.time = max(h.last, seq), h.count+1, l.Message.Time
		h.private = h.private || l.Message.Private
		r.heads[string(key)] = h
		if err := r.entry(place{path: path, key: key, ids: key}, l, h); err != nil {
			return err
		}
	}
	return nil
}

func (r *rebuilder) entry(p place, l line, h head) error {
	if l.Due && l.Message.Seq > h.answered && !r.lost[string(p.key)] {
		if err := r.bucket(bucketDue).Put(seqKey(p.key, l.Message.Seq), nil); err != nil {
			return err
		}
	}
	if l.Message.ID == "" {
		return nil
	}
	for _, source := range r.sources[p.path] {
		seq, known, err := r.find(source, l.Message.ID)
		if err != nil || known && seq == l.Message.Seq {
			return err
		}
	}
	return r.remember(p, l.Message.ID, l.Message.Seq)
}

func (r *rebuilder) write() error {
	for key, h := range r.heads {
		if r.lost[key] {
			h.answered = h.last
		}
		if err := writeHead(r.bucket(bucketPlaces), []byte(key), h); err != nil {
			return err
		}
	}
	return nil
}

// facts makes the postings anew, and gives no number twice.
func (r *rebuilder) facts() error {
	if err := r.empty(bucketWords); err != nil {
		return err
	}
	b := r.bucket(bucketFacts)
	var facts []Fact
	c := b.Cursor()
	for k, v := c.First(); k != nil; k, v = c.Next() {
		f, err := decodeFact(v)
		if err != nil {
			return err
		}
		f.ID = factID(binary.BigEndian.Uint64(k))
		facts = append(facts, f)
		if err := b.SetSequence(binary.BigEndian.Uint64(k)); err != nil {
			return err
		}
	}
	for _, f := range facts {
		if err := r.putFact(f); err != nil {
			return err
		}
	}
	return nil
}
