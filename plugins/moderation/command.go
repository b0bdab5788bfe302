package moderation

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"synthbot/core"
	"synthbot/core/command"
	"synthbot/core/spoken"
	"synthbot/core/txt"
	"synthbot/core/users"
	"synthbot/core/values"
)

const (
	maxAppeal = 1000 // characters of an appeal
	maxListed = 30   // holds or appeals that a command lists
	maxLogged = 20   // events that /modlog lists
)

const (
	holdForm = "PERSON [how long] [why]"
	muteForm = "[PERSON] [how long] [why]"
)

// Commands implements command.Commander.
func (p *Plugin) Commands() []command.Command {
	whom := command.Arg{Name: "person", Brief: "A name, tag or id, or reply to their message", Rest: true}
	return []command.Command{
		forModerators(p.blockCommand, command.Spec{
			Name: "block", Brief: "Block a user in this group (admins: everywhere)", Form: holdForm,
			Args: []command.Arg{
				{Name: "person", Brief: "A name, tag or id, or reply to their message"},
				{Name: "reason", Brief: "How long (7d, until Friday), and why", Rest: true},
			},
		}),
		forModerators(p.unblockCommand, command.Spec{
			Name: "unblock", Brief: "Unblock a user", Form: "PERSON", Args: []command.Arg{
				{Name: "person", Brief: "As /blocked lists them, or reply to their message", Rest: true},
			},
		}),
		forModerators(p.muteCommand, command.Spec{
			Name: "mute", Brief: "Mute me here for a while, or towards one user", Form: muteForm,
			Args: []command.Arg{
				{Name: "duration", Brief: "Like 30m, 2 hours or 1d; the person may come first"},
				{Name: "person", Brief: "A name, tag or id, or reply to their message; and why", Rest: true},
			},
		}),
		forModerators(func(ctx context.Context, a *actor) (string, error) {
			name, err := a.named(ctx, p.host.Reader)
			if err != nil {
				return "", err
			}
			return p.unmute(ctx, a, name)
		}, command.Spec{
			Name: "unmute", Brief: "Let me talk here again, or to one user", Args: []command.Arg{whom},
		}),
		forModerators(p.blockedCommand, command.Spec{
			Name: "blocked", Idempotent: true, Brief: "List who is blocked or muted here",
		}),
		forModerators(p.modlogCommand, command.Spec{
			Name: "modlog", Idempotent: true, Brief: "Show what moderators and guards did here",
		}),
		{Spec: command.Spec{
			Name: "appeal", Brief: "Ask the admins to lift your block, once a day", Private: true,
			Args: []command.Arg{
				{Name: "text", Brief: "Why the block should be lifted; leave it out to see the state", Rest: true},
			},
		}, Do: p.appealCommand},
		{Spec: command.Spec{
			Name: "appeals", Idempotent: true, Brief: "List the appeals of blocked users",
			Rank: core.RankAdmin, Private: true,
		}, Do: p.appealsCommand},
	}
}

func forModerators(do func(context.Context, *actor) (string, error), s command.Spec) command.Command {
	s.Rank = core.RankModerator
	return command.Command{Spec: s, Do: func(ctx context.Context, c command.Call) (string, error) {
		a, err := newActor(c)
		if err != nil {
			return "", err
		}
		return do(ctx, a)
	}}
}

func (p *Plugin) blockCommand(ctx context.Context, a *actor) (string, error) {
	r, err := p.readHold(ctx, a, a.Args["person"]+" "+a.Args["reason"])
	if err != nil {
		return "", err
	}
	if r.name == "" {
		return "", core.Errorf(core.Invalid, "Say whom, or reply to their message: `/block "+holdForm+"`.")
	}
	done, err := p.holdUser(ctx, a, blocked, r)
	return done + r.remark, err
}

