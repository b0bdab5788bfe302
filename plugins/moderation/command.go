package moderation

import (
	"context"
	"fmt"
	"strings"

	"synthbot/core"
	"synthbot/core/command"
	"synthbot/core/txt"
)

// maxAppeal is how long an appeal may be, in characters.
const maxAppeal = 1000

// Commands implements command.Commander.
func (p *Plugin) Commands() []command.Command {
	whom := command.Arg{Name: "person", Brief: "A name, tag or id", Rest: true}
	return []command.Command{
		{Spec: command.Spec{
			Name: "block", Brief: "Block a person in this group; as an admin, everywhere", Rank: core.Moderator,
			Args: []command.Arg{{Name: "person", Brief: "A tag, an id, or a name of one word"}, {Name: "reason", Brief: "How long (7d), and why", Rest: true}},
		}, Do: p.blockCommand},
		{Spec: command.Spec{
			Name: "unblock", Brief: "Let a blocked person talk to me again", Rank: core.Moderator,
			Args: []command.Arg{{Name: "person", Brief: "A name, tag or id, or what /blocked says", Required: true, Rest: true}},
		}, Do: p.unblockCommand},
		{Spec: command.Spec{
			Name: "mute", Brief: "Let me be quiet here for a while, or towards one person", Rank: core.Moderator,
			Args: []command.Arg{{Name: "duration", Brief: "Like 30m, 2h or 1d"}, whom},
		}, Do: p.muteCommand},
		{Spec: command.Spec{
			Name: "unmute", Brief: "Let me talk here again, or to one person", Rank: core.Moderator, Args: []command.Arg{whom},
		}, Do: p.unmuteCommand},
		{Spec: command.Spec{Name: "blocked", Idempotent: true, Brief: "List who is blocked or muted here", Rank: core.Moderator}, Do: p.blockedCommand},
		{Spec: command.Spec{Name: "modlog", Idempotent: true, Brief: "Show what moderators and guards did here", Rank: core.Moderator}, Do: p.modlogCommand},
		{Spec: command.Spec{
			Name: "appeal", Brief: "Ask the admins to lift your block, once a day", Private: true,
			Args: []command.Arg{{Name: "text", Brief: "Why it should be lifted; left out: how it stands", Rest: true}},
		}, Do: p.appealCommand},
		{Spec: command.Spec{Name: "appeals", Idempotent: true, Brief: "List the appeals of people who are blocked", Rank: core.Admin, Private: true}, Do: p.appealsCommand},
	}
}

func (p *Plugin) blockCommand(ctx context.Context, c command.Call) (string, error) {
	a, err := newActor(c.Path, c.Private, c.Author)
	if err != nil {
		return "", err
	}
	w := wish{who: c.Args["person"], reason: c.Args["reason"]}
	if c.Target != "" && w.who != "" {
		if _, err := p.person(ctx, a, w.who); err != nil { // it was called on a message, with a reason alone
			w.who, w.reason = "", w.who+" "+w.reason
		}
	}
	if w.who == "" {
		if w.who, err = p.writer(ctx, &c); err != nil {
			return "", err
		}
	}
	first, rest, _ := strings.Cut(w.reason, " ")
	if d, ok := parseSpan(first); ok {
		w.span, w.reason = d, rest
	}
	h, err := p.hold(ctx, a, blocked, w)
	if err != nil {
		return "", err
	}
	return p.said(wasBlocked, h), nil
}

// writer is the id of who wrote the message that a command was called on.
func (p *Plugin) writer(ctx context.Context, c *command.Call) (id string, err error) {
	if c.Target != "" {
		err = p.host.Reader.View(ctx, func(v core.View) error {
			e, ok, err := v.Entry(c.Path, c.Target)
			if ok && !e.Self {
				id = e.Message.Author.ID
			}
			return err
		})
	}
	switch {
	case err != nil:
		return "", fmt.Errorf("message %s of %s: %w", c.Target, c.Path, err)
	case id == "":
		return "", core.Errorf(core.Invalid, "Say whom: `/block PERSON [how long] [why]`.")
	}
	return id, nil
}

func (p *Plugin) unblockCommand(ctx context.Context, c command.Call) (string, error) {
	return p.releaseCommand(ctx, &c, blocked)
}

