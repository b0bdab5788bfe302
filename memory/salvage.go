package memory

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"synthbot/core"
	"synthbot/memory/bolt"
	"synthbot/memory/kv"
)

// Salvaged reports what could be saved of a damaged file.
type Salvaged struct {
	Pairs   map[string]int // by bucket
	Dropped int            // pairs that could be read but are invalid
	Faults  []error        // the first parts that could not be read
}

const salvageStep = 5000

// Salvage reads what can be read of a damaged file and puts it into a new database in dir, which must not hold one. If
// nothing can be saved, it leaves no database. Derived content (heads, due entries, ids) is computed again. If a
// place's mark was lost, none of its entries waits any more: a missing answer is better than a repeated one.
func Salvage(dir, damaged string) (report Salvaged, err error) {
	err = installFile(dir, func(trial string) error {
		db, err := Open(trial, Options{})
		if err != nil {
			return err
		}
		s := &salvager{db: db, report: Salvaged{Pairs: make(map[string]int)}}
		err = s.save(damaged)
		report = s.report
		return errors.Join(err, db.Close())
	})
	return report, err
}

func (s *salvager) save(damaged string) (err error) {
	derived := []string{ // from the others, and from documents
		bucketDue, bucketWords, bucketVectors, bucketSketches, bucketDocuments, bucketPassages, bucketPassageWords,
	}
	saved := slices.DeleteFunc(append(buckets(), bucketFormerIDs), func(bucket string) bool {
		return slices.Contains(derived, bucket)
	})
	err = s.db.update(context.Background(), func(t *tx) { t.fail(bucketFormerIDs, t.MakeBucket(bucketFormerIDs)) })
	if err != nil {
		return err
	}
	s.report.Faults, err = bolt.Salvage(damaged, saved, s.add)
	s.flush()
	delete(s.report.Pairs, bucketMeta)
	if err = errors.Join(err, s.err); err != nil {
		return err
	}
	if len(s.report.Pairs) == 0 {
		return fmt.Errorf("%s: nothing could be saved of it", damaged)
	}
	return s.db.update(context.Background(), func(t *tx) {
		if len(t.placesIn(bucketIDs, core.Path{})) == 0 { // else the file was upgraded
			upgradeIDs(t)
		}
		t.fail(bucketFormerIDs, t.DropBucket(bucketFormerIDs))
		rebuildEntries(t)
		rebuildPostings(t)
	})
}

type salvager struct {
	db     *DB
	report Salvaged
	pairs  []savedPair
	err    error
}

type savedPair struct {
	bucket     string
	key, value []byte
}

func (s *salvager) add(bucket string, key, value []byte) {
	kept := string(key) == metaSalt || string(key) == metaFloor || bytes.HasPrefix(key, []byte(metaForget))
	if bucket == bucketMeta && !kept {
		return // the new file has its own; the salt keeps hashes of forgotten ids valid
	}
	check, checked := pairChecks()[bucket]
	if len(key) == 0 || len(key) > kv.MaxKey || checked && check(key, value) != nil {
		s.report.Dropped++
		return
	}
	s.report.Pairs[bucket]++
	s.pairs = append(s.pairs, savedPair{bucket, key, value})
	if len(s.pairs) >= salvageStep {
		s.flush()
	}
}

func (s *salvager) flush() {
	err := s.db.update(context.Background(), func(t *tx) {
		for _, p := range s.pairs {
			t.bucket(p.bucket).Put(p.key, p.value)
		}
	})
	s.pairs, s.err = nil, errors.Join(s.err, err)
}

func pairChecks() map[string]func(key, value []byte) error {
	return map[string]func(key, value []byte) error{
		bucketPlaces: func(k, v []byte) error { return errors.Join(errorOf(parsePlace(k)), errorOf(decodeHead(v))) },
		bucketLog: func(k, v []byte) error {
			_, _, err := parseEntryKey(k)
			return errors.Join(err, errorOf(decodeEntry(v, core.Path{}, 0)))
		},
		bucketIDs: func(k, v []byte) error {
			_, _, err := cutPath(k)
			return errors.Join(err, checkRun(v))
		},
		bucketFormerIDs: func(k, v []byte) error {
			_, _, err := cutPath(k)
			return errors.Join(err, errorOf(binary.ReadUvarint(bytes.NewReader(v))))
		},
		bucketJournal: func(k, v []byte) error {
			return errors.Join(errorOf(parseJournalKey(k)), errorOf(decodeRecord(v)))
		},
		bucketFacts: func(k, v []byte) error {
			f, err := decodeFact(k, v)
			return errors.Join(err, checkFact(&f))
		},
		bucketUsage:   func(k, v []byte) error { return errorOf(readUse(k, v)) },
		bucketPlugins: func(k, v []byte) error { return errorOf(decodeItem(k, v)) },
		bucketStates:  func(k, v []byte) error { return errorOf(decodeState(k, v)) },
		bucketAliases: func(k, v []byte) error {
			return errors.Join(errorOf(parsePlace(k)), json.Unmarshal(v, new(alias)))
		},
	}
}

func errorOf[T any](_ T, err error) error { return err }

// idSources lists the paths under which ids are stored, by the place that they lead to.
func (t *tx) idSources() map[core.Path][]place {
	sources := make(map[core.Path][]place)
	for _, from := range t.placesIn(bucketIDs, core.Path{}) {
		p := t.resolve(from)
		sources[p.path] = append(sources[p.path], p)
	}
	return sources
}

// rebuildEntries computes what is derived from the logs, and goes through them once.
func rebuildEntries(t *tx) {
	heads, sources := maps.Collect(t.headsBelow(core.Path{})), t.idSources()
	for _, path := range t.placesIn(bucketLog, core.Path{}) {
		p := place{path: path, key: placeKey(path), ids: placeKey(path)}
		before, known := heads[path]
		for seq, value := range t.numbers(bucketLog, p.key, 0) {
			l, ok := t.readEntry(path, seq, value)
			if ok && l.Due && known && seq > before.answered {
				t.bucket(bucketDue).Put(seqKey(p.key, seq), nil)
			}
			found := func(source place) bool {
				of, known := t.findID(source, l.Message.ID)
				return known && of == seq
			}
			if l.Message.ID != "" && !slices.ContainsFunc(sources[path], found) {
				t.putID(p, l.Message.ID, seq)
			}
		}
		h := t.rebuiltHead(p.key)
		if known {
			h.last, h.answered = max(h.last, before.last), before.answered
			h.private = h.private || before.private
		}
		delete(heads, path)
		t.writeHead(p.key, h)
	}
	for path, h := range heads {
		h.count = 0
		t.writeHead(placeKey(path), h)
	}
}

func rebuildPostings(t *tx) {
	b, last := t.bucket(bucketFacts), uint64(0)
	for f := range decoded(t, bucketFacts, nil, nil, decodeFact) {
		t.facts().putPostings(&f)
		last = numberOfFact(&f)
	}
	t.fail(bucketFacts, b.SetSequence(last))
}
