package moderation

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"strings"
	"time"

	"synthbot/core"
	"synthbot/core/recent"
)

// Kinds of hold.
const (
	blocked = "block"
	muted   = "mute"
)

// commandsDaily is how often a day a blocked user may call the commands that still work.
const commandsDaily = 5

// hold is the block or the mute of a user.
type hold struct {
	kind  string
	scope core.Path // where it holds; the zero Path means everywhere
	until int64     // Unix time; 0 means until it is lifted
	// The user, unless they were forgotten.
	user core.Path
	name string
	tag  string

	// Use of the commands that still work, since the first call.
	firstCommand time.Time
	commands     int
}

// allowsCommand counts a call of one of the commands that still work, and reports whether
// the user may make it.
func (h *hold) allowsCommand(now time.Time) bool {
	since := now.Sub(h.firstCommand)
	if since < 0 || since >= day {
		h.firstCommand, h.commands = now, 0
	}
	h.commands++
	return h.commands <= commandsDaily
}

// label is how users read whom it is about.
func (h *hold) label() string {
	if h.name == "" && !h.user.IsZero() {
		return userID(h.user)
	}
	return displayName(h.name)
}

// sentence says that the user is blocked or muted.
func (h *hold) sentence(now time.Time) string {
	return fmt.Sprintf("%s is %s %s %s.", h.label(), participle(h.kind), where(h.scope), ending(h.end(), now))
}

// end returns when it is over; the zero Time means when it is lifted.
func (h *hold) end() time.Time { return timeOf(h.until) }

func (h *hold) activeAt(now time.Time) bool { return isActive(h.until, now) }

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

// isActive reports whether something that holds until a Unix time still does.
func isActive(until int64, now time.Time) bool { return until == 0 || now.Unix() < until }

// sameAs reports whether one replaces the other, if both are of the same user.
func (h *hold) sameAs(other *hold) bool { return h.kind == other.kind && h.scope == other.scope }

// forgetUser clears who the user is.
func (h *hold) forgetUser() { h.user, h.name, h.tag = core.Path{}, "", "" }

// participle is what happens to the user.
func participle(kind string) string {
	if kind == blocked {
		return wasBlocked
	}
	return wasMuted
}

// detailKey is the key of what is kept under the user's path.
func (h *hold) detailKey() string { return holdKey + h.kind + " " + h.scope.String() }

// key is the key of what is kept under no path.
func (h *hold) key(d digest) string {
	return holdKey + d.String() + " " + h.kind + " " + h.scope.String()
}

// parseHoldKey reads what key wrote.
func parseHoldKey(key string) (d digest, h hold, ok bool) {
	hex, rest, _ := strings.Cut(strings.TrimPrefix(key, holdKey), " ")
	d, ok = parseDigest(hex)
	if !ok {
		return d, h, false
	}
	h, ok = parseHold(rest)
	return d, h, ok
}

// parseHold reads kind and scope.
func parseHold(text string) (h hold, ok bool) {
	kind, scope, ok := strings.Cut(text, " ")
	h.kind = kind
	err := h.scope.UnmarshalText([]byte(scope))
	return h, ok && err == nil && (kind == blocked || kind == muted)
}

// holds are all blocks and mutes of users.
type holds map[digest][]hold

// set adds a hold, or replaces one of the same kind and scope.
func (all holds) set(d digest, h hold) {
	for i, old := range all[d] {
		if old.sameAs(&h) {
			all[d][i] = h
			return
		}
	}
	all[d] = append(all[d], h)
}

func (all holds) remove(d digest, h *hold) {
	var left []hold
	for _, old := range all[d] {
		if !old.sameAs(h) {
			left = append(left, old)
		}
	}
	all[d] = left
	if len(left) == 0 {
		delete(all, d)
	}
}

// strictest returns the strictest hold of a user on a message, or nil.
func (all holds) strictest(d digest, m *core.Message, now time.Time) (strictest *hold) {
	for i := range all[d] {
		h := &all[d][i]
		if m.Path.Within(h.scope) && h.activeAt(now) && (strictest == nil || h.kind == blocked) {
			strictest = h
		}
	}
	return strictest
}

// digest identifies a user without naming them.
type digest [16]byte

func (d digest) String() string { return hex.EncodeToString(d[:]) }

func parseDigest(text string) (d digest, ok bool) {
	raw, err := hex.DecodeString(text)
	if err != nil || len(raw) != len(d) {
		return d, false
	}
	return digest(raw), true
}

const keySize = 32 // bytes

// maxDigests is how many digests a hasher remembers.
const maxDigests = 16_384

// hasher computes digests with a key, and remembers them. It is not safe for concurrent use.
type hasher struct {
	mac     hash.Hash // nil: there is no key yet, and no hold
	digests recent.Cache[core.Path, digest]
}

func newHasher(key []byte) hasher {
	return hasher{hmac.New(sha256.New, key), recent.NewCache[core.Path, digest](maxDigests)}
}

func (h *hasher) digest(user core.Path) digest {
	return h.digests.Ensure(user, func() (d digest) {
		h.mac.Reset()
		h.mac.Write([]byte(user.Interface() + "\x00" + userID(user)))
		copy(d[:], h.mac.Sum(nil))
		return d
	})
}
