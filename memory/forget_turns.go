package memory

import (
	"encoding/json"
	"maps"
	"slices"

	"synthbot/core"
)

// mute mutes the unfinished turns that answer the person. Only places with a journal are
// searched.
func (f *forgetting) mute(t *tx) {
	for _, path := range t.placesIn(bucketJournal) {
		if !path.Within(f.within) {
			continue
		}
		place := placeKey(path)
		from := seqKey(place, f.heads[path].answered+1)
		for turn, records := range t.turns(from, after(place)) {
			if !f.isNamed(records) && !f.isAnswered(t, records) {
				continue
			}
			names := []core.TurnID{turn} // from before its place moved, too
			for _, from := range t.placesIn(bucketAliases) {
				p := t.resolve(from)
				if p.path == path && turn.Seq > p.shift {
					names = append(names, core.TurnID{Path: from, Seq: turn.Seq - p.shift})
				}
			}
			f.db.epochs.mute(turn, names)
		}
	}
}

// journals deletes the journals of the turns that answer or name the person.
func (f *forgetting) journals() error {
	answers := make(map[core.TurnID]bool)
	err := f.db.view(f.ctx, func(v *view) error {
		for turn, records := range v.turns(subtree(f.within)) {
			answered := f.isAnswered(&v.tx, records)
			if answered || f.isNamed(records) {
				answers[turn] = answered
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	return changeAll(f.ctx, f.db, slices.Collect(maps.Keys(answers)), func(t *tx, turn core.TurnID) {
		if answers[turn] {
			for _, r := range t.records(turn) {
				f.removeSent(t, r)
			}
		}
		t.deleteBelow(bucketJournal, turnKey(turn))
	})
}

// removeSent deletes the message that a part of a turn sent to the person. Only entries of
// older versions need it: others hold whom they answer.
func (f *forgetting) removeSent(t *tx, r record) {
	var sent core.Sent
	w, err := decodeRecord(r.value)
	if err != nil || r.key.Part == 0 || json.Unmarshal(w.Data, &sent) != nil {
		return
	}
	p := t.resolve(sent.Path)
	seq, known := t.findID(p, sent.ID)
	if known {
		f.addReply(p.path, sent.ID)
		t.remove(p.key, seq)
	}
}
