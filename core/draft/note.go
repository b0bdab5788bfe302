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
	"synthbot/core/sorting"
)

// note says which message is a draft, or how to find it. Drivers of the same bot
// share the notes: after a reload the one before may still write turns to their end.
type note struct {
	Place string    `json:"channel,omitempty"` // "" in old notes: the map's key
	ID    string    `json:"id,omitempty"`
	Nonce string    `json:"nonce,omitempty"` // without ID: of the request
	Sum   string    `json:"sum,omitempty"`   // without ID: of its text
	After string    `json:"after,omitempty"` // without ID: the newest message before it
	At    time.Time `json:"at,omitzero"`     // when it was requested, or was to become an answer
	Key   string    `json:"key,omitempty"`   // of the part that it becomes
	Final string    `json:"final,omitempty"` // the sum of the answer's text
}

// UnmarshalJSON also reads old notes, which were a message's id alone, and ids that are
// numbers.
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

// notes are stored by their keys.
type notes map[string]note

// UnmarshalJSON also reads the keys of old notes, which were places.
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

// key tells notes apart.
func (n *note) key() string {
	if n.ID == "" {
		return strings.TrimSpace(n.Place + " ?" + n.Nonce)
	}
	return n.Place + " " + n.ID
}

// answer reports whether the message may be an answer.
func (n *note) answer() bool { return n.Key != "" || n.Final != "" }

// sumOf identifies a text.
func sumOf(text string) string {
	sum := sha256.Sum256([]byte(strings.TrimSpace(text)))
	return hex.EncodeToString(sum[:])
}

// note writes a note in place of others. It returns false if that failed.
func (d *Drafts) note(ctx context.Context, n note, old ...note) bool {
	return d.change(ctx, func(all notes) {
		for _, o := range old {
			delete(all, o.key())
			delete(d.own, o.key())
			delete(d.left, o.key())
		}
		if d.opt.Reader == nil && !n.answer() { // nobody can find out what became of older ones
			maps.DeleteFunc(all, func(_ string, old note) bool { return old.Place == n.Place && old.answer() })
		}
		all[n.key()] = n
		d.own[n.key()] = true
	})
}

func (d *Drafts) forget(ctx context.Context, n note) {
	d.change(ctx, func(all notes) {
		delete(d.left, n.key())
		delete(d.own, n.key())
		delete(all, n.key())
	})
}

// change changes the notes, also if ctx has ended: a missing note would cost an
// answer. It returns false if that failed.
func (d *Drafts) change(ctx context.Context, f func(notes)) bool {
	d.notes.Lock()
	defer d.notes.Unlock()
	d.recall(ctx)
	_, err := driver.Update(context.WithoutCancel(ctx), d.opt.State, d.opt.Key, func(all *notes) bool {
		if *all == nil {
			*all = notes{}
		}
		f(*all)
		return true
	})
	if err != nil {
		d.opt.Log.Error("draft not noted", "err", err)
	}
	return err == nil
}

// read returns the notes. Damaged notes count as none.
func (d *Drafts) read(ctx context.Context) (notes, error) {
	raw, err := d.opt.State.Get(context.WithoutCancel(ctx), d.opt.Key)
	all := notes{}
	if err == nil {
		_ = json.Unmarshal(raw, &all)
	}
	return all, err
}

// Begin is called before the driver takes events in: another process may have spoken in its places since
// the driver did, and what that left is to be deleted.
func (d *Drafts) Begin() {
	d.notes.Lock()
	defer d.notes.Unlock()
	d.left = nil
}

// recall reads once after Begin what others left, and returns it. d.notes is held.
func (d *Drafts) recall(ctx context.Context) notes {
	if d.left == nil {
		d.left, _ = d.read(ctx)
		maps.DeleteFunc(d.left, func(key string, _ note) bool { return d.own[key] })
	}
	return d.left
}

// leave notes that a draft of this process may exist, or may be the answer already.
func (d *Drafts) leave(n note) {
	d.notes.Lock()
	defer d.notes.Unlock()
	d.recall(context.Background())[n.key()] = n
}

// leftIn lists what is left over in a place, or with "" in all of them. What another
// driver has finished, or goes on with, is not left over.
func (d *Drafts) leftIn(ctx context.Context, place string) (list []note) {
	d.notes.Lock()
	defer d.notes.Unlock()
	for _, n := range d.recall(ctx) {
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
			delete(d.left, n.key())
		}
		return gone
	})
}

// Clear deletes what an earlier process left in a place. It is called before anything
// is said there.
func (d *Drafts) Clear(ctx context.Context, place string) {
	for _, n := range d.leftIn(ctx, place) {
		switch {
		case n.ID == "":
			d.clearUnknown(ctx, n)
		case !n.answer():
			d.erase(ctx, n)
		case d.opt.Reader != nil && time.Since(n.At) >= d.opt.Left: // who tries again is done by now
			text, ok, err := d.opt.Reader.Read(ctx, n.Place, n.ID)
			switch {
			case err != nil:
				d.opt.Log.Warn("left-over draft not read", "path", n.Place, "err", err)
			case ok && sumOf(text) != n.Final: // it did not become the answer
				d.erase(ctx, n)
			default:
				d.forget(ctx, n)
			}
		}
	}
}

// ClearSoon does Clear in the background, if anything is left over in the place.
func (d *Drafts) ClearSoon(place string) {
	if len(d.leftIn(context.Background(), place)) > 0 {
		d.opt.Start(func(ctx context.Context) { d.Clear(ctx, place) })
	}
}

// ClearLater does Clear in all places after a while. It is called once after Begin, and
// returns when it is done or ctx ends.
func (d *Drafts) ClearLater(ctx context.Context) {
	d.leftIn(ctx, "") // what others leave from now on is still theirs
	if !driver.Sleep(ctx, d.opt.Left) {
		return
	}
	for _, n := range d.leftIn(ctx, "") {
		leave, ok := d.enter(ctx, n.Place, "")
		if !ok {
			return
		}
		d.Clear(ctx, n.Place)
		leave()
	}
}

// clearUnknown deletes a draft whose id was not noted: a message of the bot's own that came next and says
// the same. It is searched for again for a while, because its request may still be on its way.
func (d *Drafts) clearUnknown(ctx context.Context, n note) {
	if d.opt.Reader == nil || n.Nonce == "" { // in old notes: answers may say what that draft says
		d.forget(ctx, n)
	}
	if d.opt.Reader == nil {
		return
	}
	found, err := d.search(ctx, n)
	switch {
	case err != nil:
		d.opt.Log.Warn("left-over draft not searched for", "path", n.Place, "err", err)
	case found.ID != "":
		d.note(ctx, found, n)
		d.erase(ctx, found)
	case time.Since(n.At) >= d.opt.Left:
		d.forget(ctx, n)
	}
}

// search finds the message of a note without an id. Messages with notes of their own are others.
func (d *Drafts) search(ctx context.Context, n note) (found note, err error) {
	all, err := d.read(ctx)
	same := func(text string) bool { return sumOf(text) == n.Sum }
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

// erase deletes a message that never became an answer, or leaves that for later.
func (d *Drafts) erase(ctx context.Context, n note) {
	err := d.opt.Platform.Delete(ctx, n.Place, n.ID)
	if err == nil {
		d.forget(ctx, n)
		return
	}
	d.opt.Log.Warn("draft not deleted", "path", n.Place, "err", err)
	n = note{Place: n.Place, ID: n.ID}
	d.note(ctx, n)
	d.leave(n)
}
