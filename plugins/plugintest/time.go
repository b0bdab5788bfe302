package plugintest

import (
	"fmt"
	"sync"
	"testing/synctest"
	"time"
)

// clock is the bot's clock: that of the process, plus an offset.
type clock struct {
	mu    sync.Mutex
	moved time.Duration
}

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Now().Add(c.moved)
}

func (c *clock) set(to time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.moved = time.Until(to)
}

// Steps of waiting in a bubble, where pauses take no real time.
const (
	pause    = 50 * time.Millisecond
	longest  = 3 * time.Minute
	doubling = 2
)

// rest waits, in a bubble, until everything is blocked and the condition holds.
func rest(holds func() bool) bool {
	synctest.Wait()
	for p, waited := pause, time.Duration(0); !holds(); p *= doubling {
		if waited > longest {
			return false
		}
		time.Sleep(p)
		waited += p
		synctest.Wait()
	}
	return true
}

// pass moves the clock by a duration, or to a date.
func (s *Script) pass(arg string) {
	now := s.Now()
	to, err := time.Parse(time.RFC3339, arg)
	if err != nil {
		d, err := time.ParseDuration(arg)
		if err != nil {
			s.Fatalf("the time is a date (RFC 3339) or a duration: %v", err)
		}
		to = now.Add(d)
	}
	switch {
	case !s.lived && s.world == nil, s.plan.live:
		s.clock.set(to)
	case to.Before(now):
		s.Fatalf("it is %s already", now.Format(time.RFC3339))
	default:
		time.Sleep(to.Sub(now))
	}
	s.settle()
}

// setZone sets the bot's time zone.
func (s *Script) setZone(name string) error {
	zone, err := time.LoadLocation(name)
	if err != nil {
		return fmt.Errorf("zone: %w", err)
	}
	s.zone = zone
	return nil
}
