package plugintest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"synthbot/core"
	"synthbot/core/action"
)

// sins are faults that a plugin can have, by name.
type sins map[string]bool

// notes is a plugin that keeps a note for a user, with faults on demand.
type notes struct {
	h    core.Host
	sins sins
	mu   sync.Mutex
	list []string
}

type note struct {
	Text string `json:"text" doc:"What to note." min:"1" max:"500"`
}

func (n *notes) Name() string {
	if n.sins["name"] {
		return "My Notes"
	}
	return n.h.Name
}

func (n *notes) Actions() []core.Action {
	a := core.Action{
		Name: "note_add", Brief: "Note something for the person", Permission: core.PermissionEveryone, Effects: core.EffectNone,
		Examples: core.Examples{
			Description:  "Keeps a note.",
			Instructions: core.Instructions{WhenToUse: "When asked to.", CommonPitfalls: []string{"One note a call."}},
			Examples:     []core.Example{{Scenario: "A shopping list", Payload: json.RawMessage(`{"text":"milk"}`)}},
		},
	}
	if n.sins["brief"] {
		a.Brief = "Adds a note."
	}
	if n.sins["permission"] {
		a.Permission = ""
	}
	if n.sins["pitfalls"] {
		a.Examples.Instructions.CommonPitfalls = nil
	}
	if n.sins["example"] {
		a.Examples.Examples[0].Payload = json.RawMessage(`{"txt":"milk"}`)
	}
	a = action.Typed(a, n.add)
	if n.sins["undescribed"] {
		a.Schema = json.RawMessage(`{"type":"object","properties":{"text":{"type":"string"}}}`)
	}
	if do := a.Do; n.sins["panic"] || n.sins["hangs"] || n.sins["unread"] {
		a.Do = func(ctx context.Context, c core.Call) (core.Result, error) {
			switch {
			case n.sins["hangs"]:
				<-make(chan struct{})
			case n.sins["unread"] && !json.Valid(c.Payload):
				return core.Result{}, errors.New("what is that?")
			case n.sins["panic"]:
				var p note
				_ = json.Unmarshal(c.Payload, &p)
				_ = p.Text[:1]
			}
			return do(ctx, c)
		}
	}
	return []core.Action{a}
}

func (n *notes) add(ctx context.Context, c core.Call, p note) (core.Result, error) {
	path, err := c.Path.Person(c.Author.ID)
	if err != nil {
		return core.Result{}, err
	}
	if n.sins["keeps elsewhere"] {
		path = core.Path{}
	}
	n.mu.Lock()
	n.list = append(n.list, p.Text)
	n.mu.Unlock()
	value, err := json.Marshal(map[string]any{"text": p.Text, "in": c.Path})
	if err != nil {
		return core.Result{}, err
	}
	_, err = n.h.Items.Put(ctx, core.Item{Path: path, Key: "note", Version: core.AnyVersion, Value: value})
	return core.Result{}, err
}

// Inject implements core.Injector.
func (n *notes) Inject(ctx context.Context, s core.Scene) (json.RawMessage, error) {
	if n.sins["long"] {
		return json.RawMessage(`"` + strings.Repeat("x", 3000) + `"`), nil
	}
	if n.sins["mute"] {
		return nil, nil
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.sins["remembers"] && len(n.list) > 0 {
		return json.Marshal(n.list)
	}
	items, err := n.h.Items.List(ctx, core.Path{})
	for _, i := range items {
		var kept struct {
			Text string
			In   core.Path
		}
		person, wrong := s.Path.Person(s.Author.ID)
		if err := errors.Join(json.Unmarshal(i.Value, &kept), wrong); err != nil {
			return nil, err
		}
		if s.Path == kept.In && person == i.Path || n.sins["tells all"] || n.sins["tells him"] && person == i.Path {
			return json.Marshal(kept.Text)
		}
	}
	return nil, err
}

// Run implements core.Runner.
func (n *notes) Run(ctx context.Context) error {
	if n.sins["leaks"] {
		go func() { <-make(chan struct{}) }()
	}
	<-ctx.Done()
	if n.sins["complains"] {
		return ctx.Err()
	}
	return nil
}

func notesCase(s sins) Case {
	return Case{
		Name: "notes", Make: func(_ *testing.T, st *Harness) core.Plugin { return &notes{h: st.Host, sins: s} },
		Keep: []Sample{{Action: "note_add", Payload: `{"text":"the secret ` + Canary + `"}`}},
	}
}

func TestConform(t *testing.T) { Conform(t, notesCase(nil)) }

// TestConformCanFail runs the suite on faulty plugins, each in a process of its own, because a test that fails
// cannot pass.
func TestConformCanFail(t *testing.T) {
	if sin := os.Getenv("SIN"); sin != "" {
		Conform(t, notesCase(sins{sin: true}))
		return
	}
	for sin, want := range map[string]string{
		"name":            "want a-z",
		"brief":           "ends in a full stop",
		"permission":      "it declares no permission",
		"pitfalls":        "a pitfall",
		"example":         `example "A shopping list"`,
		"undescribed":     `"text" has neither a description nor a title`,
		"panic":           "panic: runtime error",
		"hangs":           "has not returned after its context ended",
		"unread":          "want a *core.Error",
		"keeps elsewhere": "neither a fact, nor under his path",
		"long":            "it injects 3002 bytes",
		"remembers":       "is told to Eve",
		"tells all":       "is told to Eve",
		"tells him":       "is told to Jay in room/1",
		"mute":            "is not told there",
		"leaks":           "found unexpected goroutines",
		"complains":       "want nil when its context",
	} {
		t.Run(sin, func(t *testing.T) {
			t.Parallel()
			c := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestConformCanFail$", "-test.failfast", "-test.timeout=10m")
			c.Env = append(os.Environ(), "SIN="+sin)
			var out bytes.Buffer
			c.Stdout, c.Stderr = &out, &out
			if err := c.Run(); err == nil || !strings.Contains(out.String(), want) {
				t.Errorf("%v; want a failure with %q:\n%s", err, want, out.String())
			}
		})
	}
}
