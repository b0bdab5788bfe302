package memory

import (
	"slices"

	"synthbot/core"
	"synthbot/memory/kv"
)

// Transactions announce to an engine across a network what they will read, so that it is
// fetched at once. What is missing here is read when it is needed, which only takes longer.

// prefetch announces what the function returns, if the engine can make use of it.
func prefetch(t *tx, what func() []kv.Range) {
	if r, ok := t.Tx.(kv.Prefetcher); ok {
		r.Prefetch(what()...)
	}
}

func pair(bucket string, key []byte) kv.Range { return kv.Range{Bucket: bucket, From: key} }

const maxPrefetch = 64

// pathRanges are read to find out where a place is now, and its state.
func pathRanges(path core.Path) []kv.Range {
	all := []kv.Range{pair(bucketPlaces, placeKey(path))}
	for above := path; !above.IsZero(); above = above.Parent() {
		all = append(all, pair(bucketAliases, placeKey(above)))
	}
	return all
}

func dueRange(place []byte) kv.Range {
	return kv.Range{Bucket: bucketDue, From: seqKey(place, 0), To: prefixEnd(place), Limit: maxPrefetch}
}

// runRange is the run of an id of a place.
func runRange(place []byte, id string) kv.Range {
	return kv.Range{Bucket: bucketIDs, From: slices.Concat(place, shortID(id)), To: prefixEnd(place), Limit: 1}
}

// nextTurnRanges are read to take the next turn in a place.
func (v *view) nextTurnRanges(path core.Path) []kv.Range {
	place := placeKey(path)
	if _, ok := v.db.engine.newlyDue.LoadAndDelete(path); !ok { // after a turn there is hardly ever another one
		return []kv.Range{dueRange(place)}
	}
	log := kv.Range{Bucket: bucketLog, From: place, To: prefixEnd(place), Backward: true, Limit: maxPrefetch}
	journal := kv.Range{Bucket: bucketJournal, From: place, To: prefixEnd(place)}
	return []kv.Range{dueRange(place), log, journal, pair(bucketStates, place)}
}

// ranges are read to write the batch.
func (w *batch) ranges(t *tx) (all []kv.Range) {
	for i := range w.from.Append {
		m := &w.from.Append[i].Message
		place := placeKey(m.Path)
		all = append(all, pathRanges(m.Path)...)
		if w.from.Append[i].Due {
			t.db.engine.newlyDue.Store(m.Path, true)
		}
		if w.from.Append[i].Due && w.from.Begin {
			first := dueRange(place)
			first.Limit = 1
			all = append(all, first)
		}
		if m.ID != "" {
			all = append(all, runRange(place, m.ID), pair(bucketGone, t.forgotten().hashID(place, shortID(m.ID))))
		}
		if person, err := m.Path.Person(m.Author.ID); err == nil {
			all = append(all, pair(bucketGone, t.forgotten().requestKey(person)))
		}
		all = append(all, pair(bucketGone, t.forgotten().requestKey(core.Path{})))
	}
	for i := range w.from.Change {
		e := &w.from.Change[i]
		all = append(all, pathRanges(e.Message.Path)...)
		all = append(all, runRange(placeKey(e.Message.Path), e.Target))
	}
	for _, turn := range slices.Concat(w.from.Answered, w.from.Settled) {
		place := placeKey(turn.Path)
		all = append(all, pathRanges(turn.Path)...)
		all = append(all, dueRange(place), pair(bucketLog, seqKey(place, turn.Seq)))
	}
	for _, r := range w.records {
		all = append(all, pathRanges(r.key.Turn.Path)...)
	}
	for path := range w.states {
		all = append(all, pathRanges(path)...)
	}
	for _, turn := range w.from.Closed {
		from := turnKey(turn)
		all = append(all, kv.Range{Bucket: bucketJournal, From: from, To: prefixEnd(from)})
	}
	return all
}

// ranges are read to search the facts of these origins.
func (s *search) ranges(origins []core.Path) []kv.Range {
	s.queryWords()
	all := []kv.Range{{Bucket: bucketFacts}}
	add := func(origin core.Path, term string, limit int) {
		from := postingKey(origin, term, nil)
		all = append(all, kv.Range{Bucket: bucketWords, From: from, To: prefixEnd(from), Backward: true, Limit: limit})
	}
	for _, origin := range origins {
		add(origin, termAll, s.maxPostings)
		for _, term := range s.required {
			add(origin, term, 0)
		}
		for _, word := range s.words {
			add(origin, termWord+word, s.maxPostings)
		}
	}
	return all
}
