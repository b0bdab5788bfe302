package memory

import "synthbot/core"

// answer takes entries of a place from those that wait: all up to the turn's last, or only
// that one. It returns the people whom the turn answers. The place's mark moves unless an
// entry before it waits: with only, or since it moved. Numbers from a path that moved are above
// those of the place that it moved to, whose older entries the turn does not answer.
func (t *tx) answer(turn core.TurnID, only bool) (people []string) {
	p := t.resolve(turn.Path)
	h := t.head(p.key)
	last := turn.Seq + p.shift
	if only && last > h.last {
		return nil
	}
	last = min(last, h.last)
	left := false
	for _, seq := range t.waiting(p.key, last) {
		if seq <= p.shift || only && seq != last {
			left = true
			continue
		}
		t.bucket(bucketDue).Delete(seqKey(p.key, seq))
		l, ok := t.entry(p, seq)
		if ok && !l.Self {
			people = append(append(people, l.answers...), l.Message.Author.ID)
		}
		if ok && left { // the mark stays below
			l.Due = false
			t.rewrite(&l)
		}
	}
	if !left {
		h.answered = max(h.answered, last)
	}
	return people
}

// rewrite replaces an entry.
func (t *tx) rewrite(l *storedEntry) {
	t.bucket(bucketLog).Put(seqKey(placeKey(l.Message.Path), l.Message.Seq), encodeEntry(l))
}

// waiting lists the numbers up to upTo that wait in a place.
func (t *tx) waiting(place []byte, upTo uint64) []uint64 {
	var seqs []uint64
	for seq := range t.numbers(bucketDue, place, 0) {
		if seq > upTo {
			break
		}
		seqs = append(seqs, seq)
	}
	return seqs
}
