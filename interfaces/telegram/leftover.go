package telegram

import (
	"context"
	"encoding/json"
	"maps"
	"slices"

	"synthbot/core"
)

// This file knows which messages stand in for drafts, also those of a former
// life.

// draftNote is what is kept in mind of a message that stands in for a draft, one at most
// in each place.
type draftNote struct {
	ID  int64  `json:"id"`
	Key string `json:"key,omitempty"` // of the part that it becomes: it is no draft any more
}

// UnmarshalJSON reads a note; once it was nothing but the message's id.
func (n *draftNote) UnmarshalJSON(data []byte) error {
	type fields draftNote
	if json.Unmarshal(data, &n.ID) == nil {
		return nil
	}
	return json.Unmarshal(data, (*fields)(n))
}

func leftDraft(a *draft) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.left
}

// begin forgets a message that stood in and has become something else.
func (a *draft) begin() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.id, a.heir = 0, false
}

// stands returns the message that stands in for a draft; 0: none does. What
// another life showed may have become an answer since.
func (d *Driver) stands(ctx context.Context, a *draft) int64 {
	a.mu.Lock()
	message, heir := a.id, a.heir
	a.mu.Unlock()
	if heir && d.noted(ctx, a.at) != (draftNote{ID: message}) {
		return 0
	}
	return message
}

// inherit leaves a message of another life that stands in for the next one to take.
func (l *drafts) inherit(s spot, message int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.all[s] == nil {
		l.all[s] = &draft{at: s, id: message, left: true, heir: true, end: make(chan struct{})}
	}
}

// noteDraft keeps in mind what stands in; false: that failed.
func (d *Driver) noteDraft(ctx context.Context, s spot, n draftNote) bool {
	return d.changeNotes(ctx, func(all map[string]draftNote) { all[d.draftName(s)] = n })
}

// forgetDraft drops the note of a message that stands in no more. Another one
// may do so in its place already.
func (d *Driver) forgetDraft(ctx context.Context, s spot, message int64) {
	d.changeNotes(ctx, func(all map[string]draftNote) {
		if all[d.draftName(s)].ID == message {
			delete(all, d.draftName(s))
		}
	})
}

// changeNotes changes the notes; false: that failed.
func (d *Driver) changeNotes(ctx context.Context, change func(map[string]draftNote)) bool {
	d.drafts.noting.Lock()
	defer d.drafts.noting.Unlock()
	ctx = context.WithoutCancel(ctx)
	all := d.notedDrafts(ctx)
	change(all)
	raw, err := json.Marshal(all)
	if err == nil {
		err = d.opt.State.Put(ctx, d.draftKey(), raw)
	}
	if err != nil {
		d.log.Error("drafts are not noted", "err", err)
	}
	return err == nil
}

// draftKey is the key of the notes: another bot's messages are not ours to take.
func (d *Driver) draftKey() string {
	if d.places.account == 0 {
		return draftKey
	}
	return draftKey + "." + id(d.places.account)
}

func (d *Driver) draftName(s spot) string { return place(d.opt.Name, s.chat, s.thread).String() }

// noted is the note of a place.
func (d *Driver) noted(ctx context.Context, s spot) draftNote {
	return d.notedDrafts(context.WithoutCancel(ctx))[d.draftName(s)]
}

func (d *Driver) notedDrafts(ctx context.Context) map[string]draftNote {
	all := map[string]draftNote{}
	raw, _ := d.opt.State.Get(ctx, d.draftKey())
	_ = json.Unmarshal(raw, &all) // what cannot be read is not there
	return all
}

// loadDrafts takes up what a former life left standing.
func (d *Driver) loadDrafts(ctx context.Context) {
	for key, n := range d.notedDrafts(ctx) {
		p, _ := core.ParsePath(key)
		if s, err := spotOf(d.opt.Name, p); err == nil {
			d.drafts.inherit(s, n.ID)
		}
	}
}

// clearDrafts takes away what nobody has taken up for a while.
func (d *Driver) clearDrafts(ctx context.Context) {
	if sleep(ctx, draftLeft) != nil {
		return
	}
	d.drafts.mu.Lock()
	places := slices.Collect(maps.Keys(d.drafts.all))
	d.drafts.mu.Unlock()
	for _, s := range places {
		d.dropDraft(s, leftDraft)
	}
}

// passDraft takes away what a former life left in a place that has moved on.
func (d *Driver) passDraft(p core.Path) {
	if s, err := spotOf(d.opt.Name, p); err == nil {
		d.dropDraft(s, leftDraft)
	}
}
