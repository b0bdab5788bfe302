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
	"synthbot/core/loop"
	"synthbot/plugins/standard/display"
)

type displayPayload struct {
	_ struct{} `title:"Show something"`

	Content json.RawMessage `json:"content,omitempty" title:"content" doc:"The data: any JSON. Left out: the last output of an action in this turn."`
	Format  string          `json:"format,omitempty" title:"format" max:"64" doc:"table, list, card, metric, chart (or line, bar) or markdown; left out: the one that fits best."`
	Fields  []string        `json:"fields,omitempty" title:"fields" max:"32" doc:"The properties that come first, in this order: columns, lines."`
	Title   string          `json:"title,omitempty" title:"title" max:"200" doc:"The heading."`
}

func (p *Plugin) display() core.Action {
	return action.Typed(core.Action{
		Name: "display", Similes: []string{"show_data", "render"},
		Brief: "Show data as a table, list, card, metric or chart",
		Examples: action.Guide(
			"Shows data to the people in this place: rows as a table, a number on one line, series of"+
				" numbers as a picture of a chart.",
			"When numbers or records are easier to read in that form than in a sentence.",
			[]string{
				"Do not repeat the data in the response.",
				"content is the data itself, not a text that describes it.",
				"Without content, the last output of this turn is shown: put display after the action that returns it.",
			},
			core.NewExample("A balance as a card",
				`{"content":{"accountType":"checking","balance":2450.32,"currency":"USD"},"format":"card"}`),
			core.NewExample("Records as a table",
				`{"title":"Invoices","content":[{"id":"inv-1","amount":150},{"id":"inv-2","amount":80.5}],`+
					`"fields":["id","amount"],"format":"table"}`),
			core.NewExample("A chart of two series",
				`{"format":"chart","content":{"title":"Sales","labels":["Mon","Tue"],"series":[{"name":"North"`+
					`,"data":[3,4]},{"name":"South","data":[1,2]}]}}`),
			core.NewExample("The output of the last action", `{"format":"table"}`),
		).Note("A table is an array of objects, or {columns, rows}. A chart is {labels, series: [{name, data}]}.",
			"An unknown format is shown as a card."),
		Effects: core.EffectWrites, Permission: core.PermissionEveryone,
		Idempotent: true, // a picture has an idempotency key, a text is a step of its own
	}, p.show)
}

func (p *Plugin) show(ctx context.Context, c core.Call, q displayPayload) (_ core.Result, err error) {
	if q.Content == nil {
		q.Content, err = p.lastOutput(ctx, c.Key)
		if err != nil {
			return core.Result{}, err
		}
		if q.Content == nil {
			return core.Result{}, core.Errorf(core.Invalid,
				"There is nothing to display: set content, or put display after an action that has an output.")
		}
	}
	s := display.Show(q.Content, display.Options{Format: q.Format, Title: q.Title, Fields: q.Fields})
	if s.Picture != nil {
		err = p.h.Messenger.SendFile(ctx, c.Deliveries, 1, core.Sent{Path: c.Path, Text: s.Text}, *s.Picture)
		e, ok := errors.AsType[*core.Error](err)
		if !ok || e.Kind != core.Broken {
			return core.Result{}, err
		}
		p.h.Log.Info("picture not sent; its description is sent instead", "err", err)
	}
	return core.Result{Next: []core.Step{c.Say(s.Text)}}, nil
}

// lastOutput returns the last output of an action before step in its turn, nil if there is none.
// The journal contains all earlier steps when a step begins.
func (p *Plugin) lastOutput(ctx context.Context, step core.Key) (json.RawMessage, error) {
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
	To      string `json:"to" title:"to" oneof:"person|here|admins" default:"person" doc:"person: the user you talk to, in private; here: everyone in this place; admins: those who run the bot."`
}

func (p *Plugin) notify() core.Action {
	return action.Typed(core.Action{
		Name: "notify", Similes: []string{"send_notification", "alert"},
		Brief: "Tell the person in private, or the admins, something short",
		Examples: action.Guide(
			"Sends a short notice: to the user you talk to in private, to everyone in this place, or"+
				" to the admins of the bot.",
			"For what is not part of the conversation: a result, a warning, a failure; to the admins"+
				" only if they must act.",
			[]string{"It is not an answer: answers are messages.",
				"Nobody else can be notified."},
			core.NewExample("A payment is not possible",
				`{"message":"Insufficient funds for this payment","type":"error"}`),
			core.NewExample("Calling for help",
				`{"message":"Ann reports that somebody posts spam.","type":"warning","to":"admins"}`),
		).Note("The number of notices per person and hour is limited.",
			"Not everybody may notify the admins."),
		Effects: core.EffectWrites, Permission: core.PermissionEveryone,
		RateLimit: core.RateLimit{Count: p.c.Notices, Per: time.Hour},
		Check: func(_ context.Context, c core.Call) error {
			n, err := action.Payload[notice](c)
			return cmp.Or(err, p.checkNotice(c, n))
		},
	}, p.sendNotice)
}

