package diary_test

import (
	"context"
	"fmt"
	"testing"

	"synthbot/core"
	"synthbot/core/command"
	"synthbot/plugins/diary"
	"synthbot/plugins/plugintest"
)

func TestConform(t *testing.T) {
	plugintest.Conform(t, plugintest.Case{
		Name: "diary",
		Make: func(t *testing.T, s *plugintest.Harness) core.Plugin {
			p, err := diary.New(s.Host, diary.Config{Daily: 12, Days: 3, Bytes: 800, Keep: 365})
			if err != nil {
				t.Fatal(err)
			}
			return p
		},
		Keep: []plugintest.Sample{
			{Action: "diary_write", Payload: `{"summary":"Jay told me of his ` + plugintest.Canary + `","feelings":["` + plugintest.Canary + `"],"tags":["` + plugintest.Canary + `"]}`},
		},
		Ask: []plugintest.Sample{
			{Command: "diary"},
			{Command: "diary", Args: map[string]string{"day": "today"}},
			{Text: "what do you write?"},
		},
	})
}

// night is a plugin whose command /night gives the bot a turn of its own.
type night struct {
	core.Host
	beats int
}

func (*night) Name() string           { return "night" }
func (*night) Actions() []core.Action { return nil }

func (n *night) Commands() []command.Command {
	return []command.Command{{Spec: command.Spec{Name: "night", Brief: "Let a night go by"}, Do: n.fall}}
}

func (n *night) fall(ctx context.Context, c command.Call) (string, error) {
	n.beats++
	return "z z z", n.Inbox.Receive(ctx, core.Event{Kind: core.KindBeat, Data: `{"beat":"night","quiet":true,"actions":["diary_*"]}`, Message: core.Message{
		Path: c.Path, ID: fmt.Sprint("night-", n.beats), Author: core.Author{Rank: core.RankBot}, Time: n.Clock(), Text: "It is night.", Private: c.Private,
	}})
}

func TestScripts(t *testing.T) {
	plugintest.Run(t, "testdata/*.txt", plugintest.Of(diary.New),
		plugintest.Named("night", func(h core.Host, _ struct{}) (*night, error) { return &night{Host: h}, nil }))
}
