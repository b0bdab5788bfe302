package draft

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"synthbot/core/driver"
	"synthbot/core/loop"
	"synthbot/core/sorting"
)

// note says which message is a draft, or how to find it. Drivers of the same bot share the notes: after a
// reload, the former driver may still finish its turns.
type note struct {
	Place string    `json:"channel,omitempty"` // "" in old notes: the map's key
	ID    string    `json:"id,omitempty"`
	Nonce string    `json:"nonce,omitempty"` // without ID: of the request
	Sum   string    `json:"sum,omitempty"`   // without ID: hash of its text
	After string    `json:"after,omitempty"` // without ID: the newest message before it
	At    time.Time `json:"at,omitzero"`     // when the Post, or the edit into an answer, was requested
	Key   string    `json:"key,omitempty"`   // of the part that it becomes
	Final string    `json:"final,omitempty"` // hash of the answer's text
	Gone  bool      `json:"gone,omitempty"`  // it is being deleted, so it cannot become an answer
}

// UnmarshalJSON also accepts old notes, which were only a message's id, and numeric ids.
func (n *note) UnmarshalJSON(data []byte) error {
	if data[0] != '{' {
		data = fmt.Appendf(nil, `{"id":%s}`, data)
	}
	type fields note
	stored := struct {
		*fields
		ID json.RawMessage `json:"id"`
	}{fields: (*fields)(n)}
	err := json.Unmarshal(data, &stored)
	n.ID = strings.Trim(string(stored.ID), `"`)
	return err
}

type notes map[string]note

// UnmarshalJSON also accepts the keys of old notes, which were places.
func (all *notes) UnmarshalJSON(data []byte) error {
	stored := map[string]note{}
	err := json.Unmarshal(data, &stored)
	*all = notes{}
	for key, n := range stored {
		if n.Place == "" {
			n.Place = key
		}
		(*all)[n.key()] = n
	}
	return err
}

func (n *note) key() string {
	if n.ID == "" {
		return strings.TrimSpace(n.Place + " ?" + n.Nonce)
	}
	return n.Place + " " + n.ID
}

// mayBeAnswer reports whether the message may already be an answer.
func (n *note) mayBeAnswer() bool { return n.Key != "" || n.Final != "" }

// hashOf returns the hash of a text, in hexadecimal.
func hashOf(text string) string {
	sum := sha256.Sum256([]byte(strings.TrimSpace(text)))
	return hex.EncodeToString(sum[:])
}

// saveNote stores a note and removes old ones. It returns false if that failed, or if another driver is deleting
// the message.
func (d *Drafts) saveNote(ctx context.Context, n note, old ...note) bool {
	return d.changeNotes(ctx, old, func(all notes) bool {
		if all[n.key()].Gone && !n.Gone {
			return false
		}
		if d.opt.Reader == nil && !n.mayBeAnswer() { // without a Reader, the fate of older ones stays unknown
			maps.DeleteFunc(all, func(_ string, old note) bool { return old.Place == n.Place && old.mayBeAnswer() })
		}
		all[n.key()] = n
		d.own[n.key()] = true
		return true
	})
}

func (d *Drafts) removeNote(ctx context.Context, n note) {
	d.changeNotes(ctx, []note{n}, func(notes) bool { return true })
}

// changeNotes removes old notes and calls add, even if ctx has ended: the notes must match what was requested.
// It returns false if add does, or if the notes could not be stored.
func (d *Drafts) changeNotes(ctx context.Context, old []note, add func(notes) bool) bool {
	d.notesMu.Lock()
	defer d.notesMu.Unlock()
	d.leftovers(ctx)
	ok, err := driver.Update(context.WithoutCancel(ctx), d.opt.State, d.opt.Key, func(all *notes) bool {
		if *all == nil {
			*all = notes{}
		}
		for _, o := range old {
			delete(*all, o.key())
			delete(d.own, o.key())
			delete(d.leftover, o.key())
		}
		return add(*all)
	})
	if err != nil {
		d.opt.Log.Error("draft not stored", "err", err)
	}
	return ok
}

// read returns the notes. Damaged notes are ignored.
func (d *Drafts) read(ctx context.Context) (notes, error) {
	raw, err := d.opt.State.Get(context.WithoutCancel(ctx), d.opt.Key)
	all := notes{}
	if err == nil {
		_ = json.Unmarshal(raw, &all)
	}
	return all, err
}

// Begin is called each time before the driver starts to receive events. Another process may have served its
// places before, and left drafts behind.
func (d *Drafts) Begin() {
	d.notesMu.Lock()
	defer d.notesMu.Unlock()
	d.leftover = nil
}

// leftovers returns the notes that others left behind, which it reads once after Begin. d.notesMu is held.
func (d *Drafts) leftovers(ctx context.Context) notes {
	if d.leftover == nil {
		d.leftover, _ = d.read(ctx)
		maps.DeleteFunc(d.leftover, func(key string, _ note) bool { return d.own[key] })
	}
	return d.leftover
}

// addLeftover adds a note of this process to the leftovers: its message may exist, or may already be the answer.
func (d *Drafts) addLeftover(n note) {
	d.notesMu.Lock()
	defer d.notesMu.Unlock()
	d.leftovers(context.Background())[n.key()] = n
}

