package memory

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"synthbot/core"
	"synthbot/memory/bolt"
)

const maxFaults = 3 // a damaged file may have very many

// Check reads the whole file and reports what is wrong with its pages and their content; nil
// if nothing is. Writing goes on meanwhile. It reads every page and is slow.
func (db *DB) Check(ctx context.Context) error {
	err := db.view(ctx, func(v *view) error {
		c := &checker{view: v, ctx: ctx}
		pages, ok := v.Tx.(interface{ CheckPages() []error }) // else the engine has none
		if ok {
			c.faults = pages.CheckPages()
		}
		if len(c.faults) == 0 {
			c.checkRecords()
		}
		return errors.Join(append(c.faults[:min(len(c.faults), maxFaults)], ctx.Err())...)
	})
	if err == nil || errors.Is(err, ctx.Err()) || errors.Is(err, core.ErrClosed) {
		return err
	}
	return bolt.DamagedError(db.engine.name, err)
}

func (c *checker) checkRecords() {
	c.checkEntries()
	c.checkIDs()
	c.eachPair(bucketDue, func(k, _ []byte) error {
		if c.bucket(bucketLog).Get(k) == nil {
			return fmt.Errorf("%q waits but does not exist", k)
		}
		return nil
	})
	c.checkHeads()
	c.checkFacts()
	c.checkPassages()
	c.checkVectors()
	for _, bucket := range []string{bucketJournal, bucketPlugins, bucketStates, bucketUsage, bucketAliases} {
		c.eachPair(bucket, pairChecks()[bucket])
	}
}

type checker struct {
	*view
	ctx    context.Context
	faults []error
	counts map[string]uint64 // entries by place key, as counted in the log
	lasts  map[string]uint64
	withID map[string]uint64 // entries with an id, less those that were found by it
}

// eachPair checks the pairs of a bucket, until there are enough faults or the context ends.
func (c *checker) eachPair(bucket string, look func(k, v []byte) error) {
	for k, v := range c.bucket(bucket).pairs(nil, nil) {
		if len(c.faults) >= maxFaults || c.ctx.Err() != nil {
			return
		}
		if err := look(k, v); err != nil {
			c.faults = append(c.faults, fmt.Errorf("%s: %w", bucket, err))
		}
	}
}

// checkTotals adds a fault, unless the totals agree or there are faults already, which change them.
func (c *checker) checkTotals(agree bool, fault string, totals ...any) {
	if !agree && len(c.faults) == 0 {
		c.faults = append(c.faults, fmt.Errorf(fault, totals...))
	}
}

// checkEntries checks that each entry can be read, and that it waits if and only if it is due and above the mark.
func (c *checker) checkEntries() {
	c.counts, c.lasts, c.withID = map[string]uint64{}, map[string]uint64{}, map[string]uint64{}
	c.eachPair(bucketLog, func(k, value []byte) error {
		path, seq, err := parseEntryKey(k)
		if err != nil {
			return err
		}
		key := k[:len(k)-8]
		c.counts[string(key)]++
		c.lasts[string(key)] = seq
		l, err := decodeEntry(value, path, seq)
		if err != nil {
			return err
		}
		if l.Message.ID != "" {
			c.withID[string(key)]++
		}
		h, _ := c.readHead(key)
		waits := l.Due && seq > h.answered
		if l.Message.Private && !h.private {
			return fmt.Errorf("%s#%d: the entry is private, but its place is not", path, seq)
		}
		there := hasKey(c.bucket(bucketDue), k)
		if there != waits {
			return fmt.Errorf("%s#%d: it should wait: %t, it waits: %t", path, seq, waits, there)
		}
		return nil
	})
}

// hasKey reports whether a key exists, with or without a value.
func hasKey(b bucket, key []byte) bool {
	k, _ := b.Cursor(key, nil).Seek(key)
	return bytes.Equal(k, key)
}

// checkIDs checks the order of the ids, that each leads to its entry if that exists, and that each entry is found.
func (c *checker) checkIDs() {
	var before []byte
	c.eachPair(bucketIDs, func(k, value []byte) error {
		from, _, err := cutPath(k)
		if err != nil {
			return err
		}
		p, run := c.resolve(from), idRun{bytes: value}
		for run.next() {
			key := slices.Concat(p.ids, run.last.id)
			if bytes.Compare(key, before) <= 0 || bytes.Compare(key, k) > 0 {
				return fmt.Errorf("%s: id %q does not belong to the run %q", from, run.last.id[1:], k)
			}
			before = key
			l, there := c.entry(p, run.last.seq+p.shift)
			if !there {
				continue
			}
			c.withID[string(p.key)]--
			if !bytes.Equal(shortID(l.Message.ID), run.last.id) {
				return fmt.Errorf("%s: id %q leads to %s#%d with the id %q",
					from, run.last.id[1:], p.path, l.Message.Seq, l.Message.ID)
			}
		}
		if run.err != nil {
			return fmt.Errorf("%s: run %q: %w", from, k, run.err)
		}
		return nil
	})
	for key, n := range c.withID {
		c.checkTotals(n == 0, "%q: %d entries are not found by their ids", key, n)
	}
}

