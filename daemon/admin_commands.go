package daemon

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"synthbot/core"
	"synthbot/core/command"
	"synthbot/core/loop"
	"synthbot/core/txt"
	"synthbot/core/watch"
	"synthbot/daemon/settings"
)

func (b *chatCommands) forAdmins() []command.Command {
	names := settings.Names[settings.Settings]()
	levels := []string{"debug", "info", "warn", "error", settings.Default}
	name := command.Arg{Name: "name", Brief: "Its name, or default"}
	place := command.Arg{Name: "path", Brief: "The place, like telegram/-1001234567890", Required: true}
	setLog := func(_ context.Context, c command.Call) (string, error) {
		return b.SetLog(c.Args["room"], c.Args["level"])
	}
	return []command.Command{
		{Do: b.status, Spec: command.Spec{Name: "status", Brief: "Show how I am doing"}},
		{Do: b.why, Spec: command.Spec{
			Name: "why", Brief: "Explain my last answer, here or in a group", Private: true,
			Args: []command.Arg{{Name: "path", Brief: "The group, like telegram/-1001234567890"}},
		}},
		{Do: b.spentToday, Spec: command.Spec{Name: "usage", Brief: "Show what was spent today", Private: true}},
		{Do: b.persona, Spec: command.Spec{
			Name: "persona", Brief: "Show or change who I am here", Args: []command.Arg{name},
		}},
		{Do: b.engine, Spec: command.Spec{
			Name: "engine", Brief: "Show or change which engine I ask here", Args: []command.Arg{name},
		}},
		{Do: b.set, Spec: command.Spec{
			Name: "set", Brief: "Show or change the settings of this chat",
			Args: []command.Arg{
				{Name: "what", Brief: "The setting; leave it out to see all", Choices: names},
				{Name: "value", Brief: "The value for this chat and its threads, or " + settings.Default, Rest: true},
			},
		}},
		{Do: b.say, Spec: command.Spec{
			Name: "say", Brief: "Let me say something in another place",
			Args: []command.Arg{place, {Name: "text", Brief: "What to say", Required: true, Rest: true}},
		}},
		{Do: b.history, Spec: command.Spec{
			Name: "history", Brief: "Show what was said last in a group", Private: true,
			Args: []command.Arg{place, {Name: "count", Brief: "How many messages"}},
		}},
		{Do: setLog, Spec: command.Spec{
			Name: "log", Brief: "Show or change how much I log, until I am restarted",
			Args: []command.Arg{
				{Name: "room", Brief: "A package like core/turn, or all"},
				{Name: "level", Brief: "How much it logs", Choices: levels},
			},
		}},
		{Do: b.requestReload, Spec: command.Spec{Name: "reload", Brief: "Read my settings again"}},
	}
}

func (b *chatCommands) status(ctx context.Context, c command.Call) (string, error) {
	p := b.InForce()
	waiting, err := core.Read(ctx, b.Data, core.View.Waiting)
	if err != nil {
		return "", err
	}
	waiting = slices.DeleteFunc(waiting, func(p core.Path) bool { return p == c.Path }) // it waits for this reply
	var s strings.Builder
	fmt.Fprintf(&s, "synthbot %s, up %s.\n", b.env.Version, b.env.Clock().Sub(b.monitor.began).Round(time.Second))
	for _, i := range p.Interfaces {
		fmt.Fprintf(&s, "- interface %s: %s\n", label(i), cmp.Or(b.monitor.trouble(i), "running"))
	}
	for _, l := range p.plugins {
		fmt.Fprintf(&s, "- plugin %s\n", l.Name())
	}
	fmt.Fprintf(&s, "- engines: %s\n", strings.Join(p.Engines.Names(), ", "))
	now := b.env.Clock()
	for _, name := range p.Engines.Names() {
		last := b.monitor.lastFailure(name)
		if !last.Since.IsZero() {
			fmt.Fprintf(&s, "- engine %s failed last %s ago: %s\n", name, since(now, last.Since), last.Text)
		}
	}
	for _, line := range b.workers.sharing.workerLines(ctx) {
		fmt.Fprintf(&s, "- %s\n", line)
	}
	for _, c := range b.alerts.failing() {
		fmt.Fprintf(&s, "- for %s: %s\n", since(now, c.since), c.text)
	}
	fmt.Fprintf(&s, "- actions: %d\n- places that wait for an answer: %d", len(p.Snapshot.All()), len(waiting))
	return s.String(), nil
}