// leftoversIn lists the notes that were left behind in a place, or in all places for "". It leaves out those that
// another driver has finished or changed since.
func (d *Drafts) leftoversIn(ctx context.Context, place string) (list []note) {
	d.notesMu.Lock()
	defer d.notesMu.Unlock()
	for _, n := range d.leftovers(ctx) {
		if place == "" || n.Place == place {
			list = append(list, n)
		}
	}
	if len(list) == 0 {
		return nil
	}
	now, err := d.read(ctx)
	if err != nil {
		return nil
	}
	sorting.Sort(list, func(a, b note) int { return strings.Compare(a.key(), b.key()) })
	return slices.DeleteFunc(list, func(n note) bool {
		noted, ok := now[n.key()]
		gone := !ok || noted.Key != n.Key
		if gone {
			delete(d.leftover, n.key())
		}
		return gone
	})
}

// unreadableAge is the age from which the note of a message that the platform does not let the bot read is given up.
const unreadableAge = 24 * time.Hour

// Clear deletes the drafts that an earlier process left behind in a place. It is called before anything is
// sent there, and blocks until the platform has responded.
func (d *Drafts) Clear(ctx context.Context, place string) {
	for _, n := range d.leftoversIn(ctx, place) {
		switch {
		case n.ID == "":
			d.clearUnknown(ctx, n)
		case !n.mayBeAnswer():
			d.deleteLeftover(ctx, n, n)
		case d.opt.Reader != nil && time.Since(n.At) >= d.opt.Left: // retries have ended by now
			text, ok, err := d.opt.Reader.Read(ctx, n.Place, n.ID)
			switch {
			case err != nil && d.opt.Platform.Outcome(err) == Refused && time.Since(n.At) >= unreadableAge:
				d.removeNote(ctx, n)
			case err != nil: // the place may be closed to the bot for a while
				d.opt.Log.Warn("left-over draft not read", "path", n.Place, "err", err)
			case ok && hashOf(text) != n.Final: // the message did not become the answer
				d.deleteLeftover(ctx, n, n)
			default:
				d.removeNote(ctx, n)
			}
		}
	}
}

// ClearSoon calls Clear in the background if anything was left behind in the place.
func (d *Drafts) ClearSoon(place string) {
	if len(d.leftoversIn(context.Background(), place)) > 0 {
		d.opt.Start(func(ctx context.Context) { d.Clear(ctx, place) })
	}
}

// ClearLater calls Clear for all places after Options.Left. It is called once after Begin, and blocks until
// it is done or ctx ends.
func (d *Drafts) ClearLater(ctx context.Context) {
	d.leftoversIn(ctx, "") // remembers what was left behind; drafts that others start from now on stay
	if !loop.Sleep(ctx, d.opt.Left) {
		return
	}
	for _, n := range d.leftoversIn(ctx, "") {
		leave, ok := d.enter(ctx, n.Place, "")
		if !ok {
			return
		}
		d.Clear(ctx, n.Place)
		leave()
	}
}

// clearUnknown deletes a draft whose id is unknown: it searches for the bot's next message with the same
// text. The note stays for a while, because the request may still be on its way; but not an old one, because
// answers may have the same text as that draft.
func (d *Drafts) clearUnknown(ctx context.Context, n note) {
	if d.opt.Reader == nil {
		d.removeNote(ctx, n)
		return
	}
	found, err := d.search(ctx, n)
	if err != nil {
		d.opt.Log.Warn("left-over draft not searched for", "path", n.Place, "err", err)
	}
	switch {
	case found.ID != "":
		d.deleteLeftover(ctx, n, found)
	case n.Nonce == "" || err == nil && time.Since(n.At) >= d.opt.Left:
		d.removeNote(ctx, n)
	}
}

// search finds the message of a note without an id. It skips messages that have their own notes.
func (d *Drafts) search(ctx context.Context, n note) (found note, err error) {
	all, err := d.read(ctx)
	same := func(text string) bool { return hashOf(text) == n.Sum }
	found = note{Place: n.Place}
	for after := n.After; err == nil; after = found.ID {
		found.ID, err = d.opt.Reader.Search(ctx, n.Place, n.At, after, same)
		_, noted := all[found.key()]
		if found.ID == "" || !noted {
			break
		}
	}
	return found, err
}

// deleteLeftover deletes the message of n, and first replaces a left-over note with n. It does nothing if another
// driver has finished that draft, or begun to make it an answer.
func (d *Drafts) deleteLeftover(ctx context.Context, leftover, n note) {
	claimed := d.changeNotes(ctx, nil, func(all notes) bool {
		now, ok := all[leftover.key()]
		if !ok || now.Key != leftover.Key {
			return false
		}
		delete(all, leftover.key())
		n.Gone = true
		all[n.key()] = n
		return true
	})
	if claimed {
		d.deleteMessage(ctx, n)
	}
}

// deleteMessage deletes a message that did not become an answer. If that fails, it is retried later.
func (d *Drafts) deleteMessage(ctx context.Context, n note) {
	err := d.opt.Platform.Delete(ctx, n.Place, n.ID)
	if err == nil {
		d.removeNote(ctx, n)
		return
	}
	d.opt.Log.Warn("draft not deleted", "path", n.Place, "err", err)
	n = note{Place: n.Place, ID: n.ID, Gone: true}
	d.saveNote(ctx, n)
	d.addLeftover(n)
}
