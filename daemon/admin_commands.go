package daemon

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"synthbot/core"
	"synthbot/core/command"
	"synthbot/core/txt"
	"synthbot/daemon/settings"
)

// adminCommands are the commands of admins.
type adminCommands struct {
	bot    *Bot
	places *placeCommands
}

func (a *adminCommands) list() []command.Command {
	name := []command.Arg{{Name: "name", Brief: "Its name, or default"}}
	place := command.Arg{Name: "path", Brief: "The place, like telegram/-1001234567890", Required: true}
	return []command.Command{
		{Spec: command.Spec{Name: "status", Idempotent: true, Brief: "Tell how I am", Rank: core.Admin}, Do: a.status},
		{Spec: command.Spec{Name: "why", Idempotent: true, Brief: "Explain my last answer, here or in a group", Rank: core.Admin, Private: true, Args: []command.Arg{{Name: "path", Brief: "The group, like telegram/-1001234567890"}}}, Do: a.why},
		{Spec: command.Spec{Name: "usage", Idempotent: true, Brief: "Tell what was spent today", Rank: core.Admin, Private: true}, Do: a.spentToday},
		{Spec: command.Spec{Name: "persona", Idempotent: true, Brief: "Show or change who I am here", Rank: core.Admin, Args: name}, Do: a.places.persona},
		{Spec: command.Spec{Name: "engine", Idempotent: true, Brief: "Show or change which engine I ask here", Rank: core.Admin, Args: name}, Do: a.places.engine},
		a.places.setCommand(),
		{Spec: command.Spec{Name: "say", Brief: "Let me say something in another place", Rank: core.Admin, Args: []command.Arg{
			place, {Name: "text", Brief: "What to say", Required: true, Rest: true},
		}}, Do: a.say},
		{Spec: command.Spec{Name: "history", Idempotent: true, Brief: "Show what was said last in a group", Rank: core.Admin, Private: true, Args: []command.Arg{place, {Name: "count", Brief: "How many messages"}}}, Do: a.lastWords},
		{Spec: command.Spec{Name: "log", Idempotent: true, Brief: "Show or change how much I log, until I am restarted", Rank: core.Admin, Args: []command.Arg{
			{Name: "room", Brief: "A part of me, like core/turn, or all"}, {Name: "level", Brief: "How much it logs", Choices: []string{"debug", "info", "warn", "error", settings.Default}},
		}}, Do: a.log},
		{Spec: command.Spec{Name: "reload", Idempotent: true, Brief: "Read my settings again", Rank: core.Admin}, Do: a.reloadSoon},
	}
}

// status tells how the bot is.
func (a *adminCommands) status(ctx context.Context, c command.Call) (string, error) {
	p := a.bot.InForce()
	waiting := 0
	err := a.bot.Data.Store.View(ctx, func(v core.View) error {
		places, err := v.Waiting()
		waiting = len(slices.DeleteFunc(places, func(p core.Path) bool { return p == c.Path })) // which waits for this
		return err
	})
	if err != nil {
		return "", err
	}
	var s strings.Builder
	fmt.Fprintf(&s, "synthbot %s, up %s.\n", a.bot.env.Version, a.bot.env.Clock().Sub(a.bot.monitor.began).Round(time.Second))
	for _, i := range p.Interfaces {
		state := "running"
		if w := a.bot.workers.find(i); w == nil || w.ended() {
			state = "stopped"
		}
		fmt.Fprintf(&s, "- interface %s: %s\n", i.Name(), state)
	}
	for _, l := range p.plugins {
		fmt.Fprintf(&s, "- plugin %s\n", l.Name())
	}
	fmt.Fprintf(&s, "- engines: %s\n- actions: %d\n- places that wait for an answer: %d", strings.Join(p.Engines.Names(), ", "), len(p.Snapshot.All()), waiting)
	return s.String(), nil
}

// why explains the latest turn of a place before this one.
func (a *adminCommands) why(_ context.Context, c command.Call) (string, error) {
	path := c.Path
	if name := c.Args["path"]; name != "" {
		var err error
		if path, err = core.ParsePath(name); err != nil {
			return "", core.Errorf(core.Invalid, "%q is no path.", name)
		}
	}
	e, ok := a.bot.monitor.traces.Last(func(e *core.TurnEnd) bool { return e.Turn.Path == path && e.Trace != nil && len(e.Trace.Asks) > 0 })
	if !ok {
		return "I have asked no model there since I was started.", nil
	}
	if e.Private && path != c.Path {
		return "", core.Errorf(core.Forbidden, closedTalk)
	}
	return explain(&e), nil
}

// closedTalk is what an admin is told of other people's private chats.
const closedTalk = "That is a private conversation. What is said there stays there."

