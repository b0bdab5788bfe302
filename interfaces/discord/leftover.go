package discord

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"
)

// This file keeps in mind which drafts stand, so that neither a crash nor a
// reload leaves one, and none is taken away that has become an answer. The notes
// are shared: the driver of the configuration before may still write turns to
// their end.

// draftKey is the State's key of the drafts that stand.
const draftKey = "drafts"

// draftNote is what is kept in mind of a draft: its message, or, before that is
// known, what it says.
type draftNote struct {
	ID    string    `json:"id,omitempty"`
	Sum   string    `json:"sum,omitempty"`
	At    time.Time `json:"at,omitzero"`
	Final string    `json:"final,omitempty"` // it becomes an answer, which says this
}

// sumOf stands for a text.
func sumOf(text string) string {
	sum := sha256.Sum256([]byte(strings.TrimSpace(text)))
	return hex.EncodeToString(sum[:])
}

// leftover is a draft that may stand though nobody writes it any more.
type leftover struct {
	draftNote
	own  bool          // of this life
	done chan struct{} // nil: nobody takes it away yet; closed when it is gone
}

// noteDraft notes a channel's draft.
func (d *Driver) noteDraft(ctx context.Context, channel string, n draftNote) {
	d.changeNotes(ctx, func(all map[string]draftNote) bool {
		all[channel] = n
		return true
	})
}

// forgetDraft drops a note, unless it is another one's by now.
func (d *Driver) forgetDraft(ctx context.Context, channel string, n draftNote) {
	d.changeNotes(ctx, func(all map[string]draftNote) bool {
		if there, ok := all[channel]; !ok || there.ID != n.ID || there.Sum != n.Sum {
			return false
		}
		delete(all, channel)
		return true
	})
}

// changeNotes changes the notes where change returns true, whatever becomes of
// ctx: a note that stays behind would cost an answer.
func (d *Driver) changeNotes(ctx context.Context, change func(map[string]draftNote) bool) {
	d.drafts.notes.Lock()
	defer d.drafts.notes.Unlock()
	ctx = context.WithoutCancel(ctx)
	d.recallDrafts(ctx)
	all := d.notedDrafts(ctx)
	if !change(all) {
		return
	}
	raw, err := json.Marshal(all)
	if err == nil {
		err = d.state.Put(ctx, draftKey, raw)
	}
	if err != nil {
		d.log.Error("a draft is not noted", "error", err)
	}
}

// notedDrafts reads the notes, by channel.
func (d *Driver) notedDrafts(ctx context.Context) map[string]draftNote {
	all := make(map[string]draftNote)
	if raw, err := d.state.Get(ctx, draftKey); err == nil && raw != nil {
		_ = json.Unmarshal(raw, &all) // what cannot be read is not there
	}
	return all
}

// recallDrafts learns once what others left. The notes are locked.
func (d *Driver) recallDrafts(ctx context.Context) {
	if d.drafts.left != nil {
		return
	}
	d.drafts.left = make(map[string]*leftover)
	for channel, n := range d.notedDrafts(ctx) {
		d.drafts.left[channel] = &leftover{draftNote: n}
	}
}

// leave notes that a draft of ours may stand, or be the answer already.
func (d *Driver) leave(channel string, n draftNote) {
	d.drafts.notes.Lock()
	defer d.drafts.notes.Unlock()
	d.drafts.left[channel] = &leftover{draftNote: n, own: true}
}

// clearOld takes away what was left standing in a channel, before anything else
// is said there. It returns the message of a draft that has become the answer of
// that text, of which nobody knew whether it did.
func (d *Driver) clearOld(ctx context.Context, channel, text string) (answer string) {
	d.drafts.notes.Lock()
	d.recallDrafts(context.WithoutCancel(ctx))
	old := d.drafts.left[channel]
	mine := old != nil && old.done == nil
	if mine {
		old.done = make(chan struct{})
	}
	d.drafts.notes.Unlock()
	switch {
	case old == nil:
	case !mine:
		received(ctx, old.done)
	default:
		defer close(old.done)
		final := d.clear(ctx, channel, old.draftNote)
		if final != "" && old.own && sumOf(text) == old.Final {
			answer = final
		}
		d.drafts.notes.Lock()
		defer d.drafts.notes.Unlock()
		delete(d.drafts.left, channel)
	}
	return answer
}

// clear takes a draft away that is noted still. Where its message was not known
// yet, it is the one that says what was noted. One that has become an answer
// stays, and is returned.
func (d *Driver) clear(ctx context.Context, channel string, n draftNote) (final string) {
	now := d.notedDrafts(context.WithoutCancel(ctx))[channel]
	if now.ID != n.ID || now.Sum != n.Sum {
		return "" // whoever wrote it was done with it
	}
	id, err := now.ID, error(nil)
	switch {
	case id == "":
		id, err = d.search(ctx, channel, now.At, func(m *message) bool { return sumOf(m.Content) == now.Sum })
	case now.Final != "":
		final, err = d.final(ctx, channel, now)
	}
	switch {
	case err != nil:
		d.log.Warn("whether a draft was left is not known", "channel", channel, "error", err)
		return ""
	case id != "" && final == "" && !d.erase(ctx, channel, id):
		return ""
	}
	d.forgetDraft(ctx, channel, now)
	return final
}

// final returns the draft's message where it is the answer that it was to become.
func (d *Driver) final(ctx context.Context, channel string, n draftNote) (string, error) {
	var m message
	err := d.rest.do(ctx, request{method: "GET", route: "/channels/{}/messages/{}", ids: []string{channel, n.ID}, out: &m})
	switch {
	case err == nil && sumOf(m.Content) == n.Final:
		return n.ID, nil
	case err != nil && !notFound(err) && !closedTo(err):
		return "", err
	}
	return "", nil
}

// clearDrafts takes away what nobody has taken up for a while.
func (d *Driver) clearDrafts(ctx context.Context) error {
	d.drafts.notes.Lock()
	d.recallDrafts(ctx)
	channels := slices.Collect(maps.Keys(d.drafts.left))
	d.drafts.notes.Unlock()
	if len(channels) == 0 || !sleep(ctx, d.tempo.left) {
		return nil
	}
	for _, channel := range channels {
		d.clearOld(ctx, channel, "")
	}
	return nil
}
