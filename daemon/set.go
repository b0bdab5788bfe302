package daemon

import (
	"cmp"
	"context"
	"fmt"
	"path"
	"regexp"
	"strconv"
	"strings"

	"synthbot/core"
	"synthbot/core/command"
)

// lever is a setting of a place that /set changes.
type lever struct {
	name string
	put  func(x *changed, value string) error // what is wrong with the value is for people
	drop func(x *changed)
}

var wellSpelt = regexp.MustCompile(`^[A-Za-z]{2,3}(-[A-Za-z0-9]{2,8})*$`)

// levers is the list of what /set changes; /persona, /engine and /activation change
// the rest.
var levers = []lever{
	{"language", func(x *changed, v string) error {
		if !wellSpelt.MatchString(v) {
			return core.Errorf(core.Invalid, "%q is no language; write one like it, or pt-BR.", v)
		}
		x.Language = &v
		return nil
	}, func(x *changed) { x.Language = nil }},
	{"scope", func(x *changed, v string) error {
		if v != "chat" && v != "interface" && v != "unified" {
			return core.Errorf(core.Invalid, "scope is one of chat, interface, unified.")
		}
		x.Scope = &v
		return nil
	}, func(x *changed) { x.Scope = nil }},
	{"actions_allow", func(x *changed, v string) (err error) {
		x.Allow, err = goodPatterns(v)
		return err
	}, func(x *changed) { x.Allow = nil }},
	{"actions_deny", func(x *changed, v string) (err error) {
		x.Deny, err = goodPatterns(v)
		return err
	}, func(x *changed) { x.Deny = nil }},
	{"person_tokens", func(x *changed, v string) (err error) {
		x.Person, err = goodTokens(v)
		return err
	}, func(x *changed) { x.Person = nil }},
	{"tokens", func(x *changed, v string) (err error) {
		x.Tokens, err = goodTokens(v)
		return err
	}, func(x *changed) { x.Tokens = nil }},
}

// goodPatterns reads names of actions, or parts of them with *.
func goodPatterns(v string) (*string, error) {
	list := patternsOf(v)
	for _, p := range list {
		if _, err := path.Match(p, ""); err != nil {
			return nil, core.Errorf(core.Invalid, "%q is no pattern; write a name, or a part of one with *.", p)
		}
	}
	if len(list) == 0 {
		return nil, core.Errorf(core.Invalid, "Write names of actions, or parts of them with *, like web_*.")
	}
	v = strings.Join(list, ", ")
	return &v, nil
}

// goodTokens reads how many tokens may be used in a day.
func goodTokens(v string) (*int64, error) {
	n, err := strconv.ParseInt(strings.ReplaceAll(v, "_", ""), 10, 64)
	if err != nil || n < 0 {
		return nil, core.Errorf(core.Invalid, "%q is no number of tokens; write one like 50000, or 0 for no limit.", v)
	}
	return &n, nil
}

// setCommand is /set.
func (b *Bot) setCommand() command.Command {
	what := command.Arg{Name: "what", Brief: "The setting; without one I show all"}
	for _, l := range levers {
		what.Choices = append(what.Choices, l.name)
	}
	return command.Command{
		Spec: command.Spec{Name: "set", Idempotent: true, Brief: "Show what holds here and why, or change it", Rank: core.Admin, Args: []command.Arg{
			what, {Name: "value", Brief: "Its value here and below, or " + usual, Rest: true},
		}}, Do: b.set,
	}
}

// set shows the settings of a place, or changes one of them.
func (b *Bot) set(ctx context.Context, c command.Call) (string, error) {
	what, value := c.Args["what"], c.Args["value"]
	if value != "" {
		if err := b.pull(ctx, c.Path, what, value); err != nil {
			return "", err
		}
	}
	var s strings.Builder
	b.EachInEffect(c.Path, func(name, value, from string) {
		if what == "" || what == name {
			fmt.Fprintf(&s, "- %s: %s (%s)\n", name, cmp.Or(value, "–"), from)
		}
	})
	return strings.TrimSpace(s.String()), nil
}

// pull changes one setting of a place and all below it.
func (b *Bot) pull(ctx context.Context, place core.Path, what, value string) error {
	for _, l := range levers {
		if l.name != what {
			continue
		}
		if value == usual {
			return b.rearrange(b.overlay.change(ctx, place, l.drop))
		}
		if err := l.put(new(changed), value); err != nil {
			return err
		}
		return b.rearrange(b.overlay.change(ctx, place, func(x *changed) { _ = l.put(x, value) }))
	}
	return core.Errorf(core.Invalid, "There is no setting %q.", what)
}

// rearrange lets turns learn at once what may be done where, and within what
// limits, unless the change failed.
func (b *Bot) rearrange(err error) error {
	switch {
	case err != nil:
	case b.exchange.TryLock():
		b.rebuild()
		b.exchange.Unlock()
	default: // somebody exchanges parts, and may wait for this turn
		ring(b.changed)
	}
	return err
}
