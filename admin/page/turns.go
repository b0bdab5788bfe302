package page

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"synthbot/core"
	"synthbot/core/llm"
	"synthbot/core/watch"
)

const maxTurns = 50 // on the first page

// row is a turn in the list, which shows no messages. The intent of a private turn is left out, because the model
// wrote it.
type row struct {
	watch.TurnEnd
	Outcome, Intent string
	Mark            string    // of the outcome: good, bad or none
	Last            watch.Ask // the last call of a model
	Faults          int
}

func outcome(e *watch.TurnEnd) string {
	switch {
	case e.Aside:
		return "set aside"
	case e.Answered:
		return "answered"
	}
	return "silent"
}

func rowOf(e watch.TurnEnd) row {
	r := row{TurnEnd: e, Outcome: outcome(&e), Faults: corrections(e.Trace)}
	r.Mark = map[string]string{"answered": "good", "set aside": "bad"}[r.Outcome]
	if !e.Private {
		r.Intent = hideThought(e.Intent)
	}
	for _, a := range e.Trace.Asks {
		r.Last = a
	}
	return r
}

const maxRunning = 20

type run struct {
	Turns []watch.TurnStage
	More  int
}

func (p *Page) running() run {
	all := p.Running.Now()
	n := min(len(all), maxRunning)
	return run{all[:n], len(all) - n}
}

// formatHour returns the time of day in the bot's time zone.
func (p *Page) formatHour(t time.Time) string {
	return t.In(p.Clock().Location()).Format(time.TimeOnly)
}

func corrections(t *watch.Trace) (n int) {
	for i := range t.Asks {
		if len(t.Asks[i].Faults) > 0 {
			n++
		}
	}
	return n
}

func formatDuration(d time.Duration) string {
	switch {
	case d == 0:
		return "0"
	case d < 10*time.Millisecond:
		return fmt.Sprintf("%.2g ms", d.Seconds()*1000)
	case d < time.Second:
		return fmt.Sprintf("%.0f ms", d.Seconds()*1000)
	}
	return fmt.Sprintf("%.1f s", d.Seconds())
}

// latest returns the latest turns, the newest first, and the number of the newest.
func (p *Page) latest() (rows []row, last uint64) {
	ends, last := p.Turns.After(0, maxTurns)
	for _, e := range slices.Backward(ends) {
		rows = append(rows, rowOf(e))
	}
	return rows, last
}

func (p *Page) status(ctx context.Context) (State, error) {
	s, err := p.Bot.State(ctx)
	used := &s.Spent
	used.Over = used.TokensLimit > 0 && used.Tokens >= used.TokensLimit ||
		used.CostLimit > 0 && used.Cost >= used.CostLimit
	return s, err
}

func (p *Page) now(v *visit) error {
	waiting, err := p.waiting(v.Context())
	if err != nil {
		return err
	}
	state, err := p.status(v.Context())
	if err != nil {
		return err
	}
	rows, _ := p.latest()
	return p.show(v, "now", "Now", "/", map[string]any{
		"State": state, "Rows": rows, "Waiting": waiting, "Running": p.running(),
	})
}

type questionView struct {
	watch.Ask
	Total    int
	Sections []askedSection
	Changing []watch.PromptPart // the parts of the prompt after the stable ones, which are in Prompt
	Shown    []string           // faults
	Wrong    int                // how many there are
}

// askedSection is a section of a prompt, with the size of the whole prompt.
type askedSection struct {
	watch.Section
	Total int
}

type stepRow struct {
	watch.Step
	Result string
}

type turnView struct {
	row
	Own      time.Duration
	Asks     []questionView
	Closed   bool // texts are not shown
	Plans    []string
	Memories []string
	Steps    []stepRow
}

