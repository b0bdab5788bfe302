package daemon

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"

	"synthbot/admin"
	"synthbot/core"
	"synthbot/core/action"
	"synthbot/core/epochs"
	"synthbot/daemon/logs"
	"synthbot/plugins/blueprint"
)

const maxToolCalls = 8 // at a time

// toolServer lets other programs call actions outside of turns (see blueprint.Serving).
type toolServer struct {
	*Bot
	running chan struct{} // holds a token for each running call
}

// serve serves tools until ctx ends, and returns when no call runs any more.
func (s *toolServer) serve(ctx context.Context, address string) {
	serveHTTP(ctx, s.log, "tools", address, s.handler)
	for range maxToolCalls {
		s.running <- struct{}{}
	}
}

func (s *toolServer) handler(at net.Addr) http.Handler {
	server := &blueprint.Server{
		Log: logs.Room(s.log, "plugins/blueprint"), Version: s.env.Version, Offer: s.offer, Call: s.call,
		Conf: func() blueprint.Serving { return s.InForce().Config.toolAccess() },
	}
	return admin.LocalOnly(server.Handler(at.String()))
}

// toolAccess returns which actions other programs may call, and as whom.
func (c *Config) toolAccess() blueprint.Serving {
	b := c.Blueprints()
	if b == nil {
		return blueprint.Serving{}
	}
	return b.Serve
}

// offer returns the actions that can be called, without those that a user must confirm: nobody could.
func (s *toolServer) offer(ctx context.Context) (list []core.Action, err error) {
	who, err := s.requester(ctx)
	if err != nil {
		return nil, err
	}
	for _, d := range s.InForce().Snapshot.Offer(who) {
		if !d.Confirm {
			list = append(list, d.Action)
		}
	}
	return list, nil
}

// requester returns the user and the place on whose behalf tools are called. Calls show nothing there.
func (s *toolServer) requester(ctx context.Context) (action.Requester, error) {
	p := s.InForce()
	c, conf := p.Config, p.Config.toolAccess()
	shut := func(denied core.Path) bool { return conf.As.Within(denied) || conf.Place.Within(denied) }
	if slices.ContainsFunc(c.Access.Deny, shut) {
		return action.Requester{}, core.Errorf(core.Forbidden, "The user may not use the bot.")
	}
	head, err := core.Read(ctx, s.Data.Store, func(v core.View) (core.Head, error) { return v.Head(conf.Place) })
	if err != nil {
		return action.Requester{}, fmt.Errorf("place: %w", err)
	}
	elements := conf.As.Elements()
	who := core.Author{ID: elements[len(elements)-1], Rank: core.RankMember}
	switch {
	case slices.Contains(s.admins(), conf.As):
		who.Rank = core.RankAdmin
	case slices.Contains(c.Access.Moderators, conf.As):
		who.Rank = core.RankModerator
	}
	return action.Requester{
		Path: conf.Place, Private: head.Last == 0 || head.Private, Authors: []core.Author{who},
		Scopes: p.scopes(conf.Place), Only: conf.Actions, Mute: true,
	}, nil
}

// call executes one action, without a turn around it.
func (s *toolServer) call(ctx context.Context, name string, input json.RawMessage) (json.RawMessage, error) {
	select {
	case s.running <- struct{}{}:
		defer func() { <-s.running }()
	default:
		return nil, &core.Error{Kind: core.Occupied, Text: "Too many calls run already.", After: time.Second}
	}
	ctx = epochs.With(ctx, s.Data.Epoch())
	who, err := s.requester(ctx)
	if err != nil {
		return nil, err
	}
	who.Only = []string{name}
	snapshot := s.InForce().Snapshot
	step := core.Step{Type: name, Payload: input, Priority: core.DefaultPriority}
	plan, faults := snapshot.Check(core.Plan{Steps: []core.Step{step}}, who)
	if len(faults) > 0 {
		texts := make([]string, len(faults))
		for i, f := range faults {
			texts[i] = strings.TrimPrefix(f.String(), "actions[0].")
		}
		return nil, core.Errorf(core.Invalid, "%s", strings.Join(texts, "; "))
	}
	done, err := s.runtime.Execute(ctx, action.Job{
		Snapshot: snapshot, Turn: core.TurnID{Path: who.Path, Seq: rand.Uint64()}, Round: 1, Plan: plan, Who: who,
		Journal: noJournal{},
	})
	if err != nil || len(done) == 0 {
		return nil, cmp.Or(err, errors.New("nothing was done"))
	}
	switch r := &done[0]; r.Progress {
	case core.ProgressDone:
		return r.Output, nil
	case core.ProgressPending:
		return nil, core.Errorf(core.Forbidden, "A user would have to confirm that in a chat.")
	default:
		return nil, &core.Error{Kind: r.Outcome.Kind, Text: r.Outcome.Text}
	}
}

// noJournal is the action.Journal of a call that ends with its request.
type noJournal struct{}

func (noJournal) Find(core.Key) (r core.Record, ok bool)            { return r, false }
func (noJournal) Write(ctx context.Context, _ ...core.Record) error { return ctx.Err() }
func (noJournal) Later(...core.Record)                              {}

// Parts refuses deliveries, because they would be missing from the history.
func (noJournal) Parts(core.Key) core.Deliveries {
	const text = "Other programs cannot send messages with this action."
	return action.NoDeliveries{Err: core.Errorf(core.Forbidden, text)}
}
