package people

import (
	"crypto/rand"
	"crypto/sha256"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"synthbot/core"
)

// Limits of codes.
const (
	codeLength = 8
	codeLasts  = 10 * time.Minute
	codesMax   = 5   // codes that a user gets, and may try, in an hour
	missesMax  = 100 // codes that are tried in vain in an hour, by all
	linksMax   = 4   // of one person
)

// offer is a code that somebody was given.
type offer struct {
	person core.Path
	until  time.Time
}

// codes are those that may be said now, by their hashes. They do not outlive the
// process.
type codes struct {
	clock func() time.Time

	mu     sync.Mutex
	open   map[[sha256.Size]byte]offer
	used   map[core.Path][]time.Time // when somebody asked for a code, or tried one
	misses []time.Time
}

func newCodes(clock func() time.Time) *codes {
	return &codes{clock: clock, open: make(map[[sha256.Size]byte]offer), used: make(map[core.Path][]time.Time)}
}

var errOften = core.Errorf(core.Occupied, "That was tried too often. Try again in an hour.")

// give makes a code for a user. It replaces an earlier one.
func (c *codes) give(person core.Path) (string, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.tidy()
	if !c.spend(person) {
		return "", errOften
	}
	c.end(person)
	code := rand.Text()[:codeLength]
	c.open[sha256.Sum256([]byte(code))] = offer{person, c.clock().Add(codeLasts)}
	return code, nil
}

// take uses a code up and returns who was given it.
func (c *codes) take(code string, by core.Path) (core.Path, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.tidy()
	if len(c.misses) >= missesMax || !c.spend(by) {
		return core.Path{}, errOften
	}
	plain := strings.ToUpper(strings.NewReplacer("-", "", " ", "", "`", "").Replace(code))
	hash := sha256.Sum256([]byte(plain))
	o, ok := c.open[hash]
	switch {
	case !ok:
		c.misses = append(c.misses, c.clock())
		return core.Path{}, core.Errorf(core.Invalid,
			"There is no such code, or its time is over. `/link` without a code gives a new one.")
	case o.person == by:
		return core.Path{}, core.Errorf(core.Invalid, "Say this code with your other account.")
	}
	delete(c.open, hash)
	return o.person, nil
}

// forget drops what is there of a person.
func (c *codes) forget(person core.Path) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.end(person)
	delete(c.used, person)
}

// end takes a person's code away.
func (c *codes) end(person core.Path) {
	maps.DeleteFunc(c.open, func(_ [sha256.Size]byte, o offer) bool { return o.person == person })
}

// spend counts a use within the hour; false: there were enough.
func (c *codes) spend(person core.Path) bool {
	if len(c.used[person]) >= codesMax {
		return false
	}
	c.used[person] = append(c.used[person], c.clock())
	return true
}

// tidy drops what is over.
func (c *codes) tidy() {
	now := c.clock()
	maps.DeleteFunc(c.open, func(_ [sha256.Size]byte, o offer) bool { return !now.Before(o.until) })
	over := func(t time.Time) bool { return now.Sub(t) >= time.Hour }
	c.misses = slices.DeleteFunc(c.misses, over)
	for person, list := range c.used {
		c.used[person] = slices.DeleteFunc(list, over)
	}
	maps.DeleteFunc(c.used, func(_ core.Path, list []time.Time) bool { return len(list) == 0 })
}
