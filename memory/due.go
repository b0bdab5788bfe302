package memory

import (
	"slices"

	"synthbot/core"
)

// markAnswered moves a place's mark over all entries up to the turn's last. Numbers from a
// path that moved are above those of the place that it moved to: older entries of that place
// still wait, and the mark stays below them.
func (t *tx) markAnswered(turn core.TurnID) {
	p := t.resolve(turn.Path)
	h := t.head(p.key)
	upTo := min(turn.Seq+p.shift, h.last)
	if upTo <= h.answered {
		return
	}
	waiting := t.waiting(p.key, h.last)
	left := false
	for _, seq := range waiting {
		switch {
		case seq <= p.shift:
			left = true
		case seq <= upTo:
			t.removeDue(p, seq, left)
		}
	}
	if !left {
		h.answered = upTo
	}
}

// settle marks one entry as answered. The place's mark moves if nothing before the entry
// waits.
func (t *tx) settle(turn core.TurnID) {
	p := t.resolve(turn.Path)
	h := t.head(p.key)
	seq := turn.Seq + p.shift
	if seq > h.last {
		return
	}
	waiting := t.waiting(p.key, seq)
	first := len(waiting) == 0 || waiting[0] == seq
	if slices.Contains(waiting, seq) {
		t.removeDue(p, seq, !first)
	}
	if first {
		h.answered = max(h.answered, seq)
	}
}

// removeDue removes an entry from those that wait. If the mark stays below, the entry itself
// is rewritten as not due.
func (t *tx) removeDue(p place, seq uint64, rewrite bool) {
	t.bucket(bucketDue).Delete(seqKey(p.key, seq))
	if !rewrite {
		return
	}
	l, ok, err := t.entry(p, seq)
	if err != nil {
		t.db.logUnreadable(err)
	}
	l.Due = false
	if ok {
		t.rewrite(&l)
	}
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