func (p *Plugin) checkNotice(c core.Call, n notice) error {
	switch {
	case n.To == "admins" && !permits(p.c.Admins, c.Author.Rank):
		return core.Errorf(core.Forbidden, "The person may not notify the admins.")
	case n.To == "person" && c.Author.ID == "":
		return core.Errorf(core.Invalid, "There is no single person to notify.")
	}
	return nil
}

func permits(permission string, rank core.Rank) bool {
	least, ok := core.Permission(permission).Rank()
	return ok && rank >= least
}

func (p *Plugin) sendNotice(ctx context.Context, c core.Call, n notice) (core.Result, error) {
	if err := p.checkNotice(c, n); err != nil {
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
		Examples: action.Guide("Waits a few seconds between two actions of a plan.",
			"If the second of two actions must wait a moment, or for effect: before the end of a joke.",
			[]string{"The duration is in seconds, at most " + most + ".",
				"For anything later, set a reminder."},
			core.NewExample("A moment of suspense", `{"duration":`+seconds(min(3, p.c.Wait.Seconds()))+`}`),
		).Note("Meanwhile, no other message in this place is answered."),
		Effects: core.EffectNone, Permission: core.PermissionEveryone, Idempotent: true,
		Timeout: p.c.Wait + 5*time.Second, RateLimit: core.RateLimit{Count: 20, Per: time.Hour}, Do: pause,
	}
}

func pause(ctx context.Context, c core.Call) (core.Result, error) {
	q, err := action.Payload[struct{ Duration float64 }](c)
	if err != nil {
		return core.Result{}, err
	}
	if !loop.Sleep(ctx, time.Duration(q.Duration*float64(time.Second))) {
		return core.Result{}, ctx.Err()
	}
	return core.Result{}, nil
}

const confirmSchema = `{
	"type": "object",
	"title": "Please confirm",
	"properties": {
		"message": {"type": "string", "minLength": 1, "maxLength": 300, "title": "Question",
			"description": "The question, which can be answered with yes or no."},
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
			"Asks the user you talk to a question with two buttons. The actions in then are done after"+
				" a yes, and not after a no.",
			"Before something that the person might not have meant.",
			[]string{
				"Actions beside it do not wait for the answer: put those that must wait into then.",
				"To confirm a single action, use its own requiresConfirmation.",
			},
			core.NewExample("Asking before telling everyone",
				`{"message":"Shall I tell the whole group?","then":[{"type":"notify"`+
					`,"payload":{"message":"Dinner is at eight.","to":"here"}}]}`),
			core.NewExample("Only asking", `{"message":"Are you sure?"}`),
		).Note("Actions that always need a confirmation ask again.",
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

// confirmed runs when the person said yes.
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

const speakTime = 10*time.Minute + 30*time.Second // longer than the maximum of speech.out.timeout

type speakPayload struct {
	_ struct{} `title:"Speak"`

	Text string `json:"text" title:"text" min:"1" max:"10000" doc:"What to say, as it is spoken: no markup, no emoji."`
}

func (p *Plugin) speak() core.Action {
	return action.Typed(core.Action{
		Name: "speak", Similes: []string{"say_aloud", "voice_message"},
		Brief: "Say something aloud, as a voice message",
		Examples: action.Guide("Speaks a text and sends it into this place as a voice message.",
			"When somebody asks to hear something, or sent a voice message and would rather listen than read.",
			[]string{"Write words as they are spoken: no Markdown, links or emoji.",
				"Do not send the same text as a message, too."},
			core.NewExample("Wishing a good night", `{"text":"Good night, and sleep well."}`),
		).Note("It takes a few seconds.", "The voice message has no text."),
		Effects: core.EffectWrites, Permission: core.PermissionEveryone, Timeout: speakTime, Busy: core.BusyQueue,
		RateLimit: core.RateLimit{Count: 30, Per: time.Hour},
	}, p.sendVoice)
}

func (p *Plugin) sendVoice(ctx context.Context, c core.Call, q speakPayload) (core.Result, error) {
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
		const text = "The voice is not available at the moment."
		return core.Result{}, &core.Error{Kind: core.Temporary, Text: text, Err: err}
	}
	file.Alt = q.Text
	return core.Result{}, p.h.Messenger.SendFile(ctx, c.Deliveries, 1, core.Sent{Path: c.Path}, file)
}