// since returns how long ago a time was, in whole seconds, at least one.
func since(now, then time.Time) time.Duration {
	return max(now.Sub(then), time.Second).Round(time.Second)
}

// pathOf returns the path argument of a call, or else the path of the call's place.
func pathOf(c command.Call) (core.Path, error) {
	name := c.Args["path"]
	if name == "" {
		return c.Path, nil
	}
	path, err := core.ParsePath(name)
	if err != nil {
		err = core.Errorf(core.Invalid, "%q is not a path.", name)
	}
	return path, err
}

func (b *chatCommands) why(ctx context.Context, c command.Call) (string, error) {
	path, err := pathOf(c)
	if err != nil {
		return "", err
	}
	e, ok := b.monitor.traces.Last(func(e *watch.TurnEnd) bool {
		return e.Turn.Path == path && e.Trace != nil && len(e.Trace.Asks) > 0
	})
	if !ok {
		return "I have asked no model there since I was started.", nil
	}
	if e.Private && path != c.Path {
		return "", core.Errorf(core.Forbidden, privatePlace)
	}
	text := explain(&e)
	if path != c.Path {
		text = host{b.Bot}.nameWithPath(ctx, path) + "\n" + text
	}
	return text, nil
}

// privatePlace is the answer to admins who ask about other users' private chats.
const privatePlace = "That is a private conversation. What is said there stays there."

const maxMetadata = 600 // bytes of a plan's metadata that are shown

func explain(e *watch.TurnEnd) string {
	t := e.Trace
	var s strings.Builder
	fmt.Fprintf(&s, "Turn %d took %s, %s of it thinking.\n", e.Turn.Seq, milliseconds(t.Took), milliseconds(t.Thought))
	for _, a := range t.Asks {
		fmt.Fprintf(&s, "- round %d: %s, %s, %d tokens in (%d cached), %d out",
			a.Round, cmp.Or(a.Engine, "no engine"), milliseconds(a.Took), a.Usage.In, a.Usage.Cached, a.Usage.Out)
		separator := "; wrong: "
		for _, f := range a.Faults {
			s.WriteString(separator + "`" + strings.ReplaceAll(f, "`", "'") + "`")
			separator = ", "
		}
		for _, f := range a.Failed {
			s.WriteString("; before it `" + strings.ReplaceAll(f, "`", "'") + "`")
		}
		if a.Err != "" {
			s.WriteString("; failed")
		}
		s.WriteString("\n")
	}
	if len(t.Asks) > 0 {
		s.WriteString("Prompt, in characters: " + sectionSizes(t.Asks[len(t.Asks)-1].Sections) + "\n")
	}
	for _, m := range t.Memories {
		fmt.Fprintf(&s, "- remembered: %s\n", m)
	}
	became := map[core.Progress]string{
		core.ProgressDone: "did", core.ProgressPending: "waits for a yes", core.ProgressSkipped: "did not do",
		core.ProgressFailed: "failed", core.ProgressUnknown: "may have done",
	}
	for _, o := range t.Steps {
		fmt.Fprintf(&s, "- %s: %s", cmp.Or(became[o.Progress], string(o.Progress)), o.Action)
		if o.Text != "" {
			fmt.Fprintf(&s, " (%s: %s)", o.Kind, o.Text)
		}
		s.WriteString("\n")
	}
	for _, p := range t.Plans {
		if p.Intent != "" {
			fmt.Fprintf(&s, "- intent: %s", p.Intent)
			if p.Confidence != nil {
				fmt.Fprintf(&s, ", confidence %.2g", *p.Confidence)
			}
			s.WriteString("\n")
		}
		if len(p.Metadata) > 0 {
			metadata := strings.ReplaceAll(string(p.Metadata), "`", "'")
			fmt.Fprintf(&s, "- metadata: `%s`\n", txt.ClipBytes(metadata, maxMetadata))
		}
	}
	return strings.TrimSpace(s.String())
}

