package memory

import (
	"slices"

	"synthbot/core"
	"synthbot/memory/kv"
)

// Transactions tell an engine across a network what they will read, so that it fetches all of
// it in one round trip. What is missing here is read when it is needed, which takes longer.

// prefetch announces the ranges that what returns, if the engine can prefetch.
func prefetch(t *tx, what func() []kv.Range) {
	if r, ok := t.Tx.(kv.Prefetcher); ok {
		r.Prefetch(what()...)
	}
}

func pair(bucket string, key []byte) kv.Range { return kv.Range{Bucket: bucket, From: key} }

const maxPrefetch = 64

// pathRanges returns what resolve reads for a path, and the head.
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

// runRange returns the range of the run that an id of a place belongs to.
func runRange(place []byte, id string) kv.Range {
	return kv.Range{Bucket: bucketIDs, From: slices.Concat(place, shortID(id)), To: prefixEnd(place), Limit: 1}
}

// nextTurnRanges returns what is read to start the next turn in a place.
func (v *view) nextTurnRanges(path core.Path) []kv.Range {
	place := placeKey(path)
	if _, ok := v.db.engine.newlyDue.LoadAndDelete(path); !ok { // usually nothing is due after a turn
		return []kv.Range{dueRange(place)}
	}
	log := kv.Range{Bucket: bucketLog, From: place, To: prefixEnd(place), Backward: true, Limit: maxPrefetch}
	journal := kv.Range{Bucket: bucketJournal, From: place, To: prefixEnd(place)}
	return []kv.Range{dueRange(place), log, journal, pair(bucketStates, place)}
}

// ranges returns what run reads.
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

// ranges returns what a search of facts of these origins reads.
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
