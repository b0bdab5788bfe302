package daemon

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	adminpage "synthbot/admin/page"
	"synthbot/core"
	"synthbot/core/action"
	"synthbot/core/command"
	"synthbot/core/txt"
	"synthbot/daemon/settings"
	"synthbot/plugins/knowledge"
	"synthbot/plugins/reminders"
)

func (s *pageServer) Lists(ctx context.Context, name string) ([]adminpage.List, error) {
	k, r := s.bot.Knowledge(), pluginOf[*reminders.Plugin](s.bot.InForce())
	switch {
	case name == "plugins":
		return s.pluginList(), nil
	case name == "knowledge" && k != nil:
		return s.knowledge(ctx, knowledge.Editor{Plugin: k})
	case name == "reminders" && r != nil:
		return s.reminders(ctx, r), nil
	}
	return nil, nil
}

const maxReminders = 200

func (s *pageServer) reminders(ctx context.Context, plugin *reminders.Plugin) []adminpage.List {
	all, err := plugin.All(ctx)
	if err != nil {
		s.bot.log.Warn("reminders not listed", "err", err)
	}
	list := adminpage.List{Title: "Waiting reminders", Note: counted(len(all), "reminder") + ", the next one first."}
	for _, r := range all[:min(len(all), maxReminders)] {
		cancel := pageButton("Cancel", "remind", "what", "cancel", "text", r.ID)
		cancel.Sure = "It cannot be undone."
		row := adminpage.Row{
			Text: r.Text, Place: r.Place, Person: r.Person, Time: r.Due, Buttons: []adminpage.Button{cancel},
		}
		if r.Repeats != "" {
			row.Values = append(row.Values, "repeats "+r.Repeats)
		}
		list.Rows = append(list.Rows, row)
	}
	return []adminpage.List{list}
}

// commands returns the commands behind the page's buttons. They are not available in chats.
func (s *pageServer) commands() []command.Command {
	return []command.Command{
		{Do: s.doKnowledge, Spec: command.Spec{
			Name: "knowledge", Brief: "Read the sources, answer or dismiss a question, or edit an entry",
			Args: []command.Arg{
				{
					Name: "what", Brief: "What to do", Required: true,
					Choices: []string{"sync", "answer", "dismiss", "edit"},
				},
				{Name: "id", Brief: "The id of the question or the entry"},
				{Name: "text", Brief: "The answer, or the new text of the entry", Rest: true},
			},
		}},
		{Do: s.doSwitch, Spec: command.Spec{
			Name: "switch", Brief: "Turn a plugin on or off, or an action in a place",
			Args: []command.Arg{
				{Name: "what", Brief: "What it is", Required: true, Choices: []string{"plugin", "action"}},
				{Name: "name", Brief: "Its name", Required: true},
				{Name: "to", Brief: "The new state", Required: true, Choices: []string{"on", "off"}},
			},
		}},
	}
}

func (s *pageServer) doKnowledge(ctx context.Context, c command.Call) (string, error) {
	plugin := s.bot.Knowledge()
	if plugin == nil {
		return "", core.Errorf(core.Invalid, "The plugin knowledge is off.")
	}
	k := knowledge.Editor{Plugin: plugin}
	id, text := c.Args["id"], c.Args["text"]
	switch c.Args["what"] {
	case "answer":
		return "The answer was passed on and saved.", k.Answer(ctx, c.Path, id, text)
	case "dismiss":
		return "The question is dismissed.", k.Dismiss(ctx, c.Path, id)
	case "edit":
		return "The entry is changed.", k.EditEntry(ctx, c.Path, id, text)
	}
	k.Reread()
	return "The sources will be read again.", nil
}