// readHold parses a person, a duration and a reason. The duration may precede or follow the person, or come last. A
// quoted text is a reason. If nobody is named, the person is the author of the message that the command was called on;
// without one, name is "".
func (p *Plugin) readHold(ctx context.Context, a *actor, text string) (r holdRequest, err error) {
	words := strings.Fields(text)
	n, unknown := p.nameLength(ctx, a, words)
	_, quotes := unquoted(text)
	if n == 0 && !quotes {
		r.span, text, _ = p.spans.FindSpan(text, p.host.Clock()) // the call below returns the error again
		words = strings.Fields(text)
		n, unknown = p.nameLength(ctx, a, words)
	}
	r.name, r.reason = strings.Join(words[:n], " "), strings.Join(words[n:], " ")
	isTag := len(words) > 0 && strings.HasPrefix(words[0], "@") // not the first word of a reason
	if n == 0 && !isTag {
		r.name, err = users.Writer(ctx, p.host.Reader, a.Path, a.Target, a.Writer)
	}
	if err == nil && r.name == "" {
		err = unknown
	}
	if err != nil || r.span > 0 {
		return r, err
	}
	quoted, quotes := unquoted(r.reason)
	if quotes {
		r.reason = quoted
		return r, nil
	}
	r.span, r.reason, err = p.spans.FindSpan(r.reason, p.host.Clock())
	words = append(strings.Fields(r.reason), "", "")
	mayBeTime := lacksUnit(p.spans, words[0], words[1]) // "30"
	switch {
	case err != nil: // "until 5 people come"
		mayBeTime = slices.ContainsFunc(words[:3], beginsWithDigit)
	case len(words) == 4: // "for 30"
		mayBeTime = mayBeTime || lacksUnit(p.spans, words[1], "")
	}
	switch {
	case errors.Is(err, spoken.ErrNever):
		return r, core.Errorf(core.Invalid, "There is no such day.")
	case errors.Is(err, spoken.ErrPast):
		return r, core.Errorf(core.Invalid, "That time is past.")
	case r.span == 0 && mayBeTime:
		return r, core.Errorf(core.Invalid, "I do not understand how long; write it like 30m, 12h, 7d or until Friday"+
			" before the reason.")
	case err != nil || r.span == 0 && beginsWithDigit(words[0]): // "until they stop", or "3 warnings"
		r.remark = fmt.Sprintf(" I took %q as the reason, not as a time.", txt.ClipLine(r.reason, maxReason))
	}
	return r, nil
}

func beginsWithDigit(word string) bool { return strings.TrimLeft(word, digits) != word }

const digits = "0123456789"

// lacksUnit reports whether a number may be meant as a time without a unit that is understood, such as "30", "18:00" or
// "30 minuts". It is not if another word follows: "3 warnings", "2nd".
func lacksUnit(units *spoken.Reader, word, after string) bool {
	unit := cmp.Or(strings.TrimLeft(word, digits), after)
	letter, _ := utf8.DecodeRuneInString(unit)
	return beginsWithDigit(word) && (!unicode.IsLetter(letter) || units.IsLikeUnit(unit))
}

// unquoted returns a text without the quotation marks around it. ok is false if there are none.
func unquoted(text string) (inner string, ok bool) {
	const marks = `"'“”„«»‘’`
	rest := strings.TrimLeft(text, marks)
	inner = strings.TrimRight(rest, marks)
	return strings.TrimSpace(inner), rest != text && inner != rest && inner != ""
}

// holdUser blocks or mutes a user. It returns a text for the actor.
func (p *Plugin) holdUser(ctx context.Context, a *actor, kind string, r holdRequest) (string, error) {
	u, err := p.findUser(ctx, a, r.name)
	if err == nil {
		err = p.checkRank(a, u)
	}
	action, scope := muteAction.Name, a.Path
	if err == nil && kind == blocked {
		action = blockAction.Name
		scope, err = a.scope(r.onlyHere)
	}
	if err != nil {
		return "", err
	}
	h := hold{
		kind: kind, scope: scope, user: u.path, name: txt.ClipLine(u.Name, maxName), tag: txt.ClipLine(u.Tag, maxName),
	}
	if r.span > 0 {
		h.until = p.host.Clock().Add(r.span).Truncate(time.Second)
	}
	h, was, err := p.records.start(ctx, a, h, r.reason)
	if err != nil {
		return "", err
	}
	undo := core.JSON(heldBefore{Person: h.user.String(), Before: was, Here: !h.scope.IsZero(), Number: h.number})
	noted := mutePayload{Person: h.label(), Reason: r.reason, Duration: txt.Span(r.span)}
	a.NoteDone(action, noted, core.Result{Undo: undo})
	until := ending(h.until, p.host.Clock())
	return fmt.Sprintf("%s is %s %s %s.", h.label(), participle(h.kind), where(h.scope), until), nil
}

func (p *Plugin) unblockCommand(ctx context.Context, a *actor) (string, error) {
	name, err := a.named(ctx, p.host.Reader)
	if err == nil && name == "" {
		err = core.Errorf(core.Invalid, "Say whom, as /blocked lists them: `/unblock PERSON`.")
	}
	if err != nil {
		return "", err
	}
	return p.releaseUser(ctx, a, blocked, name)
}