func sectionSizes(sections []watch.Section) string {
	list := make([]string, len(sections))
	for i, x := range sections {
		list[i] = fmt.Sprintf("%s %d", strings.TrimPrefix(x.Name, "context."), x.Size)
		if x.Dropped > 0 {
			list[i] += fmt.Sprintf(" (%d left out)", x.Dropped)
		}
	}
	return strings.Join(list, ", ")
}

func milliseconds(d time.Duration) string { return d.Round(time.Millisecond).String() }

func (b *chatCommands) spentToday(ctx context.Context, _ command.Call) (string, error) {
	c := b.InForce().Config
	day := c.Clock(b.env.Clock)().Format(time.DateOnly)
	uses, err := b.Data.DB.Uses(ctx, day, day)
	if err != nil {
		return "", err
	}
	rows := c.Spending(uses)
	if len(rows) == 0 {
		return "Nothing was spent today.", nil
	}
	var s strings.Builder
	for _, r := range rows {
		fmt.Fprintf(&s, "- %s: %d calls, %d tokens in (%d cached), %d out, cost %.4f\n",
			r.Engine, r.Calls, r.In, r.Cached, r.Out, *r.Cost)
	}
	return strings.TrimSpace(s.String()), nil
}

func (b *chatCommands) say(ctx context.Context, c command.Call) (string, error) {
	to, err := pathOf(c)
	if err != nil {
		return "", err
	}
	return "Said.", host{b.Bot}.say(ctx, to, c.Args["text"], false)
}

func (b *chatCommands) history(ctx context.Context, c command.Call) (string, error) {
	path, err := pathOf(c)
	if err != nil {
		return "", err
	}
	n, err := strconv.Atoi(c.Args["count"])
	if err != nil || n < 1 {
		n = 10
	}
	n = min(n, 50)
	zone := b.now().Location()
	var s strings.Builder
	err = b.Data.View(ctx, func(v core.View) error {
		h, err := v.Head(path)
		if err != nil {
			return err
		}
		if h.Private && path != c.Path {
			return core.Errorf(core.Forbidden, privatePlace)
		}
		last := func(n int) ([]core.Entry, error) { return v.Last(path, n) }
		entries, err := LastMatching(n, last, (*core.Entry).Spoken)
		for i := range entries {
			m := &entries[i].Message
			fmt.Fprintf(&s, "%s %s: %s\n", m.Time.In(zone).Format("15:04"), m.Author.Name, m.Transcript())
		}
		return err
	})
	if s.Len() == 0 && err == nil {
		return "Nothing was said there.", nil
	}
	return strings.TrimSpace(s.String()), err
}

// LastMatching returns the last n entries that match, or fewer. last returns the last n entries of all.
func LastMatching(
	n int, last func(n int) ([]core.Entry, error), match func(*core.Entry) bool,
) (found []core.Entry, err error) {
	for count := n; ; count *= 2 {
		all, err := last(count)
		found = nil
		for i := range all {
			if match(&all[i]) {
				found = append(found, all[i])
			}
		}
		if err != nil || len(found) >= n || len(all) < count {
			return found[max(len(found)-n, 0):], err
		}
	}
}

// requestReload checks the configuration now and requests a reload after this turn. A reload within the turn could
// deadlock: a changed interface waits for its turns when it stops.
func (b *chatCommands) requestReload(context.Context, command.Call) (string, error) {
	if b.reloads.requested == nil {
		return "", core.Errorf(core.Broken, "Only the daemon can do that.")
	}
	c, err := b.env.loadAgain()
	if err != nil {
		text := "The settings stay as they are: " + txt.Line(err.Error())
		return "", &core.Error{Kind: core.Invalid, Text: text, Err: err}
	}
	loop.Notify(b.reloads.requested)
	later := b.InForce().Config.keepFixed(c)
	if len(later) > 0 {
		return "I am reading my settings again. This changes after a restart only: " + strings.Join(later, ", "), nil
	}
	return "I am reading my settings again.", nil
}
