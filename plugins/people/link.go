package people

import (
	"crypto/rand"
	"crypto/sha256"
	"strings"
	"sync"
	"time"

	"synthbot/core"
)

// Limits of codes.
const (
	codeLetters = "ABCDEFGHJKMNPQRSTUVWXYZ23456789" // none that looks like another
	codeLength  = 8
	codeLasts   = 10 * time.Minute
	codesMax    = 5   // codes that a user gets, and may try, in an hour
	missesMax   = 100 // codes that are tried in vain in an hour, by all
	linksMax    = 4   // of one person
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
	code := random()
	c.open[sha256.Sum256([]byte(code))] = offer{person, c.clock().Add(codeLasts)}
	return code, nil
}

// random makes a code. Bytes beyond the last whole multiple of the letters are left out,
// so that each is as likely.
func random() string {
	const most = 256 - 256%len(codeLetters)
	var code []byte
	for buf := make([]byte, 1); len(code) < codeLength; {
		_, _ = rand.Read(buf) // it never fails
		if int(buf[0]) < most {
			code = append(code, codeLetters[int(buf[0])%len(codeLetters)])
		}
	}
	return string(code)
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
	for hash, o := range c.open {
		if o.person == person {
			delete(c.open, hash)
		}
	}
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
	for hash, o := range c.open {
		if !now.Before(o.until) {
			delete(c.open, hash)
		}
	}
	c.misses = recent(c.misses, now)
	for person, list := range c.used {
		list = recent(list, now)
		if len(list) > 0 {
			c.used[person] = list
		} else {
			delete(c.used, person)
		}
	}
}

// recent are the times of the last hour.
func recent(times []time.Time, now time.Time) []time.Time {
	for len(times) > 0 && now.Sub(times[0]) >= time.Hour {
		times = times[1:]
	}
	return times
}
