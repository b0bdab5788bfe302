package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"
)

// Limits of what is received from an earlier process's session. Beyond them, only missed messages can be fetched.
const (
	missedTime = 10 * time.Second
	lastTime   = 2 * time.Second // for what is on its way when a session is left
	maxMissed  = 8 << 20         // bytes
)

// earlier is the session of an earlier process, on a connection of its own.
type earlier struct {
	conn     *conn              // from caughtUp on
	caughtUp chan struct{}      // closed when the missed events were received
	leave    context.CancelFunc // ends the connection
	over     chan struct{}      // closed when nothing more is received
}

// catchUp resumes the session of an earlier process to receive the events that it missed. A new session
// follows, because Discord describes guilds and channels only to new sessions. Until that begins, the earlier one
// receives further events.
func (s *shard) catchUp(ctx context.Context, left Session) {
	if left.ID == "" {
		return
	}
	if left.Address == "" || !asSafe(left.Address, s.at.address) {
		left.Address = s.at.address
	}
	e := &earlier{caughtUp: make(chan struct{}), over: make(chan struct{})}
	ctx, e.leave = context.WithCancel(ctx)
	s.earlier = e
	go func() {
		defer close(e.over)
		log, err := s.g.Log, s.receiveMissed(ctx, left, e)
		if e.conn == nil {
			log = log.With("err", err)
		}
		log.Info("resumed the session of an earlier process", "shard", s.id, "count", len(s.missed))
	}()
	select {
	case <-e.caughtUp:
	case <-e.over:
	case <-time.After(missedTime):
		s.leaveEarlier()
	}
}

// leaveEarlier ends the connection of the earlier process's session. It first receives what is on its way there.
func (s *shard) leaveEarlier() {
	e := s.earlier
	if e == nil {
		return
	}
	s.earlier = nil
	select {
	case <-e.caughtUp:
		// The acknowledgement of a heartbeat follows all events until now.
		if e.conn.send(opHeartbeat, e.conn.seq.Load()) == nil {
			select {
			case <-e.over:
			case <-time.After(lastTime):
			}
		}
	default:
	}
	e.leave()
	<-e.over
}

// receiveMissed connects and receives the missed events, and further ones until an error or an acknowledgement.
func (s *shard) receiveMissed(ctx context.Context, left Session, e *earlier) error {
	c, err := s.g.dial(ctx, left.Address)
	if err != nil {
		return err
	}
	defer c.closeAfter(ctx)() // resumable, in case this process ends before it has stored its session
	if err := c.resume(s.g.Token, left); err != nil {
		return err
	}
	return s.keepMissed(c, e)
}

// keepMissed reads events until an error or an acknowledgement, and keeps messages and interactions.
func (s *shard) keepMissed(c *conn, e *earlier) error {
	missed := 0 // how many events came before RESUMED
	for size := 0; ; {
		m, err := c.read()
		switch {
		case err != nil:
			return err
		case *m.Op == opInvalid:
			return errInvalid
		case *m.Op == opReconnect:
			return errReconnect
		case *m.Op == opAck:
			return nil
		case m.Type == "RESUMED" && e.conn == nil:
			missed = len(s.missed)
			c.patience = c.interval // without heartbeats, Discord ends the connection soon after
			e.conn = c
			close(e.caughtUp)
		}
		if !strings.HasPrefix(m.Type, "MESSAGE_") && m.Type != "INTERACTION_CREATE" {
			continue // the new session describes the current state
		}
		s.missed, size = append(s.missed, m), size+len(m.Data)
		if size > maxMissed {
			s.missed = slices.Clone(s.missed[:missed])
			return errors.New("too many missed events")
		}
	}
}

// deliverMissed passes missed events to the Handler: after a GUILD_CREATE those of the guild, after READY
// those outside of guilds. It drops those of guilds that READY does not list.
func (s *shard) deliverMissed(ctx context.Context, m message) {
	if len(s.missed) == 0 || m.Type != "READY" && m.Type != "GUILD_CREATE" {
		return
	}
	type guild struct {
		ID string `json:"id"`
	}
	var now struct {
		guild          // of GUILD_CREATE
		Guilds []guild `json:"guilds"` // of READY
	}
	_ = json.Unmarshal(m.Data, &now) // damaged, it lists none
	s.missed = slices.DeleteFunc(s.missed, func(missed message) bool {
		var in struct {
			ID string `json:"guild_id"`
		}
		_ = json.Unmarshal(missed.Data, &in)
		if in.ID == now.ID {
			s.g.Handler.Event(ctx, Event{Shard: s.id, Type: missed.Type, Data: missed.Data})
		}
		return in.ID == now.ID || m.Type == "READY" && !slices.Contains(now.Guilds, guild(in))
	})
}
