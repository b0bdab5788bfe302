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
		people = append(people, t.removeDue(p, seq, left)...)
	}
	if !left {
		h.answered = max(h.answered, last)
	}
	return people
}

// removeDue removes an entry from those that wait, and returns the people whom it is from. If
// the mark stays below, the entry itself is rewritten as not due.
func (t *tx) removeDue(p place, seq uint64, rewrite bool) []string {
	t.bucket(bucketDue).Delete(seqKey(p.key, seq))
	l, ok, err := t.entry(p, seq)
	if err != nil {
		t.db.logUnreadable(err)
	}
	l.Due = false
	if ok && rewrite {
		t.rewrite(&l)
	}
	if !ok || l.Self {
		return nil
	}
	return append(l.answers, l.Message.Author.ID)
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
