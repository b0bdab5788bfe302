package plugintest

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"synthbot/core"
	"synthbot/core/command"
	"synthbot/core/coretest"
	"synthbot/core/gate"
)

// toys are actions for the scripts of this package.
func toys() core.Plugin {
	return coretest.NewPlugin("toys",
		core.Action{Name: "roll", Brief: "Roll dice", Do: func(context.Context, core.Call) (core.Result, error) {
			return core.Result{Output: json.RawMessage(`{"total":7}`)}, nil
		}},
		core.Action{Name: "wipe", Brief: "Delete everything", Confirm: true},
		core.Action{Name: "order", Brief: "Order tea", Schema: orderSchema, Do: brew},
		core.Action{Name: "order_dear", Brief: "Order dear tea", Schema: orderSchema, Do: brew, Confirm: true},
	)
}

// orderSchema requires a value of each type that a form can ask for.
var orderSchema = json.RawMessage(`{"type":"object","additionalProperties":false,"required":["tea","cups","milk","name"],"properties":{
 "tea":{"enum":["green","black"]},"cups":{"type":"integer","minimum":1,"maximum":9,"title":"How many cups"},
 "milk":{"type":"boolean"},"name":{"type":"string","description":"For whom it is.","maxLength":10}}}`)

func brew(_ context.Context, c core.Call) (core.Result, error) {
	return core.Result{Output: core.JSON(map[string]any{"ordered": c.Payload})}, nil
}

// keeper is a plugin that uses everything in its Host.
type keeper struct {
	core.Host
	prefix string
	wet    *atomic.Bool
}

type keeperConfig struct {
	Prefix string `toml:"prefix" doc:"What goes before." default:""`
}

func newKeeper(h core.Host, c keeperConfig) (*keeper, error) {
	return &keeper{h, c.Prefix, new(atomic.Bool)}, nil
}

func (k *keeper) Name() string { return k.Host.Name }

func (k *keeper) Actions() []core.Action {
	list := []core.Action{{
		Name: "keep", Brief: "Keep something", Do: k.keep, Effects: core.EffectNone,
		Schema: json.RawMessage(`{"type":"object","properties":{"what":{"type":"string"}},"required":["what"]}`),
	}}
	if k.wet.Load() {
		list = append(list, core.Action{Name: "swim", Brief: "Swim", Schema: json.RawMessage(`{"type":"object"}`), Do: k.swim})
	}
	return list
}

func (k *keeper) swim(context.Context, core.Call) (core.Result, error) {
	return core.Result{Output: json.RawMessage(`"wet"`)}, nil
}

func (k *keeper) keep(ctx context.Context, c core.Call) (core.Result, error) {
	var p struct{ What string }
	if err := json.Unmarshal(c.Payload, &p); err != nil {
		return core.Result{}, err
	}
	if k.wet.CompareAndSwap(false, p.What == "swimming") && p.What == "swimming" {
		k.Changed()
		return core.Result{Output: json.RawMessage(`"soon"`)}, nil
	}
	person, err := c.Path.Person(c.Author.ID)
	if err != nil {
		return core.Result{}, err
	}
	_, err = k.Items.Put(ctx, core.Item{Path: person, Key: "what", Version: core.AnyVersion, Value: json.RawMessage(`"` + p.What + `"`)})
	k.Messenger.NotifyAdmins(person.String() + " keeps " + p.What + map[bool]string{true: " (true)", false: ""}[k.Messenger.IsAdmin(person)])
	err = errors.Join(err, k.Messenger.Tell(ctx, person, "kept"))
	err = errors.Join(err, k.Messenger.SendFile(ctx, c.Deliveries, 1, core.Sent{Path: c.Path, Text: "here it is"}, core.Upload{Name: "tea.txt"}))
	_, asked := k.Asker.Ask(ctx, core.Question{})
	out, broken := json.Marshal(map[string]string{"asked": asked.Error()})
	return core.Result{Output: out}, errors.Join(err, broken)
}

// Inject implements core.Injector.
func (k *keeper) Inject(ctx context.Context, s core.Scene) (json.RawMessage, error) {
	person, err := s.Path.Person(s.Author.ID)
	if err != nil {
		return nil, err
	}
	i, ok, err := k.Items.Get(ctx, person, "what")
	if err != nil || !ok {
		return nil, err
	}
	return json.RawMessage(strings.Replace(string(i.Value), `"`, `"`+k.prefix, 1)), nil
}

// Commands implements command.Commander.
func (k *keeper) Commands() []command.Command {
	return []command.Command{{
		Spec: command.Spec{Name: "kept", Brief: "Tell what is kept", Args: []command.Arg{{Name: "of", Brief: "Whom"}}},
		Do: func(_ context.Context, c command.Call) (string, error) {
			return "You, " + c.Author.Name + ", ask of " + c.Args["of"] + ".", nil
		},
	}}
}

// Judge implements gate.Gate.
func (k *keeper) Judge(m *core.Message, _ bool) gate.Verdict {
	if m.Author.ID == "eve" {
		return gate.Verdict{Reply: "Go away."}
	}
	return gate.Verdict{}
}

// Bios implements core.BioSource.
func (k *keeper) Bios(context.Context, core.Scene, []core.Author) (map[string]json.RawMessage, error) {
	return map[string]json.RawMessage{"jay": json.RawMessage(`{"likes":"tea"}`)}, nil
}