// explain words how a turn came to its answer.
func explain(e *core.TurnEnd) string {
	t := e.Trace
	var s strings.Builder
	fmt.Fprintf(&s, "Turn %d took %s, %s of it thinking.\n", e.Turn.Seq, brief(t.Took), brief(t.Thought))
	for _, a := range t.Asks {
		fmt.Fprintf(&s, "- round %d: %s, %s, %d tokens in (%d cached), %d out", a.Round, orNone(a.Engine), brief(a.Took), a.Usage.In, a.Usage.Cached, a.Usage.Out)
		for i, f := range a.Faults {
			if i == 0 {
				s.WriteString("; wrong: ")
			} else {
				s.WriteString(", ")
			}
			s.WriteString("`" + strings.ReplaceAll(f, "`", "'") + "`")
		}
		if a.Err != "" {
			s.WriteString("; failed")
		}
		s.WriteString("\n")
	}
	if n := len(t.Asks); n > 0 {
		s.WriteString("Prompt, in characters: ")
		for i, x := range t.Asks[n-1].Sections {
			if i > 0 {
				s.WriteString(", ")
			}
			fmt.Fprintf(&s, "%s %d", strings.TrimPrefix(x.Name, "context."), x.Size)
			if x.Dropped > 0 {
				fmt.Fprintf(&s, " (%d left out)", x.Dropped)
			}
		}
		s.WriteString("\n")
	}
	for _, m := range t.Memories {
		fmt.Fprintf(&s, "- remembered: %s\n", m)
	}
	for _, o := range t.Steps {
		fmt.Fprintf(&s, "- did: %s", o.Action)
		if o.Text != "" {
			fmt.Fprintf(&s, " (%s: %s)", o.Kind, o.Text)
		}
		s.WriteString("\n")
	}
	for i := range t.Plans {
		s.WriteString(meant(&t.Plans[i]))
	}
	return strings.TrimSpace(s.String())
}

// maxMetadata is how much of what a model adds to a plan is told, in bytes.
const maxMetadata = 600

// meant words what a plan says of itself.
func meant(p *core.Plan) string {
	var s strings.Builder
	if p.Intent != "" {
		fmt.Fprintf(&s, "- intent: %s", p.Intent)
		if p.Confidence != nil {
			fmt.Fprintf(&s, ", confidence %.2g", *p.Confidence)
		}
		s.WriteString("\n")
	}
	if len(p.Metadata) > 0 {
		more := strings.ReplaceAll(string(p.Metadata), "`", "'")
		if len(more) > maxMetadata {
			more = strings.ToValidUTF8(more[:maxMetadata], "") + "…"
		}
		fmt.Fprintf(&s, "- metadata: `%s`\n", more)
	}
	return s.String()
}

func orNone(engine string) string {
	if engine == "" {
		return "no engine"
	}
	return engine
}

func brief(d time.Duration) string { return d.Round(time.Millisecond).String() }

// spentToday tells tokens and cost of today.
func (a *adminCommands) spentToday(ctx context.Context, _ command.Call) (string, error) {
	c := a.bot.InForce().Config
	day := c.Clock(a.bot.env.Clock)().Format(time.DateOnly)
	if a.bot.Data.DB == nil {
		return "", core.ErrClosed
	}
	uses, err := a.bot.Data.DB.Uses(ctx, day, day)
	if err != nil {
		return "", err
	}
	rows := Spending(uses)
	if len(rows) == 0 {
		return "Nothing was spent today.", nil
	}
	var s strings.Builder
	for _, r := range rows {
		fmt.Fprintf(&s, "- %s: %d calls, %d tokens in (%d cached), %d out, cost %.4f\n", r.Engine, r.Calls, r.In, r.Cached, r.Out, c.Cost(r.Engine, r.Usage))
	}
	return strings.TrimSpace(s.String()), nil
}

// say writes into another place.
func (a *adminCommands) say(ctx context.Context, c command.Call) (string, error) {
	to, err := core.ParsePath(c.Args["path"])
	if err != nil {
		return "", core.Errorf(core.Invalid, "%q is no path.", c.Args["path"])
	}
	if err := a.bot.outbox.Tell(ctx, to, c.Args["text"]); err != nil {
		return "", err
	}
	return "Said.", nil
}

// lastWords shows what was said last in a place that others can read, too.
func (a *adminCommands) lastWords(ctx context.Context, c command.Call) (string, error) {
	path, err := core.ParsePath(c.Args["path"])
	if err != nil {
		return "", core.Errorf(core.Invalid, "%q is no path.", c.Args["path"])
	}
	n, err := strconv.Atoi(c.Args["count"])
	if err != nil || n < 1 || n > 50 {
		n = 10
	}
	var s strings.Builder
	err = a.bot.Data.Store.View(ctx, func(v core.View) error {
		h, err := v.Head(path)
		if err != nil {
			return err
		}
		if h.Private && path != c.Path {
			return core.Errorf(core.Forbidden, closedTalk)
		}
		entries, err := v.Last(path, n)
		for i := range entries {
			e := &entries[i]
			if e.Spoken() {
				fmt.Fprintf(&s, "%s %s: %s\n", e.Message.Time.Format("15:04"), e.Message.Author.Name, e.Message.Transcript())
			}
		}
		return err
	})
	if s.Len() == 0 && err == nil {
		return "Nothing was said there.", nil
	}
	return strings.TrimSpace(s.String()), err
}

// reloadSoon reads the configuration again when this answer is under way: an
// interface that changes would wait for the turn that waits for it.
func (a *adminCommands) reloadSoon(context.Context, command.Call) (string, error) {
	if a.bot.reloads.requested == nil {
		return "", core.Errorf(core.Broken, "Only the daemon can do that.")
	}
	if _, err := a.bot.env.MustLoad(); err != nil {
		return "", &core.Error{Kind: core.Invalid, Text: "The settings stay as they are: " + txt.Line(err.Error()), Err: err}
	}
	notify(a.bot.reloads.requested)
	return "I am reading my settings again.", nil
}
