package standard

import (
	"context"
	"encoding/json"
	"errors"

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

// display is the action that shows data.
func (p *Plugin) display() core.Action {
	return action.Typed(core.Action{
		Name: "display", Similes: []string{"show_data", "render"},
		Brief: "Show data as a table, list, card, metric or chart",
		Examples: core.Examples{
			Description: "Shows data to the people in this place, in a form that fits it: rows as a table, a number" +
				" on one line, series of numbers as a picture of a chart with its words.",
			Instructions: core.Instructions{
				WhenToUse: "When numbers or records are easier to read in form than in a sentence.",
				CommonPitfalls: []string{
					"Do not say the same once more in the response.",
					"content is the data itself, not a text that describes it.",
					"Without content, the last output of this turn is shown: put the display after the action that" +
						" gives it.",
				},
				Notes: []string{
					"A table is an array of objects, or {columns, rows}. A chart is {labels, series: [{name, data}]}.",
					"A format that is not known is shown as a card.",
				},
			},
			Examples: []core.Example{
				core.NewExample("A balance as a card",
					`{"content":{"accountType":"checking","balance":2450.32,"currency":"USD"},"format":"card"}`),
				core.NewExample("Records as a table",
					`{"title":"Invoices","content":[{"id":"inv-1","amount":150},{"id":"inv-2","amount":80.5}],`+
						`"fields":["id","amount"],"format":"table"}`),
				core.NewExample("A chart of two series",
					`{"format":"chart","content":{"title":"Sales","labels":["Mon","Tue"],"series":[{"name":"North"`+
						`,"data":[3,4]},{"name":"South","data":[1,2]}]}}`),
				core.NewExample("What the last action gave", `{"format":"table"}`),
			},
		},
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
		var e *core.Error
		if !errors.As(err, &e) || e.Kind != core.Broken {
			return core.Result{}, err
		}
		p.h.Log.Info("picture not sent, its words are", "err", err) // the interface sends none
	}
	return core.Result{Next: []core.Step{c.Say(s.Text)}}, nil
}

// latest is the last output of the turn that the step belongs to, nil where there
// is none. What was done before a step is on disk when it begins.
func (p *Plugin) latest(ctx context.Context, step core.Key) (json.RawMessage, error) {
	var records []core.Record
	err := p.h.Reader.View(ctx, func(v core.View) (err error) {
		records, err = v.Journal(step.Turn)
		return err
	})
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