func (c *checker) checkHeads() {
	seen := 0
	c.eachPair(bucketPlaces, func(k, value []byte) error {
		path, err := parsePlace(k)
		if err != nil {
			return err
		}
		h, err := decodeHead(value)
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		if c.counts[string(k)] > 0 {
			seen++
		}
		switch {
		case h.count != c.counts[string(k)]:
			return fmt.Errorf("%s: the head counts %d entries, the log has %d", path, h.count, c.counts[string(k)])
		case h.last < c.lasts[string(k)]:
			return fmt.Errorf("%s: the last number is %d, but the log has %d", path, h.last, c.lasts[string(k)])
		case h.answered > h.last:
			return fmt.Errorf("%s: the mark %d is above the last number %d", path, h.answered, h.last)
		}
		return nil
	})
	c.checkTotals(seen == len(c.counts), "places: %d have entries, %d have a head", len(c.counts), seen)
}

// checkFacts checks that the words of each fact lead to it, and that there are no others.
func (c *checker) checkFacts() {
	words, led, n := c.bucket(bucketWords), 0, 0
	c.eachPair(bucketFacts, func(k, value []byte) error {
		f, err := decodeFact(k, value)
		if err != nil {
			return err
		}
		for _, term := range factTerms(&f) {
			led++
			if words.Get(postingKey(f.Origin, term, k)) == nil {
				return fmt.Errorf("memory %s is not found by %q", f.ID, term)
			}
		}
		return nil
	})
	c.eachPair(bucketWords, func(_, _ []byte) error { n++; return nil })
	c.checkTotals(n == led, "words: %d are there, %d lead to a memory", n, led)
}

// checkPassages checks that each passage belongs to its document, and that its words lead to it.
func (c *checker) checkPassages() {
	x, listed, there, led, n := newPassageIndex(c.view), 0, 0, 0, 0
	c.eachPair(bucketDocuments, func(k, _ []byte) error {
		origin, name, err := cutOrigin(k)
		if err != nil {
			return err
		}
		d, _, err := passageTx{&c.tx}.document(origin, string(name))
		for _, numbers := range d.Numbers {
			listed += int(numbers.To - numbers.From)
		}
		return err
	})
	c.eachPair(bucketPassages, func(k, _ []byte) error {
		there++
		number := binary.BigEndian.Uint64(append(k[:len(k):len(k)], make([]byte, 8)...))
		p, ok := passageTx{&c.tx}.passage(number)
		origin, err := sourcePath(p.Source)
		if !ok || err != nil {
			return fmt.Errorf("passage %x cannot be read", k)
		}
		words := p.words()
		led += len(words) + 1
		for word := range words {
			if _, ok := x.posting(origin, termWord+word, number); !ok {
				return fmt.Errorf("passage %x is not found by %q", k, word)
			}
		}
		return nil
	})
	c.eachPair(bucketPassageWords, func(_, value []byte) error { n += len(value) / 2; return nil })
	c.checkTotals(listed == there && led == n, "passages: documents have %d, %d are there; %d words are there of %d",
		listed, there, n, led)
}

// checkVectors checks that each vector belongs to a fact or passage of its origin, and has a sketch.
func (c *checker) checkVectors() {
	vectors, sketched := 0, 0
	c.eachPair(bucketVectors, func(k, value []byte) error {
		vectors++
		if len(k) < 9 {
			return fmt.Errorf("%q: %w", k, errFields)
		}
		number := binary.BigEndian.Uint64(k[len(k)-8:])
		origin, err := parseOrigin(k[:len(k)-8])
		if err != nil {
			return err
		}
		v, err := decodeVector(value, number)
		if err != nil {
			return err
		}
		if e, ok := embeddableAt(&c.tx, number); !ok || e.origin != origin {
			return fmt.Errorf("memory %s has a vector under %q, which is not its origin", factID(number), origin)
		}
		one := c.facts().sketchAt(origin, number)
		if !bytes.Equal(one, v.encodeSketch(number)) {
			return fmt.Errorf("memory %s has a wrong sketch: %x", factID(number), one)
		}
		return nil
	})
	c.eachPair(bucketSketches, func(k, value []byte) error {
		if len(value) == 0 || len(value)%sketchBytes != 0 {
			return fmt.Errorf("%q: %d bytes: %w", k, len(value), errFields)
		}
		sketched += len(value) / sketchBytes
		return nil
	})
	c.checkTotals(vectors == sketched, "sketches: %d are there of %d vectors", sketched, vectors)
}