func (p *Plugin) releaseUser(ctx context.Context, a *actor, kind, name string) (string, error) {
	lifted, was, err := p.release(ctx, a, kind, name)
	if err != nil {
		return "", err
	}
	action := unmuteAction.Name
	if kind == blocked {
		action = unblockAction.Name
	}
	a.NoteDone(action, unblockPayload{Person: lifted.label()}, core.Result{Undo: core.JSON(was)})
	return fmt.Sprintf("%s is no longer %s.", lifted.label(), participle(kind)), nil
}

func (p *Plugin) muteCommand(ctx context.Context, a *actor) (string, error) {
	r, err := p.readHold(ctx, a, a.Args["duration"]+" "+a.Args["person"])
	refused, ok := errors.AsType[*core.Error](err)
	if ok {
		err = core.Errorf(refused.Kind, "%s Usage: `/mute %s`.", refused.Text, muteForm)
	}
	if err != nil {
		return "", err
	}
	r.span = cmp.Or(r.span, p.config.MuteFor)
	done, err := p.mute(ctx, a, r)
	return done + r.remark, err
}

const maxNameWords = 6 // how many words a name may have if other words follow it

// nameLength returns how many of the first words are the name of a user, as many as possible; 0 and an error if none.
func (p *Plugin) nameLength(ctx context.Context, a *actor, words []string) (n int, err error) {
	for n = len(words); n > 0; n = min(n-1, maxNameWords) {
		_, err = p.findUser(ctx, a, strings.Join(words[:n], " "))
		if err == nil {
			return n, nil
		}
	}
	return 0, err
}

// mute mutes a user or, without a name, the bot in the actor's place. It returns a text for the actor.
func (p *Plugin) mute(ctx context.Context, a *actor, r holdRequest) (string, error) {
	if strings.TrimSpace(r.name) != "" {
		return p.holdUser(ctx, a, muted, r)
	}
	until := p.host.Clock().Add(r.span).Truncate(time.Second)
	h, was, err := p.records.start(ctx, a, quietIn(a.Path, until, 0), r.reason)
	if err == nil {
		done := core.Result{Undo: core.JSON(heldBefore{Before: was, Number: h.number})}
		a.NoteDone(muteAction.Name, mutePayload{Reason: r.reason, Duration: txt.Span(r.span)}, done)
	}
	return "I am quiet here " + ending(h.until, p.host.Clock()) + ". `/unmute` ends it.", err
}

func (p *Plugin) unmute(ctx context.Context, a *actor, name string) (string, error) {
	if strings.TrimSpace(name) != "" {
		return p.releaseUser(ctx, a, muted, name)
	}
	was, err := p.unmutePlace(ctx, a)
	if err == nil {
		a.NoteDone(unmuteAction.Name, unmutePayload{}, core.Result{Undo: core.JSON(was)})
	}
	return "I may talk here again.", err
}

func (p *Plugin) appealCommand(ctx context.Context, c command.Call) (string, error) {
	if c.Author.ID == "" || !c.Private {
		return "", core.Errorf(core.Forbidden, "You can appeal only in private.")
	}
	r := p.records
	ctx, err := r.begin(ctx)
	if err != nil {
		return "", err
	}
	defer r.change.Unlock()
	now, held := p.host.Clock(), r.holdsOf(c.Person)
	former := r.events(func(e *event) bool { return e.isAppeal() && e.about == c.Person })
	e := event{Name: displayName(c.Author.Name), Text: txt.ClipLine(c.Args["text"], maxAppeal), about: c.Person}
	if len(held) == 0 {
		return "You are not blocked.", nil
	}
	if e.Text == "" {
		var b strings.Builder
		for _, h := range held {
			fmt.Fprintf(&b, "You are %s %s %s.\n", participle(h.kind), where(h.scope), ending(h.until, now))
		}
		for _, x := range former {
			fmt.Fprintf(&b, "Your appeal, %s: %s\n", txt.Moment(x.At, now), x.Text)
		}
		return b.String() + "`/appeal TEXT` asks my admins to lift it, once a day.", nil
	}
	for _, x := range former {
		again := x.At.Add(day)
		if now.Before(again) {
			return "", core.Errorf(core.Occupied, "You have appealed already; you can appeal again at %s.",
				txt.Moment(again, now))
		}
	}
	if err := r.logNow(ctx, e); err != nil {
		return "", err
	}
	r.logLater(event{What: hasAppealed, Name: e.Name, about: e.about})
	news := "%s (%s) appeals against being blocked. /appeals shows what they wrote."
	p.host.Messenger.NotifyAdmins(fmt.Sprintf(news, e.Name, e.about))
	return "I have passed it on to my admins.", nil
}

