package memory

import (
	"bytes"
	"encoding/json"
	"slices"

	"synthbot/core"
)

// mute notes which turns that are not over answer him: what they end with is
// left out.
func (f *forgetting) mute(t *tx) error {
	return f.turns(t, func(turn core.TurnID, _ [][]byte, _ bool) error {
		if h, _ := t.readHead(placeKey(turn.Path)); turn.Seq > h.answered {
			f.db.epochs.mute(turn)
		}
		return nil
	})
}

// turns calls use for each turn with a journal that answers him or speaks of
// him, with the keys of its records and whether it answers him.
func (f *forgetting) turns(t *tx, use func(turn core.TurnID, keys [][]byte, answers bool) error) error {
	from, to := subtree(f.within)
	var turn core.TurnID
	var keys [][]byte
	speaks, answers := false, false
	flush := func() error {
		if !speaks && !answers || len(keys) == 0 {
			return nil
		}
		return use(turn, keys, answers)
	}
	c := t.bucket(bucketJournal).Cursor()
	for k, v := c.Seek(from); below(k, to); k, v = c.Next() {
		key, err := journalKeyOf(k)
		if err != nil {
			return err
		}
		if key.Turn != turn {
			if err := flush(); err != nil {
				return err
			}
			turn, keys, speaks, answers = key.Turn, nil, false, false
		}
		keys = append(keys, bytes.Clone(k))
		speaks, answers = speaks || f.speaks(v), answers || f.answers(t, key, v)
	}
	return flush()
}

func journalKeyOf(k []byte) (core.Key, error) {
	place, rest, err := cutPlace(k)
	if err != nil {
		return core.Key{}, err
	}
	path, err := placeOf(place)
	if err != nil {
		return core.Key{}, err
	}
	return journalRest(rest, path)
}

// speaks reports whether a record speaks of him.
func (f *forgetting) speaks(value []byte) bool {
	quoted, err := json.Marshal(f.person)
	return err == nil && f.person != "" && bytes.Contains(value, quoted)
}

// answers reports whether a record opens a turn that answers him.
func (f *forgetting) answers(t *tx, key core.Key, value []byte) bool {
	if last, whole := f.whole[key.Turn.Path]; whole && key.Turn.Seq <= last {
		return true
	}
	if f.person == "" || key.Round != 0 || key.Step != 0 {
		return false
	}
	w, err := decodeRecord(value)
	var o core.Opening
	if err != nil || json.Unmarshal(w.Data, &o) != nil {
		return false
	}
	place := placeKey(key.Turn.Path)
	c := t.bucket(bucketLog).Cursor()
	for k, v := c.Seek(seqKey(place, key.Turn.Seq)); below(k, seqKey(place, o.Last+1)); k, v = c.Next() {
		if l, ok := f.read(k, v); ok && l.Due && (l.Message.Author.ID == f.person || slices.Contains(l.answers, f.person)) {
			return true
		}
	}
	return false
}

func (f *forgetting) journals() error {
	return f.db.write(f.ctx, &job{run: func(t *tx) error {
		return f.turns(t, func(_ core.TurnID, keys [][]byte, answers bool) error {
			for _, k := range keys {
				if answers {
					if err := f.unsay(t, k); err != nil {
						return err
					}
				}
				if err := t.bucket(bucketJournal).Delete(k); err != nil {
					return err
				}
			}
			return nil
		})
	}})
}

// unsay takes out what was sent as a part of a turn that answered him. Entries
// know it themselves, but those that an older synthbot wrote.
func (f *forgetting) unsay(t *tx, key []byte) error {
	k, err := journalKeyOf(key)
	if err != nil || k.Part == 0 {
		return err
	}
	w, err := decodeRecord(t.bucket(bucketJournal).Get(key))
	var sent core.Sent
	if err != nil || json.Unmarshal(w.Data, &sent) != nil || sent.Path.IsZero() || sent.ID == "" {
		return nil // nothing can be known of it
	}
	p, err := t.resolve(sent.Path)
	if err != nil {
		return nil
	}
	seq, known, err := t.find(p, sent.ID)
	if err != nil || !known {
		return err
	}
	f.tell(p.path, sent.ID)
	return t.remove(p, seq)
}
