package memory

import (
	"slices"

	"synthbot/core"
	"synthbot/memory/kv"
)

// Transactions tell an engine across a network what they will read, so that it fetches all of
// it in one round trip. What is missing here is read when it is needed, which takes longer.

// prefetch announces what list adds to the reads, if the engine can prefetch.
func prefetch(t *tx, list func(*reads)) {
	if p, ok := t.Tx.(kv.Prefetcher); ok {
		var r reads
		list(&r)
		p.Prefetch(r...)
	}
}

const maxPrefetch = 64

type reads []kv.Range

func (r *reads) pair(bucket string, key []byte) { *r = append(*r, kv.Range{Bucket: bucket, From: key}) }

// first adds the first pairs whose keys begin with a prefix, at most limit; 0: all.
func (r *reads) first(bucket string, prefix []byte, limit int) {
	*r = append(*r, kv.Range{Bucket: bucket, From: prefix, To: prefixEnd(prefix), Limit: limit})
}

// last is first for the last pairs.
func (r *reads) last(bucket string, prefix []byte, limit int) {
	r.first(bucket, prefix, limit)
	(*r)[len(*r)-1].Backward = true
}

// path adds what resolve reads for a path, and the head.
func (r *reads) path(path core.Path) {
	r.pair(bucketPlaces, placeKey(path))
	for above := path; !above.IsZero(); above = above.Parent() {
		r.pair(bucketAliases, placeKey(above))
	}
}

func (r *reads) run(place []byte, id string) {
	from := slices.Concat(place, shortID(id))
	*r = append(*r, kv.Range{Bucket: bucketIDs, From: from, To: prefixEnd(place), Limit: 1})
}

// nextTurn adds what is read to start the next turn in a place.
func (r *reads) nextTurn(v *view, path core.Path) {
	place := placeKey(path)
	r.first(bucketDue, place, maxPrefetch)
	if _, ok := v.db.engine.newlyDue.LoadAndDelete(path); ok { // usually nothing is due after a turn
		r.last(bucketLog, place, maxPrefetch)
		r.first(bucketJournal, place, 0)
		r.pair(bucketStates, place)
	}
}

func (w *batch) reads(t *tx, r *reads) {
	for i := range w.from.Append {
		e := &w.from.Append[i]
		m, place := &e.Message, placeKey(e.Message.Path)
		r.path(m.Path)
		if e.Due {
			t.db.engine.newlyDue.Store(m.Path, true)
		}
		if e.Due && w.from.Begin {
			r.first(bucketDue, place, 1)
		}
		if m.ID != "" {
			r.run(place, m.ID)
			r.pair(bucketGone, t.forgotten().hashID(place, shortID(m.ID)))
		}
		if person, err := m.Path.Person(m.Author.ID); err == nil {
			r.pair(bucketGone, t.forgotten().requestKey(person))
		}
		r.pair(bucketGone, t.forgotten().requestKey(core.Path{}))
	}
	for i := range w.from.Change {
		e := &w.from.Change[i]
		r.path(e.Message.Path)
		r.run(placeKey(e.Message.Path), e.Target)
	}
	for _, turn := range slices.Concat(w.from.Answered, w.from.Settled) {
		r.path(turn.Path)
		r.first(bucketDue, placeKey(turn.Path), maxPrefetch)
		r.pair(bucketLog, turnKey(turn))
	}
	for _, one := range w.records {
		r.path(one.key.Turn.Path)
	}
	for path := range w.states {
		r.path(path)
	}
	for _, turn := range w.from.Closed {
		r.first(bucketJournal, turnKey(turn), 0)
	}
}

func (s *search) reads(origins []core.Path, r *reads) {
	s.queryWords()
	r.pair(bucketFacts, nil) // the counter
	for _, origin := range origins {
		r.last(bucketWords, postingKey(origin, termAll, nil), s.maxPostings)
		for _, term := range s.required {
			r.last(bucketWords, postingKey(origin, term, nil), 0)
		}
		for _, word := range s.words {
			r.last(bucketWords, postingKey(origin, termWord+word, nil), s.maxPostings)
		}
	}
}
