package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"
)

// Bounds of what is received of an earlier process's session. What is beyond them, or came too long
// ago for Discord, can still be fetched as far as it is messages.
const (
	missedTime = 10 * time.Second
	maxMissed  = 8 << 20 // bytes
)

// errMissedTooMuch is why a session of an earlier process is given up.
var errMissedTooMuch = errors.New("too much was missed")

// catchUp goes on with the session of an earlier process, only to receive what that one missed:
// Discord describes the guilds and channels to a new session alone, which follows.
func (s *shard) catchUp(ctx context.Context, left Session) {
	if left.ID == "" {
		return
	}
	if left.Address == "" || !asSafe(left.Address, s.at.address) {
		left.Address = s.at.address
	}
	ctx, cancel := context.WithTimeout(ctx, missedTime)
	defer cancel()
	log, err := s.g.Log, s.receiveMissed(ctx, left)
	if err != nil {
		log = log.With("err", err)
	}
	log.Info("went on with the session of an earlier process", "shard", s.id, "count", len(s.missed))
}

// receiveMissed keeps the events that are wanted. What came before an error is kept, too.
func (s *shard) receiveMissed(ctx context.Context, left Session) error {
	c, err := s.g.dial(ctx, left.Address)
	if err != nil {
		return err
	}
	defer c.closeWith(ctx, closeResumable)() // for the case that this process ends before it has stored its own session
	if err := c.hello(); err != nil {
		return err
	}
	if err := c.resume(s.g.Token, left); err != nil {
		return err
	}
	return s.keepMissed(c)
}

// keepMissed keeps the wanted ones of the events that come before the end of what was missed.
func (s *shard) keepMissed(c *conn) error {
	for size := 0; ; {
		m, err := c.read()
		switch {
		case err != nil:
			return err
		case *m.Op == opInvalid:
			return errInvalid
		case *m.Op == opReconnect:
			return errReconnect
		case m.Type == "RESUMED":
			return nil
		}
		if !strings.HasPrefix(m.Type, "MESSAGE_") && m.Type != "INTERACTION_CREATE" {
			continue // the new session says it
		}
		s.missed, size = append(s.missed, m), size+len(m.Data)
		if size > maxMissed {
			s.missed = nil
			return errMissedTooMuch
		}
	}
}

// handMissed hands in what an earlier process missed in a guild that has come with a message, or, with
// READY, outside of guilds. What it missed in guilds that READY does not list is dropped: they will not come.
func (s *shard) handMissed(ctx context.Context, m message) {
	if len(s.missed) == 0 || m.Type != "READY" && m.Type != "GUILD_CREATE" {
		return
	}
	var ready struct {
		Guilds []struct{ ID string }
	}
	guild := ""
	if m.Type == "READY" {
		_ = json.Unmarshal(m.Data, &ready) // damaged, it lists none
	} else {
		guild = field(m.Data, "id")
	}
	comes := func(guild string) bool {
		return m.Type != "READY" || slices.Contains(ready.Guilds, struct{ ID string }{guild})
	}
	s.missed = slices.DeleteFunc(s.missed, func(missed message) bool {
		in := field(missed.Data, "guild_id")
		if in == guild {
			s.g.Handler.Event(ctx, Event{Shard: s.id, Type: missed.Type, Data: missed.Data})
		}
		return in == guild || !comes(in)
	})
}

// field is a member of a JSON object that is a string; "" if there is none.
func field(object json.RawMessage, name string) string {
	var fields map[string]json.RawMessage
	var value string
	_ = json.Unmarshal(object, &fields)
	_ = json.Unmarshal(fields[name], &value)
	return value
}