// knowledge returns three lists: unanswered questions, taught entries, and sources.
func (s *pageServer) knowledge(ctx context.Context, k knowledge.Editor) ([]adminpage.List, error) {
	state, err := k.State(ctx)
	if err != nil {
		return nil, err
	}
	sources := adminpage.List{Title: "Sources", Buttons: []adminpage.Button{
		pageButton("Read them again", "knowledge", "what", "sync"),
	}}
	switch {
	case state.Reading != "":
		sources.Note, sources.Live = "They are being read: "+state.Reading+".", true
	case !state.Synced.IsZero():
		sources.Note = "Last read " + state.Synced.In(s.bot.now().Location()).Format(time.DateTime) + "."
	}
	for _, source := range state.Sources {
		size := counted(source.Documents, "document") + ", " + counted(source.Passages, "passage")
		row := adminpage.Row{Name: source.Name, Values: []string{size, citedIn(source.Places)}}
		if len(source.Faults) > 0 {
			row.Mark, row.Bad = fmt.Sprintf("%d not readable", len(source.Faults)), true
			row.Values = append(row.Values, source.Faults[:min(len(source.Faults), maxShownFaults)]...)
		}
		sources.Rows = append(sources.Rows, row)
	}
	gaps := adminpage.List{Title: "Questions that nothing answered"}
	gaps.Note = counted(len(state.Gaps), "question") + " open."
	for _, g := range state.Gaps {
		answer := pageButton("Answer", "knowledge", "what", "answer", "id", g.ID)
		answer.Text = &adminpage.Arg{Name: "text"}
		answer.TextLabel = "The answer. The person who asked gets it, and the bot uses it where they asked"
		row := adminpage.Row{
			Text: g.Question, Place: g.Place, Time: g.Time, Values: []string{"asked " + counted(g.Times, "time")},
			Buttons: []adminpage.Button{answer, pageButton("Dismiss", "knowledge", "what", "dismiss", "id", g.ID)},
		}
		if g.Owner.IsPerson() {
			row.Person = g.Owner
		}
		gaps.Rows = append(gaps.Rows, row)
	}
	taught := adminpage.List{Title: "What users taught"}
	for _, e := range state.Entries {
		edit := pageButton("Edit", "knowledge", "what", "edit", "id", e.ID)
		edit.Text, edit.TextLabel = &adminpage.Arg{Name: "text", Value: e.Text}, "What the bot knows"
		remove := pageButton("Remove", "unteach", "id", e.ID)
		remove.Sure = "It cannot be undone."
		row := adminpage.Row{
			Text: e.Text, Place: e.Group, Person: e.Teacher, Time: e.Time, Buttons: []adminpage.Button{edit, remove},
		}
		if e.Question != "" {
			row.Values = append(row.Values, "answers: "+e.Question)
		}
		if e.Group.IsZero() {
			row.Values = append(row.Values, "seen everywhere")
		}
		taught.Rows = append(taught.Rows, row)
	}
	return []adminpage.List{gaps, taught, sources}, nil
}

const maxShownFaults = 20

func citedIn(places []core.Path) string {
	if len(places) == 0 {
		return "cited everywhere"
	}
	return "cited in " + txt.JoinFunc(places, ", ", core.Path.String)
}

func counted(n int, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return fmt.Sprint(n, " ", noun)
}

// pageButton returns a button that executes a command. args are pairs of names and values.
func pageButton(label, command string, args ...string) adminpage.Button {
	b := adminpage.Button{Label: label, Command: command}
	for i := 0; i < len(args); i += 2 {
		b.Args = append(b.Args, adminpage.Arg{Name: args[i], Value: args[i+1]})
	}
	return b
}

func switchButton(what, name, to string) adminpage.Button {
	return pageButton("Turn "+to, "switch", "what", what, "name", name, "to", to)
}

// requires reports whether a plugin must stay on, because the configuration's access rules need it.
func (c *Config) requires(plugin string) bool {
	return plugin == PairingName && c.Access.Private == PairingName
}

// doSwitch turns a plugin on or off everywhere, or an action in a place. The zero Path stands for all places.
func (s *pageServer) doSwitch(ctx context.Context, c command.Call) (string, error) {
	b, name, isPlugin, on := s.bot, c.Args["name"], c.Args["what"] == "plugin", c.Args["to"] == "on"
	if err := b.InForce().checkSwitch(name, isPlugin, on); err != nil {
		return "", err
	}
	done := name + " is " + c.Args["to"] + " from now on."
	if !isPlugin {
		err := b.changes.Change(ctx, c.Path, func(v *settings.Settings) { setSwitch(&v.ActionsDeny, name, on) })
		b.reloads.settingsChanged()
		return done, err
	}
	setPlugin := func(on bool) error {
		return b.changes.Change(ctx, core.Path{}, func(v *settings.Settings) { setSwitch(&v.PluginsOff, name, on) })
	}
	if err := setPlugin(on); err != nil {
		return "", err
	}
	if _, err := b.Reload(); err != nil { // undo the switch, because the next start might fail
		const text = "Nothing was changed, because the configuration cannot be read again: %s"
		return "", errors.Join(core.Errorf(core.Broken, text, txt.Line(err.Error())), setPlugin(!on))
	}
	return done, nil
}

