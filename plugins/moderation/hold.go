package moderation

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"synthbot/core"
)

// Kinds of hold.
const (
	blocked = "block"
	muted   = "mute"
)

// hold is a block, or the mute of a person.
type hold struct {
	kind  string
	scope core.Path // where; the zero Path: everywhere
	until int64     // Unix time; 0: until it is lifted
	// Of whom one can still name.
	person core.Path
	name   string
	tag    string
}

// label is what people read of whom it holds.
func (h *hold) label() string {
	if h.name == "" && !h.person.IsZero() {
		return whoIs(h.person).id
	}
	return called(h.name)
}

// end is when it is over; the zero Time: when it is lifted.
func (h *hold) end() time.Time { return timeOf(h.until) }

func timeOf(unix int64) time.Time {
	if unix == 0 {
		return time.Time{}
	}
	return time.Unix(unix, 0)
}

func unixOf(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.Unix()
}

// stands reports whether it still holds.
func stands(until int64, now time.Time) bool { return until == 0 || now.Unix() < until }

// Keys of items; what follows is said in the package comment.
const (
	sealKey = "key"
	holdKey = "hold "
	muteKey = "mute"
)

// holdValue is what is kept of a hold, where it is about nobody.
type holdValue struct {
	At    time.Time `json:"at"`
	Until time.Time `json:"until,omitzero"`
}

// detail is what is kept of a hold under the person's path.
type detail struct {
	Name   string    `json:"name,omitempty"`
	Tag    string    `json:"tag,omitempty"`
	Reason string    `json:"reason,omitempty"`
	At     time.Time `json:"at"`
	Until  time.Time `json:"until,omitzero"`
}

func (h *hold) detailKey() string { return holdKey + h.kind + " " + h.scope.String() }

func (h *hold) key(d digest) string {
	return holdKey + d.String() + " " + h.kind + " " + h.scope.String()
}

// parseHoldKey reads the key of a hold.
func parseHoldKey(key string) (d digest, h hold, ok bool) {
	parts := strings.SplitN(strings.TrimPrefix(key, holdKey), " ", 3)
	if len(parts) != 3 {
		return d, h, false
	}
	if d, ok = parseDigest(parts[0]); !ok {
		return d, h, false
	}
	h, ok = newHold(parts[1], parts[2])
	return d, h, ok
}

func newHold(kind, scope string) (h hold, ok bool) {
	h.kind = kind
	err := h.scope.UnmarshalText([]byte(scope))
	return h, err == nil && (kind == blocked || kind == muted)
}

// same reports whether one replaces the other, both being of the same person.
func (h *hold) same(other *hold) bool { return h.kind == other.kind && h.scope == other.scope }

// covers reports whether it holds where the message was written.
func (h *hold) covers(m *core.Message) bool { return m.Path.Within(h.scope) }

// ensureSeal sees to it that there is a key, and that it is on disk. p.change is
// held.
func (p *Plugin) ensureSeal(ctx context.Context) error {
	for {
		item, ok, err := p.host.Items.Get(ctx, core.Path{}, sealKey)
		if err != nil {
			return fmt.Errorf("key: %w", err)
		}
		if ok {
			return p.unseal(item)
		}
		p.mu.Lock()
		key := p.seal.key
		p.mu.Unlock()
		if key == nil {
			key = make([]byte, keySize)
			if _, err := rand.Read(key); err != nil {
				return fmt.Errorf("key: %w", err)
			}
		}
		_, err = p.put(ctx, core.Path{}, sealKey, key, 0)
		if err != nil && !errors.Is(err, core.ErrVersion) {
			return err
		}
	}
}

// unseal takes the key over.
func (p *Plugin) unseal(item core.Item) error {
	key, err := parseSeal(item)
	if err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.seal.mac == nil {
		p.seal.set(key)
	}
	return nil
}

func parseSeal(item core.Item) ([]byte, error) {
	key, err := decode[[]byte](&item)
	if err == nil && len(key) != keySize {
		err = fmt.Errorf("key: it has %d bytes", len(key))
	}
	return key, err
}

// decode reads a value of ours.
func decode[V any](item *core.Item) (v V, err error) {
	if err := json.Unmarshal(item.Value, &v); err != nil {
		return v, fmt.Errorf("%s: %w", item.Key, err)
	}
	return v, nil
}

// put keeps a value of ours.
func (p *Plugin) put(ctx context.Context, path core.Path, key string, value any, version uint64) (uint64, error) {
	raw, err := json.Marshal(value)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", key, err)
	}
	v, err := p.host.Items.Put(ctx, core.Item{Path: path, Key: key, Value: raw, Version: version})
	if err != nil {
		return 0, fmt.Errorf("keep: %w", err)
	}
	return v, nil
}

// drop takes what is kept away.
func (p *Plugin) drop(ctx context.Context, path core.Path, key string) error {
	if _, err := p.host.Items.Put(ctx, core.Item{Path: path, Key: key, Version: core.AnyVersion}); err != nil {
		return fmt.Errorf("take away: %w", err)
	}
	return nil
}

// holdFor lets a hold begin. First it is written that it holds, then of whom.
// p.change is held.
func (p *Plugin) holdFor(ctx context.Context, h hold, reason string) error {
	if err := p.ensureSeal(ctx); err != nil {
		return err
	}
	d := p.digestOf(h.person)
	now := p.host.Clock()
	if _, err := p.put(ctx, core.Path{}, h.key(d), holdValue{now, h.end()}, core.AnyVersion); err != nil {
		return err
	}
	_, err := p.put(ctx, h.person, h.detailKey(), detail{h.name, h.tag, reason, now, h.end()}, core.AnyVersion)
	if errors.Is(err, core.ErrForgotten) { // it holds, and names nobody
		h.person, h.name, h.tag = core.Path{}, "", ""
		err = nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.holds.set(d, h)
	return err
}

// lift ends a hold. p.change is held.
func (p *Plugin) lift(ctx context.Context, d digest, h *hold) error {
	if err := p.drop(ctx, core.Path{}, h.key(d)); err != nil {
		return err
	}
	p.mu.Lock()
	p.holds.remove(d, h)
	p.mu.Unlock()
	if h.person.IsZero() {
		return nil
	}
	return p.drop(ctx, h.person, h.detailKey())
}

// digestOf is a person's; the key must be there.
func (p *Plugin) digestOf(person core.Path) digest {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.seal.of(whoIs(person))
}

// holds are all that hold, by person.
type holds map[digest][]hold

// set puts a hold in, in place of one of the same kind and scope.
func (all holds) set(d digest, h hold) {
	for i, old := range all[d] {
		if old.same(&h) {
			all[d][i] = h
			return
		}
	}
	all[d] = append(all[d], h)
}

func (all holds) remove(d digest, h *hold) {
	var left []hold
	for _, old := range all[d] {
		if !old.same(h) {
			left = append(left, old)
		}
	}
	if all[d] = left; len(left) == 0 {
		delete(all, d)
	}
}

// anonymise clears the identity on all holds of a person.
func (all holds) anonymise(d digest) {
	for i := range all[d] {
		h := &all[d][i]
		h.person, h.name, h.tag = core.Path{}, "", ""
	}
}

// of returns the strictest hold of a person on a message; nil for none.
func (all holds) of(d digest, m *core.Message, now time.Time) (strictest *hold) {
	for i := range all[d] {
		h := &all[d][i]
		if h.covers(m) && stands(h.until, now) && (strictest == nil || h.kind == blocked) {
			strictest = h
		}
	}
	return strictest
}
