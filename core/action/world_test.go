package action

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"synthbot/core"
)

// plug is a plugin with a fixed list of actions.
type plug struct {
	name    string
	actions []core.Action
}

func (p plug) Name() string           { return p.name }
func (p plug) Actions() []core.Action { return p.actions }

// iface is an interface with a fixed list of actions.
type iface struct{ plug }

func (iface) Listen(ctx context.Context, _ core.Inbox) error { <-ctx.Done(); return ctx.Err() }

// world is a small bot with two interfaces and some plugins that records their calls.
type world struct {
	mu    sync.Mutex
	calls []string
}

func (w *world) note(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.calls = append(w.calls, fmt.Sprintf(format, args...))
}

// did returns the calls since the last did.
func (w *world) did() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	calls := w.calls
	w.calls = nil
	return calls
}

// do returns a Do that records the call and returns the output.
func (w *world) do(name, output string) func(context.Context, core.Call) (core.Result, error) {
	return func(_ context.Context, c core.Call) (core.Result, error) {
		w.note("%s%s", name, c.Payload)
		return core.Result{Output: json.RawMessage(output)}, nil
	}
}

// message returns an interface's message action.
func (w *world) message(name string) core.Action {
	return core.Action{
		Name: core.MessagePrefix + name, Brief: "Send a message", Essential: true,
		Schema: json.RawMessage(`{"type":"object","properties":{
			"text":{"type":"string","minLength":1,"description":"what to say"},
			"interface_path":{"type":"string"},
			"recipient":{"type":"string"},
			"suggestions":{"type":"array","items":{"type":"string"}},
			"priority":{"type":"string","enum":["low","normal","high"],"default":"normal"}},
			"required":["text"],"additionalProperties":false}`),
		Do: func(ctx context.Context, c core.Call) (core.Result, error) {
			var m struct {
				Text string
				Path core.Path `json:"interface_path"`
			}
			if err := json.Unmarshal(c.Payload, &m); err != nil {
				return core.Result{}, err
			}
			sent := core.Sent{Path: m.Path, Text: m.Text}
			err := c.Deliveries.Send(ctx, 1, sent, func(context.Context, string) (string, error) {
				w.note("%s: %s", m.Path, m.Text)
				return "1", nil
			})
			return core.Result{}, err
		},
	}
}

// act returns a simple action.
func (w *world) act(name string, change ...func(*core.Action)) core.Action {
	a := core.Action{
		Name: name, Brief: "Do " + name, Do: w.do(name, `{"n":1}`), Effects: core.EffectNone,
		Schema: json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer"},"user":{"type":"string"}}}`),
	}
	for _, c := range change {
		c(&a)
	}
	return a
}

// catalogue returns the catalogue that most tests use, with more actions.
func (w *world) catalogue(t testing.TB, actions ...core.Action) *Snapshot {
	t.Helper()
	s, err := Build(
		iface{plug{"telegram", []core.Action{w.message("telegram"), w.act("telegram_pin")}}},
		iface{plug{"discord", []core.Action{w.message("discord")}}},
		plug{"tools", append([]core.Action{
			w.act("web_search", func(a *core.Action) { a.Similes = []string{"GOOGLE_IT"} }),
			w.act("web_fetch", func(a *core.Action) { a.DependsOn = []string{"web_search"} }),
			w.act("ban", func(a *core.Action) { a.Permission = core.PermissionModerators }),
			w.act("send_file", func(a *core.Action) { a.Outside = true }),
			w.act("forget", func(a *core.Action) { a.Permission, a.Concerns = core.PermissionConcerned, "user" }),
			w.act("transfer", func(a *core.Action) { a.Confirm = true }),
			w.act("beat_note", func(a *core.Action) { a.Permission = core.PermissionBot }),
		}, actions...)},
	)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

var here = core.MustPath("telegram/-100/7")

// by returns a turn by users of these ranks.
func by(ranks ...core.Rank) Requester {
	w := Requester{Path: here}
	for i, r := range ranks {
		w.Authors = append(w.Authors, core.Author{ID: fmt.Sprint(i + 1), Name: fmt.Sprintf("Person %d", i+1), Rank: r})
	}
	return w
}

// journal is an in-memory Journal. A crash loses the records passed to Later.
type journal struct {
	mu     sync.Mutex
	disk   map[core.Key]core.Record
	later  []core.Record
	writes int
	fail   error
}

func newJournal() *journal { return &journal{disk: make(map[core.Key]core.Record)} }

func (j *journal) Find(k core.Key) (core.Record, bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, r := range slices.Backward(j.later) {
		if r.Key == k {
			return r, true
		}
	}
	r, ok := j.disk[k]
	return r, ok
}

func (j *journal) Write(ctx context.Context, records ...core.Record) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.fail != nil {
		return j.fail
	}
	j.writes++
	for _, r := range append(j.later, records...) {
		j.disk[r.Key] = r
	}
	j.later = nil
	return ctx.Err()
}

func (j *journal) Later(records ...core.Record) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.later = append(j.later, records...)
}

// crash returns what is left after a crash.
func (j *journal) crash() *journal {
	j.mu.Lock()
	defer j.mu.Unlock()
	return &journal{disk: maps.Clone(j.disk)}
}

func (j *journal) Parts(k core.Key) core.Deliveries { return parts{j, k} }

type parts struct {
	*journal
	key core.Key
}

func (p parts) Since(int) time.Time { return time.Time{} }

func (p parts) Send(
	ctx context.Context, n int, what core.Sent, do func(context.Context, string) (string, error),
) error {
	key := p.key
	key.Part = uint16(n)
	if r, ok := p.Find(key); ok && r.Progress == core.ProgressDone {
		return nil
	}
	if _, err := do(ctx, "nonce"); err != nil {
		return err
	}
	p.Later(core.Record{Key: key, Progress: core.ProgressDone})
	return nil
}

// job returns a job with these steps.
func (j *journal) job(s *Snapshot, w Requester, steps ...core.Step) Job {
	id := core.TurnID{Path: w.Path, Seq: 1}
	return Job{Snapshot: s, Turn: id, Round: 1, Plan: core.Plan{Steps: steps}, Who: w, Journal: j}
}

// step returns a step of a plan.
func step(name, payload string, change ...func(*core.Step)) core.Step {
	s := core.Step{Type: name, Payload: json.RawMessage(payload), Priority: core.DefaultPriority}
	for _, c := range change {
		c(&s)
	}
	return s
}

// run executes a job and fails the test if the journal fails.
func run(t *testing.T, r *Runtime, j Job) []StepResult {
	t.Helper()
	done, err := r.Execute(t.Context(), j)
	if err != nil {
		t.Fatal(err)
	}
	return done
}

// describe returns each step with its outcome as a line.
func describe(done []StepResult) (lines []string) {
	for _, d := range done {
		line := fmt.Sprintf("%d %s %s", d.Step, d.Action, d.Progress)
		if d.For != 0 {
			line += fmt.Sprintf(" for %d", d.For)
		}
		if d.Outcome.Text != "" {
			line += ": " + d.Outcome.Text
		}
		lines = append(lines, line)
	}
	return lines
}

// wantLines compares lines.
func wantLines(t *testing.T, what string, got, want []string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s:\ngot  %q\nwant %q", what, got, want)
	}
}

var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
