package people_test

import (
	"testing"

	"synthbot/core"
	"synthbot/plugins/people"
	"synthbot/plugins/plugintest"
)

func TestConform(t *testing.T) {
	plugintest.Conform(t, plugintest.Case{
		Name: "people",
		Make: func(t *testing.T, s *plugintest.Harness) core.Plugin {
			p, err := people.New(s.Host, people.Config{Fields: 5, Daily: 20, Bytes: 300})
			if err != nil {
				t.Fatal(err)
			}
			return p
		},
		Keep: []plugintest.Sample{
			{Action: "bio_update", Payload: `{"names":["` + plugintest.Canary + `"],"likes":["` + plugintest.Canary + `"],"facts":["has a ` + plugintest.Canary + `"],"relationship":"like a ` + plugintest.Canary + `"}`},
		},
		Ask: []plugintest.Sample{
			{Action: "bio_request", Payload: `{"who":"jay"}`},
			{Action: "bio_request", Payload: `{}`},
			{Text: "who am I?"},
		},
	})
}

func TestScripts(t *testing.T) {
	plugintest.Run(t, "testdata/*.txt", plugintest.Of(people.New))
}
