package moderation

import (
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"synthbot/core"
	"synthbot/core/epochs"
	"synthbot/core/gate"
	"synthbot/core/loop"
	"synthbot/core/sorting"
	"synthbot/core/values"
)

// Keys of items. Except for the first and the last, something follows.
const (
	hashKey      = "key"
	holdKey      = "hold "
	logKey       = "log "
	didKey       = "did "
	appealKey    = "appeal "
	moderatorKey = "moderator "
	muteKey      = "mute"
)

const maxModerators = 4_096

const openTimeout = 20 * time.Second // how long reading all items may take

// records holds all holds and events, in memory and in the store. It is safe for concurrent use.
type records struct {
	host core.Host
	wake chan struct{} // the queue is not empty

	stale chan struct{} // another process changed stored items

	// change is held while a change is decided and stored, and while a user is forgotten. It is locked before mu.
	change sync.Mutex

	mu         sync.Mutex // guards the fields below
	opened     bool
	hashKey    []byte // nil: no user is blocked or muted; once opened, it changes under change only
	holds      holds
	moderators map[seenModerator]bool
	log        modLog
	queue      queue
}

type seenModerator struct{ user, group core.Path }

// holdValue is the value of a hold's item without a path, and of a place's mute.
type holdValue struct {
	At     time.Time `json:"at"`
	Until  time.Time `json:"until,omitzero"`
	Number uint64    `json:"number,omitzero"`
}

// detail is the value of a hold's item under the user's path.
type detail struct {
	Name   string    `json:"name,omitempty"`
	Tag    string    `json:"tag,omitempty"`
	Reason string    `json:"reason,omitempty"`
	At     time.Time `json:"at"`
	Until  time.Time `json:"until,omitzero"`
}

// clear drops all holds and events from memory, so that open reads them again. The caller holds mu,
// or is the constructor.
func (r *records) clear() {
	r.opened, r.hashKey, r.log.events = false, nil, nil
	r.holds, r.moderators = make(holds), make(map[seenModerator]bool)
}

// reopen stores what is queued, and reads the stored items again.
func (r *records) reopen(ctx context.Context) error {
	r.flush(ctx)
	r.change.Lock()
	defer r.change.Unlock()
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.opened {
		return nil
	}
	if len(r.queue.items) > 0 { // storing failed: try again later
		time.AfterFunc(writeTimeout, func() { loop.Notify(r.stale) })
		return nil
	}
	r.clear()
	return r.open(ctx)
}

// open reads the stored items, once. The caller holds mu.
func (r *records) open(ctx context.Context) error {
	if r.opened {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, openTimeout)
	defer cancel()
	items, err := r.host.Items.List(ctx, core.Path{})
	if err != nil {
		return fmt.Errorf("list: %w", err)
	}
	for i := range items { // the other items need the key
		if items[i].Path.IsZero() && items[i].Key == hashKey {
			err = r.readKey(&items[i])
		}
	}
	if err != nil {
		return err
	}
	var deeds []core.Item
	for i := range items {
		if strings.HasPrefix(items[i].Key, didKey) {
			deeds = append(deeds, items[i])
			continue
		}
		if err := r.read(&items[i]); err != nil {
			r.host.Log.Warn("an item cannot be read", "path", items[i].Path, "key", items[i].Key, "err", err)
		}
	}
	orphans, err := r.log.finish(deeds)
	if err != nil {
		r.host.Log.Warn("a deed cannot be read", "err", err)
	}
	r.opened = true
	r.enqueue(removals(orphans)...)
	return nil
}

func (r *records) readKey(item *core.Item) error {
	var key []byte
	err := item.Decode(&key)
	if err == nil && len(key) != keySize {
		err = fmt.Errorf("key: it has %d bytes", len(key))
	}
	if err == nil {
		r.hashKey = key
	}
	return err
}

