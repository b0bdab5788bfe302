package daemon

import (
	"strings"
	"sync"
	"time"

	"synthbot/core"
)

// steady is how long something must run, after it had failed, to be called well.
const steady = time.Minute

// conditions are what admins believe of things that fail and are well again: an
// engine, an interface, the disk. The same is told at most once an hour, and what
// they believe is true in the end. The zero value believes that all is well.
// Safe for concurrent use.
type conditions struct {
	tell  func(text string)
	again func(text string) // tells it where that same text was not told within the hour
	clock func() time.Time

	mu    sync.Mutex
	of    map[string]*condition
	ended bool
}

type condition struct {
	well, believed bool
	text, said     string
	told           map[bool]time.Time // when either was told last
	later          *time.Timer        // when the other may be told; nil: nothing waits
	former         bool               // it failed before a reload, and nobody knows how it is now
}

// set notes how something is, with what is to be said of that.
func (c *conditions) set(what string, well bool, text string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	x := c.of[what]
	if x == nil {
		if well {
			return
		}
		if c.of == nil {
			c.of = make(map[string]*condition)
		}
		x = &condition{believed: true, told: make(map[bool]time.Time)}
		c.of[what] = x
	}
	x.well, x.text, x.former = well, text, false
	c.settle(x)
}

// settle tells how it is, where admins believe something else: now, or when the same
// was told an hour ago. c.mu is held.
func (c *conditions) settle(x *condition) {
	if x.later != nil {
		x.later.Stop()
		x.later = nil
	}
	switch {
	case c.ended:
		return
	case x.well == x.believed:
		if !x.well && x.text != x.said { // it fails for another reason
			x.said = x.text
			c.again(x.text)
		}
		return
	}
	now := c.clock()
	if at, ok := x.told[x.well]; ok && now.Sub(at) < tellAgain {
		x.later = time.AfterFunc(tellAgain-now.Sub(at), func() {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.settle(x)
		})
		return
	}
	x.believed, x.said, x.told[x.well] = x.well, x.text, now
	c.tell(x.text)
}

// renewed notes that the engines were exchanged: of those that failed nobody knows
// how they are, until one answers or fails anew.
func (c *conditions) renewed() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for what, x := range c.of {
		x.former = x.former || !x.well && strings.HasPrefix(what, engineCondition)
	}
}

// Observe implements core.Observer.
func (c *conditions) Observe(e core.TurnEnd) {
	if e.Trace == nil {
		return
	}
	for _, a := range e.Trace.Asks {
		c.mu.Lock()
		x := c.of[engineCondition+a.Engine]
		back := x != nil && x.former && a.Err == ""
		c.mu.Unlock()
		if back {
			c.set(engineCondition+a.Engine, true, engineBack(a.Engine))
		}
	}
}

// end lets nothing be told any more.
func (c *conditions) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ended = true
	for _, x := range c.of {
		if x.later != nil {
			x.later.Stop()
		}
	}
}

// engineCondition begins the names of the engines' conditions.
const engineCondition = "engine "

func engineBack(name string) string { return "Engine " + name + " answers again." }
