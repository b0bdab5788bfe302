package memory

import (
	"slices"

	"synthbot/core"
)

// answered moves a place's mark over all entries up to the turn's last. Numbers
// that were given under a path that moved away are above those of the place
// it moved to: entries of that place that still wait stay where they are, and
// the mark with them.
func (t *tx) answered(turn core.TurnID) {
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
			t.settleDue(p, seq, left)
		}
	}
	if !left {
		h.answered = upTo
	}
}

// settled takes the one entry of a number from those that wait. The mark moves
// if nothing before it waits.
func (t *tx) settled(turn core.TurnID) {
	p := t.resolve(turn.Path)
	h := t.head(p.key)
	seq := turn.Seq + p.shift
	if seq > h.last {
		return
	}
	waiting := t.waiting(p.key, seq)
	first := len(waiting) == 0 || waiting[0] == seq
	if slices.Contains(waiting, seq) {
		t.settleDue(p, seq, !first)
	}
	if first {
		h.answered = max(h.answered, seq)
	}
}

// settleDue takes an entry from those that wait. Where the mark stays below it,
// the entry itself must say that it is not due any more.
func (t *tx) settleDue(p place, seq uint64, rewrite bool) {
	t.bucket(bucketDue).Delete(seqKey(p.key, seq))
	if !rewrite {
		return
	}
	l, ok, err := t.line(p, seq)
	if err != nil {
		t.db.odd(err)
	}
	l.Due = false
	if ok {
		t.rewrite(p, &l)
	}
}

// rewrite replaces an entry.
func (t *tx) rewrite(p place, l *line) {
	t.bucket(bucketLog).Put(seqKey(p.key, l.Message.Seq), encodeLine(l))
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
