package standard

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"time"

	"synthbot/core"
	"synthbot/core/action"
	"synthbot/plugins/standard/display"
)

type displayPayload struct {
	_ struct{} `title:"Show something"`

	Content json.RawMessage `json:"content,omitempty" title:"content" doc:"The data: any JSON. Left out: the last output of an action in this turn."`
	Format  string          `json:"format,omitempty" title:"format" max:"64" doc:"table, list, card, metric, chart (or line, bar) or markdown; left out: what fits best."`
	Fields  []string        `json:"fields,omitempty" title:"fields" max:"32" doc:"The properties that come first, in this order: columns, lines."`
	Title   string          `json:"title,omitempty" title:"title" max:"200" doc:"The heading."`
}

func (p *Plugin) display() core.Action {
	return action.Typed(core.Action{
		Name: "display", Similes: []string{"show_data", "render"},
		Brief: "Show data as a table, list, card, metric or chart",
		Examples: action.Guide(
			"Shows data to the people in this place, in a form that fits it: rows as a table, a number"+
				" on one line, series of numbers as a picture of a chart with its words.",
			"When numbers or records are easier to read in form than in a sentence.",
			[]string{
				"Do not say the same once more in the response.",
				"content is the data itself, not a text that describes it.",
				"Without content, the last output of this turn is shown: put the display after the action that" +
					" gives it.",
			},
			core.NewExample("A balance as a card",
				`{"content":{"accountType":"checking","balance":2450.32,"currency":"USD"},"format":"card"}`),
			core.NewExample("Records as a table",
				`{"title":"Invoices","content":[{"id":"inv-1","amount":150},{"id":"inv-2","amount":80.5}],`+
					`"fields":["id","amount"],"format":"table"}`),
			core.NewExample("A chart of two series",
				`{"format":"chart","content":{"title":"Sales","labels":["Mon","Tue"],"series":[{"name":"North"`+
					`,"data":[3,4]},{"name":"South","data":[1,2]}]}}`),
			core.NewExample("What the last action gave", `{"format":"table"}`),
		).Note("A table is an array of objects, or {columns, rows}. A chart is {labels, series: [{name, data}]}.",
			"A format that is not known is shown as a card."),
		Effects: core.EffectWrites, Permission: core.PermissionEveryone,
		Idempotent: true, // a picture is guarded by its part, words are a step of their own
	}, p.show)
}

func (p *Plugin) show(ctx context.Context, c core.Call, q displayPayload) (_ core.Result, err error) {
	if q.Content == nil {
		q.Content, err = p.latest(ctx, c.Key)
		if err != nil {
			return core.Result{}, err
		}
		if q.Content == nil {
			return core.Result{}, core.Errorf(core.Invalid,
				"There is nothing to display: give it content, or put it after an action that has an output.")
		}
	}
	s := display.Show(q.Content, display.Options{Format: q.Format, Title: q.Title, Fields: q.Fields})
	if s.Picture != nil {
		err = p.h.Messenger.SendFile(ctx, c.Deliveries, 1, core.Sent{Path: c.Path, Text: s.Text}, *s.Picture)
		e, ok := errors.AsType[*core.Error](err)
		if !ok || e.Kind != core.Broken {
			return core.Result{}, err
		}
		p.h.Log.Info("picture not sent, its words are", "err", err) // the interface sends none
	}
	return core.Result{Next: []core.Step{c.Say(s.Text)}}, nil
}

// latest is the last output of the turn that the step belongs to, nil where there
// is none. What was done before a step is on disk when it begins.
func (p *Plugin) latest(ctx context.Context, step core.Key) (json.RawMessage, error) {
	records, err := core.Read(ctx, p.h.Reader, func(v core.View) ([]core.Record, error) { return v.Journal(step.Turn) })
	if err != nil {
		return nil, err
	}
	var found core.Record
	var output json.RawMessage
	for _, r := range records {
		var o core.Outcome
		other := r.Key.Step != 0 && r.Key.Part == 0 && r.Key != step
		if !other || r.Progress != core.ProgressDone || r.Time.Before(found.Time) {
			continue
		}
		if json.Unmarshal(r.Data, &o) == nil && len(o.Result.Output) > 0 {
			found, output = r, o.Result.Output
		}
	}
	return output, nil
}

type notice struct {
	_ struct{} `title:"Send a notice"`

	Message string `json:"message" title:"message" min:"1" max:"2000" doc:"What to tell, as Markdown."`
	Type    string `json:"type" title:"kind" oneof:"info|success|warning|error" default:"info"`
	To      string `json:"to" title:"to" oneof:"person|here|admins" default:"person" doc:"person: who is spoken with, in private; here: everyone in this place; admins: those who run the bot."`
}

