package mcp

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"synthbot/core"
	"synthbot/core/action"
	"synthbot/core/txt"
)

// How much of each of a server's lists is read.
const (
	maxTools = 128
	maxItems = 500
)

// inventory is what a server has.
type inventory struct {
	Tools     []*mcp.Tool
	Resources []*mcp.Resource
	Templates []*mcp.ResourceTemplate
	Prompts   []*mcp.Prompt
	Full      bool // there is more
}

// entry is one action of a server, before it has its name.
type entry struct {
	server, tool string
	own          bool // it is ours, not a tool of the server
	action       core.Action
}

// refresh reads the server's lists, and reports whether it offers something else
// since.
func (s *server) refresh(ctx context.Context, l *life) (news bool, err error) {
	within, cancel := context.WithTimeoutCause(ctx, s.conf.Start, errDeaf)
	defer cancel()
	defer context.AfterFunc(l.ctx, cancel)()
	inv, err := read(within, l.session)
	if err != nil {
		if l.ctx.Err() != nil {
			err = context.Cause(l.ctx)
		} else if within.Err() != nil {
			err = context.Cause(within)
		}
		return false, fmt.Errorf("lists: %w", err)
	}
	if inv.Full {
		s.log.Warn("mcp server has more than the bot takes", "tools", maxTools, "items", maxItems)
	}
	sum := sha256.Sum256(core.JSON(inv))
	if sum == l.last {
		return false, nil
	}
	l.last = sum
	entries := s.make(inv)
	s.entries.Store(&entries)
	return true, nil
}

// read asks for all lists that the server says it has.
func read(ctx context.Context, session *mcp.ClientSession) (*inventory, error) {
	inv := &inventory{}
	r := session.InitializeResult()
	if r == nil || r.Capabilities == nil {
		return inv, nil
	}
	has := r.Capabilities
	var errs [4]error
	if has.Tools != nil {
		inv.Tools, errs[0] = collect(inv, maxTools, session.Tools(ctx, nil))
	}
	if has.Resources != nil {
		inv.Resources, errs[1] = collect(inv, maxItems, session.Resources(ctx, nil))
		inv.Templates, errs[2] = collect(inv, maxItems, session.ResourceTemplates(ctx, nil))
	}
	if has.Prompts != nil {
		inv.Prompts, errs[3] = collect(inv, maxItems, session.Prompts(ctx, nil))
	}
	return inv, errors.Join(errs[:]...)
}

// collect takes at most that many. A list that the server does not know after
// all is empty.
func collect[T any](inv *inventory, most int, list iter.Seq2[*T, error]) ([]*T, error) {
	var found []*T
	for item, err := range list {
		said, answered := answerOf(err)
		switch {
		case answered && said.Code == jsonrpc.CodeMethodNotFound:
			return found, nil
		case err != nil:
			return nil, err
		case len(found) == most:
			inv.Full = true
			return found, nil
		case item != nil:
			found = append(found, item)
		}
	}
	return found, nil
}

// make turns an inventory into entries, each of which the catalogue accepts.
func (s *server) make(inv *inventory) (entries []entry) {
	add := func(tool string, own bool, make func() (core.Action, error)) {
		permission, open := s.conf.permission(tool)
		known := slices.ContainsFunc(entries, func(e entry) bool { return e.tool == tool && e.own == own })
		if !open || known {
			return
		}
		a, err := make()
		a.Permission = permission
		if own {
			a.Name = actionName(s.conf.Name, tool, false)
			a.Confirm, _ = closest(s.conf.Confirm, tool)
			err = fits(a)
		}
		if err != nil {
			s.log.Warn("mcp tool left out", "tool", txt.ClipBytes(line(tool), maxName), "err", s.shown(err.Error()))
			return
		}
		entries = append(entries, entry{s.conf.Name, tool, own, a})
	}
	for _, t := range inv.Tools {
		add(t.Name, false, func() (core.Action, error) { return s.toolAction(t) })
	}
	if len(inv.Resources)+len(inv.Templates) > 0 {
		add(resourceRead, true, func() (core.Action, error) { return s.resourceAction(inv), nil })
	}
	if len(inv.Prompts) > 0 {
		add(promptGet, true, func() (core.Action, error) { return s.promptAction(inv), nil })
	}
	return entries
}

// shown is what a server says, on one short line without secrets.
func (s *server) shown(text string) string { return s.redact(txt.ClipBytes(line(text), maxFault)) }

// fits returns why the catalogue would refuse an action.
func fits(a core.Action) error {
	faults := action.Lint("mcp", a)
	if len(faults) == 0 {
		return nil
	}
	return errors.New(strings.Join(faults, "; "))
}
