package daemon

import (
	"context"
	"fmt"
	"strings"
	"time"

	adminpage "synthbot/admin/page"
	"synthbot/core"
	"synthbot/core/command"
	"synthbot/plugins/knowledge"
	"synthbot/plugins/reminders"
)

// Lists implements adminpage.Bot.
func (s *pageServer) Lists(ctx context.Context, name string) ([]adminpage.List, error) {
	k, r := s.bot.Knowledge(), pluginOf[*reminders.Plugin](s.bot.InForce())
	switch {
	case name == "plugins":
		return s.pluginList(), nil
	case name == "knowledge" && k != nil:
		return s.knowledge(ctx, knowledge.Editor{Plugin: k})
	case name == "reminders" && r != nil:
		return s.reminders(ctx, r)
	}
	return nil, nil
}

// maxReminders is how many reminders are listed.
const maxReminders = 200

func (s *pageServer) reminders(ctx context.Context, plugin *reminders.Plugin) ([]adminpage.List, error) {
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
	return []adminpage.List{list}, nil
}

// commands returns the commands of the page's buttons. They are not available in chats.
func (s *pageServer) commands() []command.Command {
	return []command.Command{
		{Do: s.doKnowledge, Spec: command.Spec{
			Name: "knowledge", Brief: "Read the sources, answer or dismiss a question, or edit an entry",
			Args: []command.Arg{
				{
					Name: "what", Brief: "What to do", Required: true,
					Choices: []string{"sync", "answer", "dismiss", "edit"},
				},
				{Name: "id", Brief: "Of the question or the entry"},
				{Name: "text", Brief: "The answer, or what the entry says", Rest: true},
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
		at := state.Synced.In(s.bot.InForce().Config.Clock(s.bot.env.Clock)().Location())
		sources.Note = "Last read " + at.Format(time.DateTime) + "."
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
		answer.Prompt = "The answer. The person who asked gets it, and the bot uses it where they asked"
		gaps.Rows = append(gaps.Rows, adminpage.Row{
			Text: g.Question, Place: g.Place, Person: g.Asker, Time: g.Time,
			Values:  []string{"asked " + counted(g.Times, "time")},
			Buttons: []adminpage.Button{answer, pageButton("Dismiss", "knowledge", "what", "dismiss", "id", g.ID)},
		})
	}
	taught := adminpage.List{Title: "What users taught"}
	for _, e := range state.Entries {
		edit := pageButton("Edit", "knowledge", "what", "edit", "id", e.ID)
		edit.Text, edit.Prompt = &adminpage.Arg{Name: "text", Value: e.Text}, "What the bot knows"
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

// maxShownFaults is how many unreadable documents of a source are shown.
const maxShownFaults = 20

func citedIn(places []core.Path) string {
	if len(places) == 0 {
		return "cited everywhere"
	}
	names := make([]string, len(places))
	for i, p := range places {
		names[i] = p.String()
	}
	return "cited in " + strings.Join(names, ", ")
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