// blockedCommand lists who is blocked or muted: in a group those of the group, for an admin in private all.
func (p *Plugin) blockedCommand(ctx context.Context, a *actor) (string, error) {
	if err := p.openFor(ctx, a); err != nil {
		return "", err
	}
	wanted := func(h *hold) bool { return a.Private || !h.scope.IsZero() && h.scope.Within(a.Path.Group()) }
	list := append(p.records.active(blocked, wanted), p.records.active(muted, wanted)...)
	var b strings.Builder
	for i := range list {
		if i == maxListed {
			fmt.Fprintf(&b, "… and %d more.\n", len(list)-maxListed)
			break
		}
		b.WriteString(p.holdLine(ctx, &list[i], a.Private) + "\n")
	}
	mute, quiet := p.records.mutedAt(a.Path)
	if quiet {
		fmt.Fprintf(&b, "I am muted here %s.\n", ending(mute.until, p.host.Clock()))
	}
	if b.Len() == 0 {
		b.WriteString("Nobody is blocked or muted here.\n")
	}
	if a.isAdmin() && !a.Private {
		b.WriteString("Ask me in private who is blocked everywhere.")
	}
	return strings.TrimSpace(b.String()), nil
}

// openFor opens the records for a list. It refuses moderators in private, who have no group there.
func (p *Plugin) openFor(ctx context.Context, a *actor) error {
	if a.Private && !a.isAdmin() {
		return core.Errorf(core.Forbidden, "Ask me in the group that it is about.")
	}
	p.records.mu.Lock()
	defer p.records.mu.Unlock()
	return p.records.open(ctx)
}

// holdLine describes the hold of a user for a list; with paths if private.
func (p *Plugin) holdLine(ctx context.Context, h *hold, private bool) string {
	name := "somebody who was forgotten, `" + h.mark() + "`"
	switch {
	case h.user.IsZero():
	case private:
		name = h.label() + " (`" + h.user.String() + "`)"
	default:
		name = h.label() + " (`" + userID(h.user) + "`)"
	}
	text := fmt.Sprintf("- %s: %s", name, participle(h.kind))
	if private {
		text += " " + where(h.scope)
	}
	text += " " + ending(h.until, p.host.Clock())
	if h.user.IsZero() {
		return text
	}
	d, _, err := values.Get[detail](ctx, p.host.Items, h.user, h.detailKey())
	if err == nil && d.Reason != "" {
		text += ": " + d.Reason
	}
	return text
}

// modlogCommand lists the latest events: in a group those of the group, for an admin in private all.
func (p *Plugin) modlogCommand(ctx context.Context, a *actor) (string, error) {
	if err := p.openFor(ctx, a); err != nil {
		return "", err
	}
	list := p.records.events(func(e *event) bool {
		return !e.isAppeal() && (a.Private || !e.Place.IsZero() && e.Place.Within(a.Path.Group()))
	})
	if len(list) == 0 {
		return "Nothing has happened here.", nil
	}
	latest := list[max(0, len(list)-maxLogged):]
	return txt.JoinFunc(latest, "\n", func(e event) string { return e.line(a.Private, p.host.Clock()) }), nil
}

func (p *Plugin) appealsCommand(ctx context.Context, c command.Call) (string, error) {
	a, err := newActor(c)
	if err != nil || !a.isAdmin() || !c.Private {
		return "", core.Errorf(core.Forbidden, "Only admins can do that, in private.")
	}
	if _, err := p.records.begin(ctx); err != nil {
		return "", err
	}
	defer p.records.change.Unlock()
	list := p.records.events((*event).isAppeal)
	if len(list) == 0 {
		return "There are no appeals.", nil
	}
	var b strings.Builder
	if len(list) > maxListed {
		fmt.Fprintf(&b, "%d older ones, and\n", len(list)-maxListed)
		list = list[len(list)-maxListed:]
	}
	for _, x := range list {
		holds := p.records.holdsOf(x.about)
		held := txt.JoinFunc(holds, ", ", func(h hold) string { return participle(h.kind) + " " + where(h.scope) })
		held = cmp.Or(held, "no longer blocked")
		fmt.Fprintf(&b, "- %s: %s (`%s`), %s: %s\n", txt.Moment(x.At, p.host.Clock()), x.Name, x.about, held, x.Text)
	}
	return b.String() + "`/unblock PERSON` lifts a block.", nil
}
