package reminders

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"synthbot/core"
	"synthbot/core/action"
	"synthbot/core/values"
	"synthbot/plugins/reminders/calendar"
)

// Names of the actions that commands also carry out.
const setName, cancelName = "reminder_set", "reminder_cancel"

type setPayload struct {
	_ struct{} `title:"Set a reminder"`

	Text   string `json:"text" title:"text" min:"1" max:"4000" doc:"The text of the reminder."`
	When   string `json:"when" title:"time" min:"1" max:"200" doc:"In words (in 10 minutes, domani alle 9), or as local time: 2027-01-31T09:00."`
	Repeat string `json:"repeat,omitempty" title:"repeat" max:"200" doc:"FREQ=WEEKLY;BYDAY=MO, or: every monday."`
	Zone   string `json:"zone,omitempty" title:"time zone" max:"64" doc:"Only if it is not the person's: Asia/Tokyo."`
}

type listPayload struct {
	_ struct{} `title:"List reminders"`

	All bool `json:"all,omitempty" title:"all" doc:"Everybody's; moderators only."`
}

type cancelPayload struct {
	_ struct{} `title:"Cancel a reminder"`

	ID string `json:"id" title:"reminder" min:"1" max:"200" doc:"Its id, or words of its text."`
}

func (p *Plugin) Actions() []core.Action {
	return []core.Action{p.setAction(), p.listAction(), p.cancelAction()}
}

func (p *Plugin) setAction() core.Action {
	return action.Typed(core.Action{
		Name: setName, Similes: []string{"remind_me", "set_reminder", "create_reminder"},
		Brief: "Remind the person here at a time, once or repeatedly",
		Examples: action.Guide(
			"Sends a text to this place at a time. The output contains the time that was understood: tell the person.",
			"When somebody asks to be reminded of something, or agrees that you remind them.",
			[]string{
				"Write the time as the person said it; if you compute it yourself, write their local time" +
					" without an offset.",
				"The text is sent as it is: “call mum”, not “remind me to call mum”.",
				"A reminder can come at most once an hour.",
			},
			core.NewExample("“Remind me in ten minutes to take the pizza out”",
				`{"text":"take the pizza out","when":"in 10 minutes"}`),
			core.NewExample("“Ricordami domani alle 9 di chiamare la mamma”",
				`{"text":"chiamare la mamma","when":"domani alle 9"}`),
			core.NewExample("Every Monday, a time you computed",
				`{"text":"put the bins out","when":"2027-02-01T19:00","repeat":"FREQ=WEEKLY;BYDAY=MO"}`),
			core.NewExample("A call at nine in Tokyo",
				`{"text":"call Kenji","when":"tomorrow at 9","zone":"Asia/Tokyo"}`),
		).Note("A day without an hour means 9 in the morning.",
			"With a repeat, when is the first time."),
		Effects: core.EffectWrites, Permission: core.PermissionEveryone, Idempotent: true, Busy: core.BusyQueue,
		RateLimit: core.RateLimit{Count: 30, Per: time.Hour}, Undo: action.Undo(p.undoSet),
	}, p.doSet)
}

func (p *Plugin) doSet(ctx context.Context, c core.Call, in setPayload) (core.Result, error) {
	a, err := asked(c)
	if err != nil {
		return core.Result{}, err
	}
	z, err := p.zoneFor(ctx, a, in.Zone)
	if err != nil {
		return core.Result{}, err
	}
	from := c.Planned
	if from.IsZero() {
		from = p.host.Clock()
	}
	w, err := p.wishFor(in, from.In(z.Location))
	if err != nil {
		return core.Result{}, err
	}
	w.veiled, w.asked = z.veiled, from
	w.seed = fmt.Sprintf("%s/%d/%d", c.Key.Turn, c.Key.Round, c.Key.Step)
	r, err := p.set(ctx, a, w)
	result := core.Output(newLine(&r))
	result.Undo = core.JSON(r.ID)
	in.Repeat = r.repeats(p.config.MaxAhead)
	result.Named = core.JSON(in)
	return result, err
}

// undoSet cancels the reminder that was set, if it is still pending.
func (p *Plugin) undoSet(ctx context.Context, c core.Call, id string) error {
	a, err := asked(c)
	if err != nil {
		return err
	}
	own, err := p.here(ctx, a, false)
	if err != nil || !slices.ContainsFunc(own, func(r reminder) bool { return r.ID == id }) {
		return err
	}
	_, err = p.cancel(ctx, a, id)
	return err
}