func (p *Plugin) notify() core.Action {
	return action.Typed(core.Action{
		Name: "notify", Similes: []string{"send_notification", "alert"},
		Brief: "Tell the person in private, or the admins, something short",
		Examples: action.Guide(
			"Sends a short notice: to the person who is spoken with in private, to everyone in this"+
				" place, or to the admins of the bot.",
			"For what is not part of the talk: a result, a warning, a failure; for the admins"+
				" only what they must act on.",
			[]string{"It is not an answer: answers are messages.",
				"Nobody else than the three can be notified."},
			core.NewExample("What else is to be done when a payment is not possible",
				`{"message":"Insufficient funds for this payment","type":"error"}`),
			core.NewExample("Calling for help",
				`{"message":"Ann reports that somebody posts spam.","type":"warning","to":"admins"}`),
		).Note("Notices are counted for each person.",
			"Who is not allowed to may not notify the admins."),
		Effects: core.EffectWrites, Permission: core.PermissionEveryone,
		RateLimit: core.RateLimit{Count: p.c.Notices, Per: time.Hour},
		Check: func(_ context.Context, c core.Call) error {
			n, err := action.Payload[notice](c)
			return cmp.Or(err, p.refuse(c, n))
		},
	}, p.tell)
}

// refuse returns why a notice may not be sent.
func (p *Plugin) refuse(c core.Call, n notice) error {
	switch {
	case n.To == "admins" && !permits(p.c.Admins, c.Author.Rank):
		return core.Errorf(core.Forbidden, "Whoever asked may not notify the admins.")
	case n.To == "person" && c.Author.ID == "":
		return core.Errorf(core.Invalid, "There is no one person who could be told.")
	}
	return nil
}

// permits reports whether a rank is enough for a permission as it is configured.
func permits(permission string, rank core.Rank) bool {
	least, ok := map[core.Permission]core.Rank{
		core.PermissionEveryone: core.RankMember, core.PermissionModerators: core.RankModerator,
		core.PermissionAdmins: core.RankAdmin,
	}[core.Permission(permission)]
	return ok && rank >= least
}

func (p *Plugin) tell(ctx context.Context, c core.Call, n notice) (core.Result, error) {
	if err := p.refuse(c, n); err != nil {
		return core.Result{}, err
	}
	signs := map[string]string{"success": "✅", "warning": "⚠️", "error": "❌"}
	text := cmp.Or(signs[n.Type], "ℹ️") + " " + n.Message
	person, err := c.Path.Person(c.Author.ID)
	switch {
	case n.To == "admins":
		who := c.Path.String()
		if c.Author.ID == "" {
			who = "nobody in particular, in " + who
		} else if err == nil {
			who = c.Author.Name + " (" + person.String() + ") in " + who
		}
		p.h.Messenger.NotifyAdmins(text + "\n(for " + who + ")")
		return core.Result{}, nil
	case n.To == "here" || c.Private:
		return core.Result{Next: []core.Step{c.Say(text)}}, nil
	case err != nil:
		return core.Result{}, &core.Error{Kind: core.Broken, Text: "The person cannot be found.", Err: err}
	}
	return core.Result{Shown: true}, p.h.Messenger.Tell(ctx, person, text)
}

func (p *Plugin) wait() core.Action {
	seconds := func(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) }
	most := seconds(p.c.Wait.Seconds())
	return core.Action{
		Name: "wait", Similes: []string{"pause", "sleep"},
		Brief: "Pause a few seconds before the next action",
		Schema: json.RawMessage(`{"type":"object","title":"Wait","properties":{"duration":{"type":"number"` +
			`,"exclusiveMinimum":0,"maximum":` + most +
			`,"title":"seconds","description":"How long, in seconds."}},"required":["duration"],` +
			`"additionalProperties":false}`),
		Examples: action.Guide("Lets a few seconds pass between two actions of a plan.",
			"Between two actions of which the second needs a moment, or for effect: before the end of a joke.",
			[]string{"The duration is in seconds, and " + most + " at most.",
				"For anything later than that set a reminder."},
			core.NewExample("A moment of suspense", `{"duration":`+seconds(min(3, p.c.Wait.Seconds()))+`}`),
		).Note("Nothing else is answered in this place meanwhile."),
		Effects: core.EffectNone, Permission: core.PermissionEveryone, Idempotent: true,
		Timeout:   p.c.Wait + 5*time.Second,
		RateLimit: core.RateLimit{Count: 20, Per: time.Hour},
		Do:        pause,
	}
}

func pause(ctx context.Context, c core.Call) (core.Result, error) {
	q, err := action.Payload[struct{ Duration float64 }](c)
	if err != nil {
		return core.Result{}, err
	}
	timer := time.NewTimer(time.Duration(q.Duration * float64(time.Second)))
	defer timer.Stop()
	select {
	case <-timer.C:
		return core.Result{}, nil
	case <-ctx.Done():
		return core.Result{}, ctx.Err()
	}
}

