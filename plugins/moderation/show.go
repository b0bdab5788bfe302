package moderation

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"synthbot/core"
	"synthbot/core/command"
)

// Bounds of what commands list.
const (
	listMax = 30
	logMax  = 20
)

// blockedCommand lists who is blocked or muted: in a group, there; in private, for
// an admin, everybody.
func (p *Plugin) blockedCommand(ctx context.Context, c command.Call) (string, error) {
	a, err := p.viewer(ctx, &c)
	if err != nil {
		return "", err
	}
	shown := func(h *hold) bool { return c.Private || !h.scope.IsZero() && h.scope.Within(root(c.Path)) }
	list := append(p.listed(blocked, shown), p.listed(muted, shown)...)
	var b strings.Builder
	for i := range list {
		if i == listMax {
			fmt.Fprintf(&b, "… and %d more.\n", len(list)-listMax)
			break
		}
		b.WriteString(p.row(ctx, &list[i], c.Private))
	}
	p.mu.Lock()
	at, quiet := p.mutedAt(c.Path, p.host.Clock())
	until := p.mutes[at]
	p.mu.Unlock()
	if quiet {
		fmt.Fprintf(&b, "I am muted here %s.\n", ending(timeOf(until), p.host.Clock()))
	}
	if b.Len() == 0 {
		b.WriteString("Nobody is blocked or muted here.\n")
	}
	if a.admin() && !c.Private {
		b.WriteString("Who is blocked everywhere, I tell you in private.")
	}
	return strings.TrimSpace(b.String()), nil
}

// viewer is who asks for a list, once all is read. In private there is nothing to
// see for moderators: their group is not there.
func (p *Plugin) viewer(ctx context.Context, c *command.Call) (*actor, error) {
	a, err := newActor(c.Path, c.Private, c.Author)
	if err != nil {
		return nil, err
	}
	if c.Private && !a.admin() {
		return nil, core.Errorf(core.Forbidden, "Ask me in the group that it is about.")
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return a, p.open(ctx)
}

// row is a line about somebody who is held.
func (p *Plugin) row(ctx context.Context, h *held, private bool) string {
	name := "somebody who was forgotten, `" + h.mark() + "`"
	if !h.person.IsZero() {
		id := whoIs(h.person).id
		if private {
			id = h.person.String()
		}
		name = h.label() + " (`" + id + "`)"
	}
	text := fmt.Sprintf("- %s: %s", name, participle(h.kind))
	if private {
		text += " " + where(h.scope)
	}
	text += " " + ending(h.end(), p.host.Clock())
	item, ok, err := p.host.Items.Get(ctx, h.person, h.detailKey())
	if err != nil || !ok || h.person.IsZero() {
		return text + "\n"
	}
	if d, err := decode[detail](&item); err == nil && d.Reason != "" {
		text += ": " + d.Reason
	}
	return text + "\n"
}

// modlogCommand shows what happened: in a group, there; in private, for an admin,
// everywhere.
func (p *Plugin) modlogCommand(ctx context.Context, c command.Call) (string, error) {
	if _, err := p.viewer(ctx, &c); err != nil {
		return "", err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	var lines []string
	for _, e := range slices.Backward(p.log.events) {
		if len(lines) == logMax {
			break
		}
		if c.Private || !e.Place.IsZero() && e.Place.Within(root(c.Path)) {
			lines = append(lines, p.eventLine(&e, c.Private))
		}
	}
	if len(lines) == 0 {
		return "Nothing has happened here.", nil
	}
	slices.Reverse(lines)
	return strings.Join(lines, "\n"), nil
}

func (p *Plugin) eventLine(e *event, private bool) string {
	now := p.host.Clock()
	who := "this place"
	switch {
	case e.about.IsPerson() && private:
		who = fmt.Sprintf("%s (`%s`)", called(e.Name), e.about)
	case e.about.IsPerson():
		who = called(e.Name)
	case private:
		who = e.about.String()
	}
	text := fmt.Sprintf("- %s: %s %s", moment(e.At, now), who, happening(e))
	if private && !e.Place.IsZero() && e.about.IsPerson() {
		text += " in " + e.Place.String()
	}
	if e.byName != "" {
		text += " by " + e.byName
	}
	if !e.Until.IsZero() {
		text += " until " + moment(e.Until, now)
	}
	if e.Reason != "" {
		text += ": " + e.Reason
	}
	return text
}

// happening words what happened to whom.
func happening(e *event) string {
	switch e.What {
	case wasBlocked, wasUnblocked, wasMuted, wasUnmuted:
		if e.All {
			return "was " + e.What + " everywhere"
		}
		return "was " + e.What
	case wasLimited:
		return "reached a limit"
	case wasRepeating:
		return "repeated the same text"
	case wasFlooding:
		return "wrote too fast"
	case wasWalling:
		return "wrote too much at once"
	case brokeRule:
		return fmt.Sprintf("broke the rule %q", e.Detail)
	case hasAppealed:
		return "appealed"
	}
	return e.What
}

// appealsCommand lists the appeals.
func (p *Plugin) appealsCommand(ctx context.Context, c command.Call) (string, error) {
	a, err := newActor(c.Path, c.Private, c.Author)
	if err != nil || !a.admin() || !c.Private {
		return "", core.Errorf(core.Forbidden, "That is for admins, in private.")
	}
	p.mu.Lock()
	err = p.open(ctx)
	list := slices.Clone(p.log.appeals)
	p.mu.Unlock()
	if err != nil {
		return "", err
	}
	if len(list) == 0 {
		return "There are no appeals.", nil
	}
	var b strings.Builder
	if n := len(list) - listMax; n > 0 {
		fmt.Fprintf(&b, "%d older ones, and\n", n)
		list = list[n:]
	}
	for _, x := range list {
		fmt.Fprintf(&b, "- %s: %s (`%s`), %s: %s\n", moment(x.At, p.host.Clock()), x.Name, x.person, p.heldWords(x.person), x.Text)
	}
	return b.String() + "`/unblock PERSON` lifts a block.", nil
}

// heldWords says by what a person is held.
func (p *Plugin) heldWords(person core.Path) string {
	var parts []string
	for _, h := range p.any(person) {
		parts = append(parts, participle(h.kind)+" "+where(h.scope))
	}
	if len(parts) == 0 {
		return "no longer blocked"
	}
	return strings.Join(parts, ", ")
}