func (p *Plugin) wishFor(in setPayload, now time.Time) (wish, error) {
	w := wish{text: in.Text}
	when, err := p.reader.Read(in.When, now)
	if err != nil {
		return w, unreadable(err)
	}
	w.when = when
	repeat := cmp.Or(in.Repeat, when.Repeat)
	if repeat == "" {
		return w, nil
	}
	w.rule, err = calendar.ParseRule(repeat)
	words, wrong := p.reader.Read(repeat, now)
	if err != nil && wrong == nil && words.Repeat != "" {
		w.rule, err = calendar.ParseRule(words.Repeat)
	}
	if err != nil {
		return w, core.Errorf(core.Invalid,
			"That rule is not supported: write an RRULE like FREQ=WEEKLY;BYDAY=MO, at most once an hour.")
	}
	return w, nil
}

// line is a reminder as the model sees it.
type line struct {
	ID     string `json:"id"`
	Text   string `json:"text"`
	Due    string `json:"due"`
	Day    string `json:"day"` // models are bad at calendars
	Zone   string `json:"zone,omitempty"`
	Repeat string `json:"repeat,omitempty"`
	By     string `json:"by,omitempty"`
}

func newLine(r *reminder) line {
	due := r.Due
	if r.Rule != "" { // it follows the clock of that zone
		due = due.In(r.Start.Location())
	}
	l := line{ID: r.ID, Text: r.shown(), Due: stamp(due, r.Veiled), Day: due.Weekday().String(), Repeat: r.Rule}
	if !r.Veiled {
		l.Zone = due.Location().String()
	}
	return l
}

func (p *Plugin) listAction() core.Action {
	return action.Typed(core.Action{
		Name: "reminder_list", Similes: []string{"list_reminders", "show_reminders"},
		Brief: "List the reminders that the person set here",
		Examples: action.Guide(
			"Lists this person's reminders in this place, the next one first, with ids.",
			"When somebody asks for their reminders, or to find the id of one.",
			[]string{"Reminders from other places are not shown here; those from its topics or threads have no text.",
				"Do not show people the ids unless they want to cancel one with a command."},
			core.NewExample("“What do I have coming up?”", `{}`),
			core.NewExample("A moderator asks what is set in this group", `{"all":true}`)),
		Effects: core.EffectReadsChat, Permission: core.PermissionEveryone, Idempotent: true,
	}, p.doList)
}

const listMax = 50 // how many reminders the action lists at once

func (p *Plugin) doList(ctx context.Context, c core.Call, in listPayload) (core.Result, error) {
	a, err := asked(c)
	if err != nil {
		return core.Result{}, err
	}
	if in.All && c.Author.Rank < core.RankModerator {
		return core.Result{}, core.Errorf(core.Forbidden, "Only moderators can list everybody's reminders.")
	}
	list, err := p.here(ctx, a, in.All)
	if err != nil {
		return core.Result{}, err
	}
	var out struct {
		Reminders []line `json:"reminders"`
		More      int    `json:"more,omitempty"`
	}
	out.Reminders = []line{}
	for i := range list[:min(len(list), listMax)] {
		l := newLine(&list[i])
		if in.All {
			l.By = list[i].Author.Name
		}
		out.Reminders = append(out.Reminders, l)
	}
	out.More = len(list) - len(out.Reminders)
	return core.Output(out), nil
}

func (p *Plugin) cancelAction() core.Action {
	return action.Typed(core.Action{
		Name: cancelName, Similes: []string{"cancel_reminder", "delete_reminder"},
		Brief: "Cancel one of the reminders that were set here",
		Examples: action.Guide("Cancels a reminder, with all its repetitions.",
			"When somebody no longer wants to be reminded. Moderators may cancel everybody's.",
			[]string{"The words must match only one reminder; else use its id.",
				"To change a reminder, set the new one first, and then cancel the old one by its id."},
			core.NewExample("“Forget about the dentist”", `{"id":"dentist"}`),
			core.NewExample("By the id that reminder_list showed", `{"id":"mzxw6ytb"}`)),
		Effects: core.EffectRanked | core.EffectWrites, Permission: core.PermissionEveryone,
		Undo: action.Undo(p.undoCancel),
	}, p.doCancel)
}

func (p *Plugin) doCancel(ctx context.Context, c core.Call, in cancelPayload) (core.Result, error) {
	a, err := asked(c)
	if err != nil {
		return core.Result{}, err
	}
	r, err := p.cancel(ctx, a, in.ID)
	result := core.Output(map[string]any{"cancelled": newLine(&r)})
	result.Undo = core.JSON(values.New(r.person, keyReminder+r.ID, r))
	result.Named = core.JSON(cancelPayload{ID: r.shown()})
	return result, err
}

// undoCancel stores the reminder that was cancelled again, if its time is not past.
func (p *Plugin) undoCancel(ctx context.Context, _ core.Call, item core.Item) error {
	r, err := p.read(item)
	if err == nil && !r.Due.After(p.host.Clock()) {
		err = core.Errorf(core.Invalid, "its time is past")
	}
	if err != nil {
		return err
	}
	return p.keep(ctx, r)
}