// checkSwitch returns an error if a plugin or an action cannot be turned on or off.
func (p *parts) checkSwitch(name string, isPlugin, on bool) error {
	chosen := slices.Contains(p.Config.ChosenNames(), name)
	switches := func(d *action.Definition) bool { return d.Name == name && !d.IsMessage() }
	switch {
	case isPlugin && p.Config.requires(name) && !on:
		return core.Errorf(core.Invalid, "access.private is pairing, which needs it: set another access first.")
	case isPlugin && !chosen:
		return core.Errorf(core.Invalid, "The configuration does not have it: add [plugins.%s] there.", name)
	case !isPlugin && !on && !slices.ContainsFunc(p.Snapshot.All(), switches):
		return core.Errorf(core.Invalid, "There is no action of that name that can be turned off.")
	}
	return nil
}

// setSwitch removes a name from a list of what is turned off, or adds it if on is false.
func setSwitch(off *settings.Patterns, name string, on bool) {
	is := func(one settings.Pattern) bool { return string(one) == name }
	*off = slices.DeleteFunc(slices.Clone(*off), is)
	if !on {
		*off = append(*off, settings.Pattern(name))
	}
}

func (s *pageServer) pluginList() []adminpage.List {
	c, off := s.bot.InForce().Config, s.bot.changes.At(core.Path{}).PluginsOff
	list := adminpage.List{Title: "Plugins", Note: "What is turned off here stays off after a restart."}
	for _, a := range availablePlugins {
		_, named := c.Plugins[a.name]
		chosen := slices.Contains(c.ChosenNames(), a.name)
		mark, why, button := "on", "", switchButton("plugin", a.name, "off")
		switch {
		case chosen && off.Match(a.name) && !c.requires(a.name):
			mark, why = "off", "turned off on this page"
			button = switchButton("plugin", a.name, "on")
		case chosen && c.requires(a.name):
			why = "access.private needs it"
		case chosen && named:
			why = "[plugins." + a.name + "] in the configuration"
		case chosen:
			why = "the default"
		case named:
			mark, why = "off", "enabled = false in [plugins."+a.name+"]"
		default:
			mark, why = "off", "add [plugins."+a.name+"] to the configuration to turn it on"
		}
		row := adminpage.Row{Name: a.name, Mark: mark, Values: []string{a.doc, why}}
		if chosen && !c.requires(a.name) {
			row.Buttons = append(row.Buttons, button)
		}
		list.Rows = append(list.Rows, row)
	}
	return []adminpage.List{list}
}

// Offered returns a function that reports whether users without a rank are offered an action at its interface.
func Offered(s *action.Snapshot) func(name string) bool {
	open := make(map[string]bool)
	for _, d := range s.All() {
		place, err := core.MakePath(d.Owner, "place")
		if err != nil {
			continue
		}
		for _, o := range s.Offer(action.Requester{Path: place, Authors: []core.Author{{ID: "somebody"}}}) {
			open[o.Name] = true
		}
	}
	return func(name string) bool { return open[name] }
}

func (s *pageServer) Actions(place core.Path) []adminpage.Action {
	p := s.bot.InForce()
	open, own := Offered(p.Snapshot), s.bot.changes.At(place).ActionsDeny
	var list []adminpage.Action
	for _, d := range p.Snapshot.All() {
		a := adminpage.Action{
			Name: d.Name, Owner: d.Owner, Brief: d.Brief, Permission: string(d.Allows()), Offered: open(d.Name),
			Schema: d.Schema, Help: d.Examples.Description, Off: strings.Join(p.deniedBy(place, d), ", "),
		}
		switch {
		case slices.Contains(own, settings.Pattern(d.Name)):
			a.Buttons = []adminpage.Button{switchButton("action", d.Name, "on")}
		case a.Off == "" && !d.IsMessage():
			a.Buttons = []adminpage.Button{switchButton("action", d.Name, "off")}
		}
		list = append(list, a)
	}
	return list
}

func (p *parts) deniedBy(place core.Path, d *action.Definition) (list []string) {
	isHome := false
	for i := range p.Config.Enabled {
		e := &p.Config.Enabled[i]
		isHome = isHome || e.Name == d.Owner
		if e.withholds(d) {
			list = append(list, "interfaces."+e.Name+".offer")
		}
	}
	for _, l := range p.settings.Layers(place) {
		if l.Values.ActionsDeny.Match(d.Name) {
			list = append(list, l.From)
		}
	}
	allowed := p.settings.At(place).ActionsAllow
	if len(allowed) > 0 && !allowed.Match(d.Name) && !isHome {
		list = append(list, "actions_allow")
	}
	return list
}
