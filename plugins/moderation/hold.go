package moderation

import (
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"

	"synthbot/core"
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
	digest string // identifies the user without naming them
	kind   string
	scope  core.Path // where it holds; the zero Path means everywhere
	until  time.Time // zero: until it is lifted
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

// mark is what a user is called who cannot be named.
func (h *hold) mark() string { return "#" + h.digest[:8] }

// sentence says that the user is blocked or muted.
func (h *hold) sentence(now time.Time) string {
	return fmt.Sprintf("%s is %s %s %s.", h.label(), participle(h.kind), where(h.scope), ending(h.until, now))
}

// isActive reports whether something that holds until a time still does.
func isActive(until, now time.Time) bool { return until.IsZero() || now.Before(until) }

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
func (h *hold) key() string { return holdKey + h.digest + " " + h.kind + " " + h.scope.String() }

// parseHoldKey reads what key wrote.
func parseHoldKey(key string) (h hold, ok bool) {
	digest, rest, _ := strings.Cut(strings.TrimPrefix(key, holdKey), " ")
	raw, err := hex.DecodeString(digest)
	h, ok = parseHold(rest)
	h.digest = digest
	return h, ok && err == nil && len(raw) == digestSize
}

// parseHold reads kind and scope.
func parseHold(text string) (h hold, ok bool) {
	kind, scope, ok := strings.Cut(text, " ")
	h.kind = kind
	err := h.scope.UnmarshalText([]byte(scope))
	return h, ok && err == nil && (kind == blocked || kind == muted)
}

// holds are all blocks and mutes of users, by digest.
type holds map[string][]hold

// set adds a hold, or replaces one of the same kind and scope.
func (all holds) set(h hold) {
	all.remove(&h)
	all[h.digest] = append(all[h.digest], h)
}

func (all holds) remove(h *hold) {
	left := slices.DeleteFunc(all[h.digest], func(old hold) bool { return old.key() == h.key() })
	all[h.digest] = left
	if len(left) == 0 {
		delete(all, h.digest)
	}
}

// strictest returns the strictest hold of a user on a message, or nil.
func (all holds) strictest(digest string, m *core.Message, now time.Time) (strictest *hold) {
	for i := range all[digest] {
		h := &all[digest][i]
		if m.Path.Within(h.scope) && isActive(h.until, now) && (strictest == nil || h.kind == blocked) {
			strictest = h
		}
	}
	return strictest
}
