package memory

import (
	"bytes"
	"fmt"
	"slices"

	"synthbot/core"
)

// answered moves a place's mark over all entries up to the turn's last. Numbers
// that were given under a path that moved away stand above those of the place
// it moved to: entries of that place that still wait stay where they are, and
// the mark with them.
func (t *tx) answered(turn core.TurnID) error {
	p, err := t.resolve(turn.Path)
	if err != nil {
		return err
	}
	h := t.head(p.key)
	upTo := min(turn.Seq+p.shift, h.last)
	if upTo <= h.answered {
		return nil
	}
	waiting := t.waiting(p.key, h.last)
	left := false
	for _, seq := range waiting {
		switch {
		case seq <= p.shift:
			left = true
		case seq <= upTo:
			if err := t.settleDue(p, seq, left); err != nil {
				return err
			}
		}
	}
	if !left {
		h.answered = upTo
	}
	return nil
}

// settled takes the one entry of a number from those that wait. The mark moves
// if nothing before it waits.
func (t *tx) settled(turn core.TurnID) error {
	p, err := t.resolve(turn.Path)
	if err != nil {
		return err
	}
	h := t.head(p.key)
	seq := turn.Seq + p.shift
	if seq > h.last {
		return nil
	}
	waiting := t.waiting(p.key, seq)
	first := len(waiting) == 0 || waiting[0] == seq
	if slices.Contains(waiting, seq) {
		if err := t.settleDue(p, seq, !first); err != nil {
			return err
		}
	}
	if first {
		h.answered = max(h.answered, seq)
	}
	return nil
}

// settleDue takes an entry from those that wait. Where the mark stays below it,
// the entry itself must say that it is not due any more.
func (t *tx) settleDue(p place, seq uint64, rewrite bool) error {
	if err := t.bucket(bucketDue).Delete(seqKey(p.key, seq)); err != nil {
		return fmt.Errorf("due: %w", err)
	}
	if !rewrite {
		return nil
	}
	l, ok, err := t.line(p, seq)
	if err != nil {
		t.db.odd(err)
	}
	if err != nil || !ok {
		return nil
	}
	l.Due = false
	return t.rewrite(p, &l)
}

// rewrite replaces an entry.
func (t *tx) rewrite(p place, l *line) error {
	if err := t.bucket(bucketLog).Put(seqKey(p.key, l.Message.Seq), encodeLine(l)); err != nil {
		return fmt.Errorf("entry: %w", err)
	}
	return nil
}

// waiting lists the numbers up to upTo that wait in a place.
func (t *tx) waiting(place []byte, upTo uint64) []uint64 {
	var seqs []uint64
	c := t.bucket(bucketDue).Cursor()
	for k, _ := c.Seek(place); bytes.HasPrefix(k, place); k, _ = c.Next() {
		_, seq, err := cutSeq(k)
		if err != nil || seq > upTo {
			break
		}
		seqs = append(seqs, seq)
	}
	return seqs
}