// read adds a stored item. Items are in the order of their paths, so holds come before their
// details. The caller holds mu.
func (r *records) read(item *core.Item) error {
	name, rest, _ := strings.Cut(item.Key, " ")
	switch name + " " {
	case holdKey:
		if !item.Path.IsZero() {
			return r.readDetail(item)
		}
		h, ok := parseHoldKey(item.Key)
		if !ok {
			return fmt.Errorf("%q is not the key of a hold", item.Key)
		}
		var v holdValue
		if err := item.Decode(&v); err != nil {
			return err
		}
		h.until, h.number = v.Until, v.Number
		r.holds.set(h)
	case logKey, appealKey:
		return r.log.read(item, rest)
	case moderatorKey:
		group, err := core.ParsePath(rest)
		if err == nil && len(r.moderators) < maxModerators {
			r.moderators[seenModerator{item.Path, group}] = true
		}
		return err
	case muteKey + " ":
		var v holdValue
		if err := item.Decode(&v); err != nil {
			return err
		}
		r.holds.set(quietIn(item.Path, v.Until, v.Number))
	}
	return nil
}

// readDetail sets the user of a hold. If the hold is missing, it was lifted.
func (r *records) readDetail(item *core.Item) error {
	var v detail
	if err := item.Decode(&v); err != nil {
		return err
	}
	theirs := r.holds[r.digest(item.Path)]
	for i := range theirs {
		if theirs[i].detailKey() == item.Key {
			theirs[i].user, theirs[i].name, theirs[i].tag = item.Path, v.Name, v.Tag
		}
	}
	return nil
}

// begin opens the records, and locks change for the caller. The context that it returns belongs to no turn, so that a
// moderator's decision is stored even if they are forgotten meanwhile; items under their path are still refused.
func (r *records) begin(ctx context.Context) (context.Context, error) {
	r.change.Lock()
	r.mu.Lock()
	defer r.mu.Unlock()
	err := r.open(ctx)
	if err != nil {
		r.change.Unlock()
	}
	if epoch, _, ok := epochs.Of(ctx); ok {
		ctx = epochs.With(ctx, epoch)
	}
	return ctx, err
}

func (r *records) put(ctx context.Context, items ...core.Item) error {
	for _, item := range items {
		if _, err := r.host.Items.Put(ctx, item); err != nil {
			return fmt.Errorf("store: %w", err)
		}
	}
	return nil
}

// ensureKey makes the key of the hashes if there is none. The caller holds change.
func (r *records) ensureKey(ctx context.Context) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.hashKey != nil {
		return nil
	}
	key := make([]byte, keySize)
	_, _ = rand.Read(key) // it never fails
	item := values.New(core.Path{}, hashKey, key)
	item.Version = 0
	err := r.put(ctx, item)
	if errors.Is(err, core.ErrVersion) { // another instance made it, while the configuration was reloaded
		item, _, err = r.host.Items.Get(ctx, core.Path{}, hashKey)
	}
	if err != nil {
		return err
	}
	return r.readKey(&item)
}

// Sizes in bytes.
const (
	keySize    = 32
	digestSize = 16
)

// digest identifies a user without naming them. It is "" while there is no key. The caller holds mu or change.
func (r *records) digest(user core.Path) string {
	if r.hashKey == nil {
		return ""
	}
	mac := hmac.New(sha256.New, r.hashKey)
	mac.Write([]byte(user.Interface() + "\x00" + userID(user)))
	return hex.EncodeToString(mac.Sum(nil)[:digestSize])
}

