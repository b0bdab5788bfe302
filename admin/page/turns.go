package page

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"synthbot/core"
	"synthbot/core/watch"
)

// shown is how many turns the first page lists.
const shown = 50

type row struct {
	Place, Person, Outcome, Intent string
	Stage                          string // of a turn that runs; it has no outcome
	Mark                           string // of the outcome: good, bad or none
	Seq                            uint64
	At, Took, Thought              string
	Asks, Faults, Steps            int
	Private                        bool
}

// outcome returns the outcome of a turn in a word.
func outcome(e *watch.TurnEnd) string {
	switch {
	case e.Aside:
		return "set aside"
	case e.Answered:
		return "answered"
	}
	return "silent"
}

// rowOf returns the row of a turn, without texts. The intent of a private turn is left out,
// because the model wrote it.
func (p *Page) rowOf(e *watch.TurnEnd) row {
	t := e.Trace
	r := row{
		Place: e.Turn.Path.String(), Seq: e.Turn.Seq, Person: e.Person.String(), Private: e.Private,
		Outcome: outcome(e), Mark: map[string]string{"answered": "good", "set aside": "bad"}[outcome(e)],
		At: p.hour(t.Began), Took: span(t.Took), Thought: span(t.Thought),
		Asks: len(t.Asks), Steps: len(t.Steps), Faults: corrections(t),
	}
	if !e.Private {
		r.Intent = quoteless(e.Intent)
	}
	return r
}

// mostRunning is how many running turns are listed.
const mostRunning = 20

type run struct {
	Turns []row
	More  int
}

// running returns the running turns, without texts.
func (p *Page) running() run {
	all := p.Running.Now()
	r := run{More: max(len(all)-mostRunning, 0)}
	for _, s := range all[:len(all)-r.More] {
		r.Turns = append(r.Turns, row{
			Stage: string(s.Stage), At: p.hour(s.Began),
			Place: s.Turn.Path.String(), Person: s.Person.String(), Private: s.Private,
		})
	}
	return r
}

// hour returns a time of day in the time zone of the bot.
func (p *Page) hour(t time.Time) string { return t.In(p.Clock().Location()).Format(time.TimeOnly) }

// corrections counts the wrong answers of models.
func corrections(t *watch.Trace) (n int) {
	for i := range t.Asks {
		if len(t.Asks[i].Faults) > 0 {
			n++
		}
	}
	return n
}

// span returns a duration as users read it.
func span(d time.Duration) string {
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

// rows returns the rows of the list of turns.
func (p *Page) rows() (rows []row) {
	for _, e := range p.Turns.Recent(shown) {
		rows = append(rows, p.rowOf(&e))
	}
	return rows
}

func (p *Page) now(v *visit) error {
	waiting, err := p.waiting(v.Context())
	if err != nil {
		return err
	}
	return p.show(v, "now", "Now", "/", map[string]any{"Rows": p.rows(), "Waiting": waiting, "Running": p.running()})
}

// asked is one question to a model, for reading.
type asked struct {
	watch.Ask
	Took     string
	Total    int
	Sections []askedSection
	Shown    []string // faults
	Wrong    int      // how many there are
}

// askedSection is a section of a prompt, with the size of the whole prompt.
type askedSection struct {
	watch.Section
	Total int
}

type done struct {
	watch.Step
	Result string
}

// inspected is a turn in full.
type inspected struct {
	row
	Own      string
	Asks     []asked
	Closed   bool // texts are not shown
	Plans    []string
	Memories []string
	Steps    []done
	Error    bool
}

// turn is the prompt inspector.
func (p *Page) turn(v *visit) error {
	place, err := v.place(v.URL.Query().Get("place"))
	if err != nil {
		return err
	}
	seq, err := strconv.ParseUint(v.URL.Query().Get("seq"), 10, 64)
	if err != nil {
		return wrong("That is not a turn.")
	}
	e, ok := p.Turns.Last(func(e *watch.TurnEnd) bool { return e.Turn == core.TurnID{Path: place, Seq: seq} })
	if !ok {
		const text = "This turn is no longer stored: only the latest ones are, until the bot restarts."
		return userError{http.StatusNotFound, text}
	}
	closed := e.Private && !v.session.opens(place, v.now)
	return p.show(v, "turn", "Turn", "/", p.inspect(&e, closed))
}

func (p *Page) inspect(e *watch.TurnEnd, closed bool) inspected {
	t := e.Trace
	i := inspected{row: p.rowOf(e), Own: span(max(t.Took-t.Thought, 0)), Closed: closed}
	for _, a := range t.Asks {
		i.Asks = append(i.Asks, askedOf(a, closed))
	}
	if closed {
		return i
	}
	for _, m := range t.Memories {
		i.Memories = append(i.Memories, quoteless(m))
	}
	for _, plan := range t.Plans {
		raw, _ := json.Marshal(plan) // bare says so if it fails
		i.Plans = append(i.Plans, bare(raw))
	}
	for _, s := range t.Steps {
		d := done{Step: s}
		d.Text = quoteless(s.Text)
		if raw, err := json.Marshal(s.Result); err == nil && string(raw) != "{}" {
			d.Result = bare(raw)
		}
		i.Steps = append(i.Steps, d)
	}
	return i
}

// askedOf shows a question; faults and errors may quote what was said.
func askedOf(a watch.Ask, closed bool) asked {
	q := asked{Ask: a, Took: span(a.Took), Wrong: len(a.Faults)}
	for _, s := range a.Sections {
		q.Total += s.Size
	}
	for _, s := range a.Sections {
		q.Sections = append(q.Sections, askedSection{s, q.Total})
	}
	if closed {
		q.Faults, q.Failed = nil, nil
		if q.Err != "" {
			q.Err = "no engine answered"
		}
		return q
	}
	for _, f := range a.Faults {
		q.Shown = append(q.Shown, quoteless(f))
	}
	q.Err = quoteless(q.Err)
	return q
}