func (p *Plugin) releaseCommand(ctx context.Context, c *command.Call, kind string) (string, error) {
	a, err := newActor(c.Path, c.Private, c.Author)
	if err != nil {
		return "", err
	}
	lifted, err := p.release(ctx, a, kind, c.Args["person"])
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%s is %s no longer.", lifted[0].label(), participle(kind)), nil
}

func (p *Plugin) muteCommand(ctx context.Context, c command.Call) (string, error) {
	a, err := newActor(c.Path, c.Private, c.Author)
	if err != nil {
		return "", err
	}
	d, whom := p.config.MuteFor, c.Args["person"]
	if text := c.Args["duration"]; text != "" {
		if given, ok := parseSpan(text); ok {
			d = given
		} else {
			whom = strings.TrimSpace(text + " " + whom) // it was left out
		}
	}
	if whom == "" {
		until, err := p.hush(ctx, a, d, "")
		if err != nil {
			return "", err
		}
		return "I am quiet here " + ending(until, p.host.Clock()) + ". `/unmute` ends it.", nil
	}
	h, err := p.hold(ctx, a, muted, wish{who: whom, span: d})
	if err != nil {
		return "", err
	}
	return p.said(wasMuted, h), nil
}

func (p *Plugin) unmuteCommand(ctx context.Context, c command.Call) (string, error) {
	if c.Args["person"] != "" {
		return p.releaseCommand(ctx, &c, muted)
	}
	a, err := newActor(c.Path, c.Private, c.Author)
	if err != nil {
		return "", err
	}
	if err := p.unhush(ctx, a); err != nil {
		return "", err
	}
	return "I may talk here again.", nil
}

// appealCommand takes an appeal in.
func (p *Plugin) appealCommand(ctx context.Context, c command.Call) (string, error) {
	if c.Author.ID == "" || !c.Private {
		return "", core.Errorf(core.Forbidden, "That is between one person and me.")
	}
	ctx, err := p.begin(ctx)
	if err != nil {
		return "", err
	}
	defer p.change.Unlock()
	by := p.any(c.Person)
	text := txt.Clip(txt.Line(c.Args["text"]), maxAppeal)
	if len(by) == 0 || text == "" {
		return p.standing(c.Person, by), nil
	}
	now := p.host.Clock()
	p.mu.Lock()
	former := p.log.of(c.Person)
	p.mu.Unlock()
	if n := len(former); n > 0 && now.Sub(former[n-1].At) < day {
		return "", core.Errorf(core.Occupied, "You have appealed already; you may again at %s.", moment(former[n-1].At.Add(day), now))
	}
	return "I have passed it on to my admins.", p.appeal(ctx, appeal{At: now, Name: called(c.Author.Name), Text: text, person: c.Person})
}

// appeal keeps an appeal and tells the admins that there is one. p.change is held.
func (p *Plugin) appeal(ctx context.Context, x appeal) error {
	p.mu.Lock()
	x.id = p.log.number(x.At)
	gone := p.log.appealed(x)
	p.note(event{What: hasAppealed, Name: x.Name, about: x.person})
	p.mu.Unlock()
	for _, old := range gone {
		if err := p.drop(ctx, old.person, appealKey+old.id); err != nil {
			return err
		}
	}
	if _, err := p.put(ctx, x.person, appealKey+x.id, x, core.AnyVersion); err != nil {
		return err
	}
	p.host.Desk.Admins(fmt.Sprintf("%s (%s) appeals against being blocked. /appeals tells what they say.", x.Name, x.person))
	return nil
}

// standing tells a person how it stands with him.
func (p *Plugin) standing(person core.Path, by []hold) string {
	if len(by) == 0 {
		return "You are not blocked."
	}
	var b strings.Builder
	for _, h := range by {
		fmt.Fprintf(&b, "You are %s %s %s.\n", participle(h.kind), where(h.scope), ending(h.end(), p.host.Clock()))
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, x := range p.log.of(person) {
		fmt.Fprintf(&b, "Your appeal, %s: %s\n", moment(x.At, p.host.Clock()), x.Text)
	}
	return b.String() + "`/appeal TEXT` asks my admins to lift it, once a day."
}
