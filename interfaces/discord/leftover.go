package discord

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"

	"synthbot/interfaces/discord/rest"
)

// This file keeps in mind which drafts stand, so that neither a crash nor a reload
// leaves one, and none is deleted that has become an answer. The notes are shared: the
// driver of the configuration before may still write turns to their end.

// draftKey is the State's key of the drafts that stand.
const draftKey = "drafts"

// draftNote is what is kept in mind of a draft: its message, or, while its id is not
// known, how to find it.
type draftNote struct {
	Channel string    `json:"channel,omitempty"` // "": the key of the note, as it was once
	ID      string    `json:"id,omitempty"`
	Sum     string    `json:"sum,omitempty"`   // without ID: of its text
	At      time.Time `json:"at,omitzero"`     // when its message was asked for, or was to become an answer
	After   string    `json:"after,omitempty"` // without ID: the newest message before
	Key     string    `json:"key,omitempty"`   // of the part that it becomes
	Final   string    `json:"final,omitempty"` // it becomes an answer, and this is the sum of its text
}

// key tells notes apart: in a channel, one message at most is on its way.
func (n *draftNote) key() string { return cmp.Or(n.ID, n.Channel) }

// sumOf stands for a text.
func sumOf(text string) string {
	sum := sha256.Sum256([]byte(strings.TrimSpace(text)))
	return hex.EncodeToString(sum[:])
}

// noteDraft notes a draft; what was noted before its id was known is replaced. false:
// that failed.
func (d *Driver) noteDraft(ctx context.Context, n draftNote) bool {
	return d.changeNotes(ctx, func(all map[string]draftNote) {
		delete(all, n.Channel)
		all[n.key()] = n
	})
}

// forgetDraft drops the note of a draft.
func (d *Driver) forgetDraft(ctx context.Context, n draftNote) {
	d.changeNotes(ctx, func(all map[string]draftNote) {
		delete(d.drafts.left, n.key())
		delete(all, n.key())
	})
}

// changeNotes changes the notes, whatever becomes of ctx: a note that stays behind would
// cost an answer. false: that failed.
func (d *Driver) changeNotes(ctx context.Context, change func(map[string]draftNote)) bool {
	d.drafts.notes.Lock()
	defer d.drafts.notes.Unlock()
	ctx = context.WithoutCancel(ctx)
	d.recallDrafts(ctx)
	all := d.notedDrafts(ctx)
	change(all)
	raw, err := json.Marshal(all)
	if err == nil {
		err = d.state.Put(ctx, draftKey, raw)
	}
	if err != nil {
		d.log.Error("a draft is not noted", "err", err)
	}
	return err == nil
}

// notedDrafts reads the notes by key.
func (d *Driver) notedDrafts(ctx context.Context) map[string]draftNote {
	all := make(map[string]draftNote)
	raw, _ := d.state.Get(ctx, draftKey)
	_ = json.Unmarshal(raw, &all) // what cannot be read is not there
	for key, n := range all {
		if n.Channel == "" {
			delete(all, key)
			n.Channel = key
			all[n.key()] = n
		}
	}
	return all
}

// recallDrafts learns once what others left. The notes are locked.
func (d *Driver) recallDrafts(ctx context.Context) {
	if d.drafts.left == nil {
		d.drafts.left = d.notedDrafts(ctx)
	}
}

// leave notes that a draft of ours may stand, or be the answer already.
func (d *Driver) leave(n draftNote) {
	d.drafts.notes.Lock()
	defer d.drafts.notes.Unlock()
	d.recallDrafts(context.Background())
	d.drafts.left[n.key()] = n
}

// leftIn lists what was left standing in a channel, or with "" in all of them, as far
// as nobody was done with it since.
func (d *Driver) leftIn(ctx context.Context, channel string) (list []draftNote) {
	d.drafts.notes.Lock()
	defer d.drafts.notes.Unlock()
	d.recallDrafts(context.WithoutCancel(ctx))
	if len(d.drafts.left) == 0 {
		return nil
	}
	now := d.notedDrafts(context.WithoutCancel(ctx))
	for _, key := range slices.Sorted(maps.Keys(d.drafts.left)) {
		n := d.drafts.left[key]
		there, noted := now[key]
		switch {
		case channel != "" && n.Channel != channel:
		case noted && there.Key == n.Key:
			list = append(list, n)
		default:
			delete(d.drafts.left, key)
		}
	}
	return list
}

// resume makes the draft this part's answer that was to become it in another try.
func (d *Driver) resume(ctx context.Context, channel string, m *outgoing) (id string, err error) {
	for _, n := range d.leftIn(ctx, channel) {
		if n.Key != "" && n.Key == m.Nonce {
			return d.become(ctx, n, m)
		}
	}
	return "", nil
}

// clearOld takes away what was left standing in a channel, before anything else is
// said there. The channel's lane is held.
func (d *Driver) clearOld(ctx context.Context, channel string) {
	for _, n := range d.leftIn(ctx, channel) {
		switch {
		case n.ID == "":
			d.clearUnknown(ctx, n)
		case n.Final == "":
			d.eraseDraft(ctx, n)
		case time.Since(n.At) >= d.tempo.left: // whoever tries again looks for it by now
			d.clearAnswer(ctx, n)
		}
	}
}

// clearUnknown deletes a draft of a former life whose id was not known: the message of
// ours that came next and says what was noted. It is looked for once, since what is
// said from now on may say the same.
func (d *Driver) clearUnknown(ctx context.Context, n draftNote) {
	d.forgetDraft(ctx, n)
	id, err := d.search(ctx, n.Channel, n.At, func(m *message) bool {
		return newer(m.ID, n.After) && sumOf(m.Content) == n.Sum
	})
	if err != nil {
		d.log.Warn("whether a draft was left is not known", "channel", n.Channel, "err", err)
	}
	if id != "" {
		n = draftNote{Channel: n.Channel, ID: id}
		d.noteDraft(ctx, n)
		d.eraseDraft(ctx, n)
	}
}

// clearAnswer deletes a draft that was to become an answer and did not.
func (d *Driver) clearAnswer(ctx context.Context, n draftNote) {
	var m message
	err := d.rest.Do(ctx, rest.Request{Method: "GET", Route: "/channels/{}/messages/{}", IDs: []string{n.Channel, n.ID}, Out: &m})
	switch {
	case err == nil && sumOf(m.Content) != n.Final:
		d.eraseDraft(ctx, n)
	case err == nil, rest.NotFound(err), closedTo(err):
		d.forgetDraft(ctx, n)
	default:
		d.log.Warn("whether a draft was left is not known", "channel", n.Channel, "err", err)
	}
}

// clearDrafts takes away what nobody has taken up for a while.
func (d *Driver) clearDrafts(ctx context.Context) error {
	d.leftIn(ctx, "") // what others leave from now on is still theirs
	if !rest.Sleep(ctx, d.tempo.left) {
		return nil
	}
	for _, n := range d.leftIn(ctx, "") {
		leave, err := d.lanes.enter(ctx, n.Channel, low)
		if err != nil {
			return nil //nolint:nilerr // ctx ended
		}
		d.clearOld(ctx, n.Channel)
		leave()
	}
	return nil
}
