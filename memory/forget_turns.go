package memory

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"

	"synthbot/core"
)

// mute notes which turns that are not over answer the person: what they end with is
// left out. Of the places, only those are looked at that have a journal.
func (f *forgetting) mute(t *tx) {
	for _, path := range t.placesIn(bucketJournal) {
		if !path.Within(f.within) {
			continue
		}
		place := placeKey(path)
		from := seqKey(place, f.heads[path].answered+1)
		f.turns(t, from, after(place), func(turn core.TurnID, _ []core.Key, _ bool) {
			f.db.epochs.mute(turn, t.names(turn))
		})
	}
}

// names lists what a turn was called before its place moved.
func (t *tx) names(turn core.TurnID) (names []core.TurnID) {
	for _, from := range t.placesIn(bucketAliases) {
		p := t.resolve(from)
		if p.path == turn.Path && turn.Seq > p.shift {
			names = append(names, core.TurnID{Path: from, Seq: turn.Seq - p.shift})
		}
	}
	return names
}

// turns calls use for each turn of a range of the journal that answers or names
// the person, with the keys of its records and whether it answers them.
func (f *forgetting) turns(t *tx, from, to []byte, use func(turn core.TurnID, keys []core.Key, answers bool)) {
	var turn core.TurnID
	var keys []core.Key
	speaks, answers := false, false
	flush := func() {
		if speaks || answers {
			use(turn, keys, answers)
		}
	}
	c := t.bucket(bucketJournal).Cursor()
	for k, v := c.Seek(from); below(k, to); k, v = c.Next() {
		key, err := journalKeyOf(k)
		if err != nil {
			t.db.odd(err)
			continue
		}
		if key.Turn != turn {
			flush()
			turn, keys, speaks, answers = key.Turn, nil, false, false
		}
		keys = append(keys, key)
		speaks, answers = speaks || f.speaks(v), answers || f.answers(t, key, v)
	}
	flush()
}

// speaks reports whether a record names the person.
func (f *forgetting) speaks(value []byte) bool {
	quoted, err := json.Marshal(f.person)
	return err == nil && f.person != "" && bytes.Contains(value, quoted)
}

// answers reports whether a record opens a turn that answers the person.
func (f *forgetting) answers(t *tx, key core.Key, value []byte) bool {
	last, whole := f.whole[key.Turn.Path]
	if whole && key.Turn.Seq <= last {
		return true
	}
	if f.person == "" || key.Round != 0 || key.Step != 0 {
		return false
	}
	w, err := decodeRecord(value)
	var o core.TurnRecord
	if err != nil || json.Unmarshal(w.Data, &o) != nil {
		return false
	}
	place := placeKey(key.Turn.Path)
	c := t.bucket(bucketLog).Cursor()
	for k, v := c.Seek(seqKey(place, key.Turn.Seq)); below(k, seqKey(place, o.Last+w.Shift+1)); k, v = c.Next() {
		l, ok := f.read(k, v)
		answered := l.Due || l.Message.Seq == key.Turn.Seq // a settled entry is not due any more
		if ok && answered && (l.Message.Author.ID == f.person || slices.Contains(l.answers, f.person)) {
			return true
		}
	}
	return false
}

// journals takes away the journals of the turns that answer or name the person.
func (f *forgetting) journals() error {
	answers := make(map[core.TurnID]bool)
	err := f.db.view(f.ctx, func(v *view) error {
		from, to := subtree(f.within)
		f.turns(&v.tx, from, to, func(turn core.TurnID, _ []core.Key, answersThem bool) { answers[turn] = answersThem })
		return nil
	})
	if err != nil {
		return err
	}
	return changeAll(f.ctx, f.db, slices.Collect(maps.Keys(answers)), func(t *tx, turn core.TurnID) {
		prefix := seqKey(placeKey(turn.Path), turn.Seq)
		if answers[turn] {
			for _, k := range t.keysBelow(bucketJournal, prefix) {
				f.unsay(t, k)
			}
		}
		t.deleteBelow(bucketJournal, prefix)
	})
}

// unsay takes out what was sent as a part of a turn that answered the person. Entries
// know it themselves, but those that an older synthbot wrote.
func (f *forgetting) unsay(t *tx, key []byte) {
	k, err := journalKeyOf(key)
	if err != nil || k.Part == 0 {
		return
	}
	var sent core.Sent
	w, err := decodeRecord(t.bucket(bucketJournal).Get(key))
	if err == nil {
		err = json.Unmarshal(w.Data, &sent)
	}
	p := t.resolve(sent.Path)
	seq, known := t.find(p, sent.ID)
	if err != nil || !known {
		return // nothing can be known of it
	}
	f.addReply(p.path, sent.ID)
	t.remove(p, seq)
}