// startHold begins a hold. If its user was forgotten meanwhile, it names nobody. The caller holds change.
func (r *records) startHold(ctx context.Context, h hold, d detail) error {
	if err := r.put(ctx, h.item(holdValue{d.At, h.until, h.number})); err != nil {
		return err
	}
	var err error
	if !h.user.IsZero() {
		err = r.put(ctx, values.New(h.user, h.detailKey(), d))
	}
	if errors.Is(err, core.ErrForgotten) {
		h.forgetUser()
		err = nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.holds.set(h)
	return err
}

// liftHold ends a hold. The caller holds change.
func (r *records) liftHold(ctx context.Context, h *hold) error {
	if err := r.put(ctx, h.item(nil)); err != nil {
		return err
	}
	r.mu.Lock()
	r.holds.remove(h)
	r.mu.Unlock()
	if h.user.IsZero() {
		return nil
	}
	return r.put(ctx, values.New(h.user, h.detailKey(), nil))
}

// current returns the active hold with the same key as h.
func (r *records) current(h *hold) (current hold, ok bool) {
	for _, old := range r.activeOf(h.digest) {
		if old.key() == h.key() {
			return old, true
		}
	}
	return current, false
}

// mutedAt returns the mute of a place, or of one above.
func (r *records) mutedAt(place core.Path) (mute hold, ok bool) {
	now := r.host.Clock()
	r.mu.Lock()
	defer r.mu.Unlock()
	for ; len(r.holds) > 0 && !place.IsZero(); place = place.Parent() {
		for _, h := range r.holds[place.String()] {
			if isActive(h.until, now) {
				return h, true
			}
		}
	}
	return mute, false
}

// admission returns how to treat a message, according to the holds on its author.
func (r *records) admission(user core.Path, m *core.Message, again bool) (gate.Admission, error) {
	now := r.host.Clock()
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.open(context.Background()); err != nil {
		return gate.Quiet, err
	}
	if !again && !user.IsZero() {
		r.noteRank(user, m)
	}
	if user.IsZero() || len(r.holds) == 0 {
		return gate.Admit, nil
	}
	h := r.holds.strictest(r.digest(user), m, now)
	switch {
	case h == nil:
		return gate.Admit, nil
	case h.kind == muted, m.Private && allowedWhileBlocked(m.Text) && (again || h.allowsCommand(now)):
		return gate.Quiet, nil
	}
	return gate.Discard, nil
}

// events returns the wanted events and appeals, oldest first.
func (r *records) events(wanted func(*event) bool) (found []event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range r.log.events {
		if wanted(&r.log.events[i]) {
			found = append(found, r.log.events[i])
		}
	}
	return found
}

// holdsOf returns the active holds of a user. The caller holds change.
func (r *records) holdsOf(user core.Path) []hold { return r.activeOf(r.digest(user)) }

func (r *records) activeOf(digest string) (active []hold) {
	now := r.host.Clock()
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, h := range r.holds[digest] {
		if isActive(h.until, now) {
			active = append(active, h)
		}
	}
	return active
}

// find returns the wanted holds, sorted by name.
func (r *records) find(wanted func(*hold) bool) (found []hold) {
	r.mu.Lock()
	for _, theirs := range r.holds {
		for i := range theirs {
			if wanted(&theirs[i]) {
				found = append(found, theirs[i])
			}
		}
	}
	r.mu.Unlock()
	sorting.Sort(found, func(a, b hold) int {
		return cmp.Or(cmp.Compare(a.name, b.name), cmp.Compare(a.key(), b.key()))
	})
	return found
}

// active returns the wanted active holds of a kind, sorted by name.
func (r *records) active(kind string, wanted func(*hold) bool) []hold {
	now := r.host.Clock()
	return r.find(func(h *hold) bool { return h.kind == kind && isActive(h.until, now) && wanted(h) })
}

// noteRank records whether a message's author is a moderator of the group. The caller holds mu.
func (r *records) noteRank(user core.Path, m *core.Message) {
	seen := seenModerator{user, m.Path.Group()}
	is := m.Author.Rank >= core.RankModerator
	if m.Private || is == r.moderators[seen] || is && len(r.moderators) >= maxModerators {
		return
	}
	item := values.New(user, moderatorKey+seen.group.String(), map[string]time.Time{"at": r.host.Clock()})
	if is {
		r.moderators[seen] = true
	} else {
		delete(r.moderators, seen)
		item.Value = nil
	}
	r.enqueue(item)
}

// forget removes a user's data from memory and from the queue.
func (r *records) forget(ctx context.Context, user core.Path) error {
	ctx, err := r.begin(ctx)
	if err != nil {
		return err
	}
	defer r.change.Unlock()
	r.mu.Lock()
	theirs := r.holds[r.digest(user)]
	for i := range theirs {
		theirs[i].forgetUser()
	}
	maps.DeleteFunc(r.moderators, func(seen seenModerator, _ bool) bool { return seen.user == user })
	gone := r.log.remove(func(e *event) bool { return e.about == user })
	for i := range r.log.events {
		e := &r.log.events[i]
		if e.by == user {
			e.by, e.byName = core.Path{}, ""
		}
	}
	r.queue.items = slices.DeleteFunc(r.queue.items, func(i core.Item) bool { return i.Path == user })
	r.queue.notices = slices.DeleteFunc(r.queue.notices, func(n notice) bool { return n.to == user })
	r.mu.Unlock()
	var deeds []core.Item
	for _, e := range gone {
		if !e.by.IsZero() {
			deeds = append(deeds, values.New(e.by, didKey+e.id, nil))
		}
	}
	return r.put(ctx, deeds...)
}
