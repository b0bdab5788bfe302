package mcp

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"iter"

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
	text, err := json.Marshal(inv)
	if err != nil {
		return false, fmt.Errorf("lists: %w", err)
	}
	sum := fmt.Sprintf("%x", sha256.Sum256(text))
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
	has := &mcp.ServerCapabilities{}
	if r := session.InitializeResult(); r != nil && r.Capabilities != nil {
		has = r.Capabilities
	}
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

// make turns an inventory into entries, each of which the catalogue takes.
func (s *server) make(inv *inventory) []entry {
	var entries []entry
	seen := make(map[string]bool)
	for _, t := range inv.Tools {
		if !s.conf.offers(t.Name) || seen[t.Name] {
			continue
		}
		seen[t.Name] = true
		if e, ok := s.toolEntry(t); ok {
			entries = append(entries, e)
		}
	}
	if len(inv.Resources)+len(inv.Templates) > 0 {
		entries = s.add(entries, s.resourceAction(inv), resourceRead)
	}
	if len(inv.Prompts) > 0 {
		entries = s.add(entries, s.promptAction(inv), promptGet)
	}
	return entries
}

// add takes in one of our own actions.
func (s *server) add(entries []entry, a core.Action, tool string) []entry {
	if !s.conf.offers(tool) {
		return entries
	}
	var open bool
	if a.Permission, open = s.conf.permission(tool); !open {
		return entries
	}
	a.Name = actionName(s.conf.Name, tool, false)
	a.Confirm, _ = closest(s.conf.Confirm, tool)
	if err := fits(a); err != nil {
		s.log.Warn("mcp action left out", "tool", tool, "err", s.redact(txt.ClipBytes(line(err.Error()), maxFault)))
		return entries
	}
	return append(entries, entry{server: s.conf.Name, tool: tool, own: true, action: a})
}

// single is a plugin of one action, to ask the catalogue whether it takes it.
type single struct{ core.Action }

func (s single) Name() string           { return "mcp" }
func (s single) Actions() []core.Action { return []core.Action{s.Action} }

// fits says why the catalogue would not take an action.
func fits(a core.Action) error {
	_, err := action.Build(single{a})
	return err
}