func TestScripts(t *testing.T) {
	Run(t, "testdata/[taf]*.txt", With(toys()))
	Run(t, "testdata/plugin.txt", Named("keeper", newKeeper))
}

// TestUpdate checks that -update corrects wrong expectations and adds missing ones.
func TestUpdate(t *testing.T) {
	file := filepath.Join(t.TempDir(), "talk.txt")
	before := "# A talk.\nJay> hi\nsays< Hello,\n\tJay.\nbot= Hi.\n\nJay> and?\nsays< Bye.\n-- x.toml --\n"
	after := "# A talk.\nJay> hi\nsays< Hello,\n\tJay.\nbot= Hello,\n\nbot= Jay.\nJay> and?\nsays< Bye.\nbot= Bye.\n-- x.toml --\n"
	if err := os.WriteFile(file, []byte(before), 0o600); err != nil {
		t.Fatal(err)
	}
	*update = true
	defer func() { *update = false }()
	Run(t, file, With(toys()))
	if got, err := os.ReadFile(file); err != nil || string(got) != after {
		t.Errorf("%v:\n%s", err, got)
	}
}

// TestLive runs a conversation in real time.
func TestLive(t *testing.T) {
	Run(t, "testdata/talk.txt", With(toys()), Live())
}

// TestFaults checks that a failed expectation is reported with its line and the actual output.
func TestFaults(t *testing.T) {
	for name, tc := range map[string]struct{ script, want string }{
		"another text":        {"Jay> hi\nsays< Hello.\nbot= Hi.", "script:3: bot= Hi.\nthere is:\n  said: bot= Hello.\n"},
		"no match":            {"Jay> hi\nsays< Hello.\nbot~ ^Hi", "script:3: bot~ ^Hi\nthere is:"},
		"nothing said":        {"Jay (aside)> hi\nbot= Hi.", "script:2: bot= Hi.\nthat is not there:\n  nothing more was said\n"},
		"elsewhere":           {"Jay> hi\nsays< Hello.\nbot @ room/2= Hello.", "that is not there:\n  said: bot= Hello."},
		"no answer":           {"Jay> hi\nbot= Hi.", "the model is asked, and waits for an answer: "},
		"no question":         {"Jay (aside)> hi\nsays< Hello.", "script:2: says< Hello.\nthe model is not asked anything"},
		"unexpected":          {"Jay> hi\nsays< Hello.\nJay> and?", "script:3: Jay> and?\nbefore this, it was not expected:\n  said: bot= Hello."},
		"unexpected at last":  {"Jay> hi\nsays< Hello.\n", "script:3: the end\nbefore this, it was not expected:"},
		"unasked at last":     {"Jay> hi\n", "script:2: the end\nthe model is asked, and the script has no answer"},
		"something":           {"Jay> hi\nsays< Hello.\nnothing", "it was not expected:\n  said: bot= Hello."},
		"not in the prompt":   {"Jay> hi\nprompt~ moon", "script:2: prompt~ moon\nit was asked:\n"},
		"in the prompt":       {"Jay> hi\nprompt! \"hi\"", "it was asked:\n"},
		"never asked":         {"Jay (aside)> hi\nprompt~ hi", "the model was never asked"},
		"how often":           {"Jay> hi\nsays< Hello.\nbot= Hello.\nasked 2", "the model was asked 1 times"},
		"no button":           {"Jay> hi\nsays< Hello.\nbot= Hello.\npress Yes", `there is no button "Yes"`},
		"dead":                {"stop\nJay> hi", "the bot is not alive"},
		"back in time":        {"Jay (aside)> hi\nclock 2020-01-01T00:00:00Z", "it is 2026-03-02T10:00:00Z already"},
		"a setting too late":  {"Jay (aside)> hi\nzone Europe/Rome", "that must come before anything happens"},
		"an unknown verb":     {"dance wildly", `nothing is called "dance"`},
		"an unknown way":      {"Jay (shouting)> hi", `"shouting" is no way to say something`},
		"a configuration":     {"Jay (aside)> hi\n-- keeper.toml --\nprefiks = \"x\"\n", "prefiks"},
		"no file":             {"Jay (file x.png)> hi", `the script has no file "x.png"`},
		"no kind of an error": {"Jay> hi\nfails< boom", "no llm.ErrorKind"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := faultOf(t, tc.script, With(toys()), Named("keeper", newKeeper)); !strings.Contains(got, tc.want) {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

// faultOf runs a script that fails, and returns its failure message.
func faultOf(t *testing.T, script string, options ...Option) (fault string) {
	note := func(p *plan) { p.caught = func(text string) { fault = text } }
	Text(t, script, append(options, note)...)
	return fault
}

// TestManyWriters checks concurrent writes in a bubble, where the clock does not move.
func TestManyWriters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := NewHarness(t, "toys")
		var all sync.WaitGroup
		for i := range 4 {
			all.Go(func() {
				for n := range 50 {
					_, err := s.Items.Put(t.Context(), core.Item{Key: strconv.Itoa(i*100 + n), Value: json.RawMessage(`1`)})
					if err != nil {
						t.Error(err)
					}
				}
			})
		}
		all.Wait()
		if items, err := s.Items.List(t.Context(), core.Path{}); err != nil || len(items) != 200 {
			t.Errorf("got %d items, %v", len(items), err)
		}
	})
}