// turn is the prompt inspector.
func (p *Page) turn(v *visit, place core.Path) error {
	seq, err := strconv.ParseUint(v.URL.Query().Get("seq"), 10, 64)
	if err != nil {
		return badRequest("That is not a turn.")
	}
	e, ok := p.Turns.Last(func(e *watch.TurnEnd) bool { return e.Turn == core.TurnID{Path: place, Seq: seq} })
	if !ok {
		const text = "This turn is no longer stored: only the latest ones are, until the bot restarts."
		return userError{http.StatusNotFound, text}
	}
	closed := e.Private && !v.session.opens(place, v.now)
	return p.show(v, "turn", "Turn", "/", p.inspect(v.Context(), &e, closed))
}

func (p *Page) inspect(ctx context.Context, e *watch.TurnEnd, closed bool) turnView {
	t := e.Trace
	i := turnView{row: rowOf(*e), Own: max(t.Took-t.Thought, 0), Closed: closed}
	person := p.Bot.Names(ctx, e.Person)[e.Person]
	for _, a := range t.Asks {
		q := questionOf(a, closed)
		if person != "" { // an error may say that the user's budget is spent
			q.Err = strings.ReplaceAll(q.Err, e.Person.String(), person+" ("+e.Person.String()+")")
		}
		i.Asks = append(i.Asks, q)
	}
	if closed {
		return i
	}
	for _, m := range t.Memories {
		i.Memories = append(i.Memories, hideThought(m))
	}
	for _, plan := range t.Plans {
		raw, _ := json.Marshal(plan) // then withoutThoughts returns omitted
		i.Plans = append(i.Plans, withoutThoughts(raw))
	}
	for _, s := range t.Steps {
		d := stepRow{Step: s}
		d.Text = hideThought(s.Text)
		if raw, err := json.Marshal(s.Result); err == nil && string(raw) != "{}" {
			d.Result = withoutThoughts(raw)
		}
		i.Steps = append(i.Steps, d)
	}
	return i
}

// questionOf returns a call of a model for the page. If the turn is closed, it leaves out the prompt, the faults and
// error texts, which may quote messages.
func questionOf(a watch.Ask, closed bool) questionView {
	q := questionView{Ask: a, Wrong: len(a.Faults)}
	for _, s := range a.Sections {
		q.Total += s.Size
	}
	for _, s := range a.Sections {
		q.Sections = append(q.Sections, askedSection{s, q.Total})
	}
	if closed {
		q.Prompt, q.Faults, q.Failed = nil, nil, slices.Clone(q.Failed)
		for i := range q.Failed {
			q.Failed[i] = failureKind(q.Failed[i])
		}
		if q.Err != "" {
			q.Err = "no engine answered"
		}
		return q
	}
	for _, f := range a.Faults {
		q.Shown = append(q.Shown, hideThought(f))
	}
	q.Err = hideThought(q.Err)
	q.Prompt = slices.Clone(q.Prompt)
	for i := range q.Prompt {
		if q.Prompt[i].Stable {
			continue // contains nothing that the model wrote
		}
		q.Prompt[i].Text = hideThoughts(q.Prompt[i].Text)
		if q.Changing == nil {
			q.Changing = q.Prompt[i:]
		}
	}
	q.Prompt = q.Prompt[:len(q.Prompt)-len(q.Changing)]
	return q
}

// hideThoughts removes private thoughts from the lines of JSON in a part of a prompt, if it mentions any.
func hideThoughts(text string) string {
	if hideThought(text) == text {
		return text
	}
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		shown, err := llm.ThoughtlessJSON([]byte(line), "", hideThought)
		lines[i] = hideThought(line)
		if err == nil {
			lines[i] = string(shown)
		}
	}
	return strings.Join(lines, "\n")
}

// failureKind returns which engine failed and how, such as "engine big: retry_later: status 503", without the error
// text, which may quote messages.
func failureKind(text string) string {
	words := strings.SplitN(text, ": ", 4)
	n := min(len(words), 2)
	if len(words) > 2 && strings.HasPrefix(words[2], "status ") {
		n = 3
	}
	return strings.Join(words[:n], ": ")
}