const confirmSchema = `{
	"type": "object",
	"title": "Please confirm",
	"properties": {
		"message": {"type": "string", "minLength": 1, "maxLength": 300, "title": "Question",
			"description": "What the person is asked: a question that yes or no answers."},
		"then": {
			"type": "array", "maxItems": 10, "title": "Then", "description": "The actions that follow a yes, in order.",
			"items": {
				"type": "object",
				"properties": {
					"type": {"type": "string", "description": "The action's name."},
					"payload": {"type": "object"}, "params": {"type": "object", "description": "The same as payload."},
					"target": {"type": "string"}
				},
				"required": ["type"], "additionalProperties": false
			}
		}
	},
	"required": ["message"],
	"additionalProperties": false
}`

func (p *Plugin) confirm() core.Action {
	return core.Action{
		Name: "confirm", Similes: []string{"ask_confirmation"},
		Brief:  "Ask the person yes or no, and act on a yes",
		Schema: json.RawMessage(confirmSchema),
		Examples: action.Guide(
			"Puts a question with two buttons to the person who is spoken with. What is in then is"+
				" done on a yes, and on a no nothing is.",
			"Before something that the person might not have meant.",
			[]string{
				"Actions beside it do not wait for the answer: what shall wait belongs into then.",
				"One action alone is asked about by its own requiresConfirmation.",
			},
			core.NewExample("Asking before telling everyone",
				`{"message":"Shall I tell the whole group?","then":[{"type":"notify"`+
					`,"payload":{"message":"Dinner is at eight.","to":"here"}}]}`),
			core.NewExample("Only asking", `{"message":"Are you sure?"}`),
		).Note("Actions that must be confirmed by themselves ask once more.",
			"A question that nobody answers expires."),
		Effects: core.EffectNone, Permission: core.PermissionEveryone, Confirm: true, Idempotent: true,
		Then: thenSteps, Do: confirmed,
	}
}

func thenSteps(payload json.RawMessage) (steps []core.Step) {
	var q struct {
		Then []struct {
			Type, Target    string
			Payload, Params json.RawMessage
		}
	}
	_ = json.Unmarshal(payload, &q) // the schema was checked
	for _, s := range q.Then {
		if len(s.Payload) == 0 {
			s.Payload = s.Params
		}
		steps = append(steps,
			core.Step{Type: s.Type, Payload: s.Payload, Target: s.Target, Priority: core.DefaultPriority})
	}
	return steps
}

// confirmed runs when the person said yes. What follows has its own words.
func confirmed(_ context.Context, c core.Call) (core.Result, error) {
	if _, err := action.Payload[struct{}](c); err != nil {
		return core.Result{}, err
	}
	steps := thenSteps(c.Payload)
	if len(steps) == 0 {
		return core.Result{Output: json.RawMessage(`{"confirmed":true}`)}, nil
	}
	return core.Result{Next: steps}, nil
}

// speakTime is longer than [speech.out] lets the synthesis of a text take.
const speakTime = 10*time.Minute + 30*time.Second

type speakPayload struct {
	_ struct{} `title:"Speak"`

	Text string `json:"text" title:"text" min:"1" max:"10000" doc:"What to say, as it is spoken: no markup, no emoji."`
}

func (p *Plugin) speak() core.Action {
	return action.Typed(core.Action{
		Name: "speak", Similes: []string{"say_aloud", "voice_message"},
		Brief: "Say something aloud, as a voice message",
		Examples: action.Guide("Speaks a text and sends it into this place as a voice message.",
			"When somebody asks to hear something, or spoke themselves and would rather listen than read.",
			[]string{"Write words as they are spoken: no Markdown, links or emoji.",
				"Do not send the same as a message, too."},
			core.NewExample("Wishing a good night", `{"text":"Good night, and sleep well."}`),
		).Note("It takes a few seconds.", "People see no text with it."),
		Effects: core.EffectWrites, Permission: core.PermissionEveryone, Timeout: speakTime,
		Busy:      core.BusyQueue,
		RateLimit: core.RateLimit{Count: 30, Per: time.Hour},
	}, p.spoken)
}

func (p *Plugin) spoken(ctx context.Context, c core.Call, q speakPayload) (core.Result, error) {
	var people []core.Path
	for _, a := range c.Authors {
		if person, err := c.Path.Person(a.ID); err == nil {
			people = append(people, person)
		}
	}
	file, err := p.h.Speak(ctx, c.Path, people, q.Text)
	refused, ok := errors.AsType[*core.Error](err)
	switch {
	case ok && refused.Kind == core.Invalid:
		return core.Result{}, err
	case err != nil:
		const away = "The voice is not available at the moment."
		return core.Result{}, &core.Error{Kind: core.Temporary, Text: away, Err: err}
	}
	file.Alt = q.Text
	return core.Result{}, p.h.Messenger.SendFile(ctx, c.Deliveries, 1, core.Sent{Path: c.Path}, file)
}
