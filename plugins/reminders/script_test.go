package reminders_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"synthbot/core"
	"synthbot/core/engine/offline"
	"synthbot/core/llm"
	"synthbot/core/turn"
	"synthbot/plugins/clock"
	"synthbot/plugins/plugintest"
	"synthbot/plugins/reminders"
)

func TestScripts(t *testing.T) {
	plugintest.Run(t, "testdata/*.txt", plugintest.Of(reminders.New))
}

// TestOnePlace checks that a user's time zone is stored once, also for the clock plugin.
func TestOnePlace(t *testing.T) {
	plugintest.Run(t, "testdata/both/*.txt", plugintest.Of(reminders.New), plugintest.Of(clock.New))
}

func TestConform(t *testing.T) {
	plugintest.Conform(t, plugintest.Case{
		Name: "reminders",
		Make: func(t *testing.T, s *plugintest.Harness) core.Plugin {
			p, err := reminders.New(s.Host, plugintest.Defaults(t, reminders.Config{}))
			if err != nil {
				t.Fatal(err)
			}
			return p
		},
		Keep: []plugintest.Sample{{Action: "reminder_set", Payload: `{"text":"` + plugintest.Canary + `","when":"tomorrow at 9"}`}},
		Ask: []plugintest.Sample{
			{Action: "reminder_list", Payload: `{}`},
			{Command: "remind", Args: map[string]string{"what": "list"}},
			{Action: "reminder_cancel", Payload: `{"id":"nothing of that"}`},
		},
	})
}

// builtin asks the built-in engine.
type builtin struct{ model *offline.Model }

func (b builtin) Ask(ctx context.Context, q core.Question) (llm.Answer, error) {
	r, err := q.Build(b.model.Limits())
	if err != nil {
		return llm.Answer{}, err
	}
	return b.model.Generate(ctx, r)
}

// TestOffline checks that the built-in engine sets reminders.
func TestOffline(t *testing.T) {
	model := offline.New(offline.Options{})
	plugintest.Text(t, `
zone Europe/Rome
clock 2026-11-20T15:00:00+01:00

Jay (private)> remind me tomorrow at 9 to call mum
bot~ reminder for Saturday, 21 November 2026, 09:00: call mum
Jay (private, locale it)> ricordami tra 2 ore di spegnere il forno
bot~ forno
Jay (private)> /remind list
bot~ Friday 20 November 2026, 17:00 .*spegnere il forno
bot~ Saturday 21 November 2026, 09:00 .*call mum
`, plugintest.Of(reminders.New), plugintest.Tune(func(o *turn.Options) { o.Asker = builtin{model} }))
}

// TestMany checks that the model gets all reminders, although a message shows fewer, and can cancel them.
func TestMany(t *testing.T) {
	script := &strings.Builder{}
	script.WriteString("zone Europe/Rome\nclock 2026-11-20T15:00:00+01:00\n")
	for i := range 23 {
		fmt.Fprintf(script, "Jay (private)> remind me in %d days at 9 to water\nbot~ water\n", i+1)
	}
	script.WriteString(`Jay (private)> cancel all reminders
bot~ Cancelled
Jay (private)> /remind list
bot~ No reminders
`)
	model := offline.New(offline.Options{})
	plugintest.Text(t, script.String(), plugintest.Of(reminders.New),
		plugintest.Tune(func(o *turn.Options) { o.Asker = builtin{model} }))
}
