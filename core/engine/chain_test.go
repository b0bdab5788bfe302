package engine

import (
	"strings"
	"testing"

	"synthbot/core"
	"synthbot/core/llm"
)

func TestNothingConfigured(t *testing.T) {
	c, err := New(nil, Options{})
	if err != nil {
		t.Fatal(err)
	}
	a, err := c.Ask(bounded(t), plainQuestion())
	if err != nil || a.Engine != "offline" || a.Text == "" {
		t.Errorf("got %+v, %v", a, err)
	}
}

func TestFirstEngineAnswers(t *testing.T) {
	s := newServer(t, respondOpenAI("yo"))
	c, err := New([]Config{s.table()}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	a, err := c.Ask(bounded(t), plainQuestion())
	if err != nil || a.Engine != "test" || a.Text != "yo" || a.Truncated {
		t.Errorf("got %+v, %v", a, err)
	}
	if want := (llm.Usage{In: 30, Out: 4, Cached: 20}); a.Usage != want {
		t.Errorf("usage %+v", a.Usage)
	}
}

func TestLastLinkAnswersWhenTheModelIsDown(t *testing.T) {
	s := newServer(t, body(500, "<html>boom</html>"))
	c, err := New([]Config{s.table()}, Options{Patience: -1})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	a, err := c.Ask(bounded(t), plainQuestion())
	if err != nil || a.Engine != "offline" {
		t.Errorf("got %+v, %v", a, err)
	}
}

func TestFaultsOfTablesComeTogether(t *testing.T) {
	_, err := New([]Config{
		{Name: "a", Provider: "nobody"},
		{Name: "b", Provider: "groq"},
		{Name: "c", Provider: "ollama", Model: "m", BaseURL: "ftp://x"},
	}, Options{})
	for _, want := range []string{`engine a: provider: "nobody"`, "engine b: model: missing", "api_key: missing", "engine c: base_url: ", "not an http or https address"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v lacks %q", err, want)
		}
	}
}

// TestOfflineTables checks that the last offline table decides whether there is an offline engine, and under what name.
func TestOfflineTables(t *testing.T) {
	off, other := Config{Name: "off", Provider: "offline", Disabled: true}, Config{Name: "mine", Provider: "offline"}
	model := Config{Name: "model", Provider: "vllm", Model: "m", BaseURL: "http://127.0.0.1:1"}
	for want, tables := range map[string][]Config{
		"offline":       nil,
		"mine":          {off, other},
		"model mine":    {off, model, other},
		"model":         {model, other, off},
		"model offline": {model},
	} {
		c, err := New(tables, Options{})
		if err != nil {
			t.Errorf("%s: %v", want, err)
			continue
		}
		if got := strings.Join(c.Names(), " "); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
		c.Close()
	}
}

// TestStandbySaysSo checks that the offline engine mentions the missing model only if it replaces one, not
// if it was chosen.
func TestStandbySaysSo(t *testing.T) {
	s := newServer(t, body(500, ""))
	c, err := New([]Config{s.table()}, Options{Patience: -1, Prefer: func(place core.Path) string {
		if place.String() == "console/chosen" {
			return "offline"
		}
		return ""
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for place, want := range map[string]bool{"console/chosen": false, "console/other": true} {
		q := question(func(llm.Limits) (llm.Request, error) {
			r := hello()
			r.Messages[0].Text = strings.Replace(r.Messages[0].Text, "hello", "explain the Riemann hypothesis", 1)
			return r, nil
		})
		q.Path = core.MustPath(place)
		a, err := c.Ask(bounded(t), q)
		if err != nil || a.Engine != "offline" {
			t.Fatalf("got %+v, %v", a, err)
		}
		says := strings.Contains(a.Text, "language model can't be reached") || strings.Contains(a.Text, "usually thinks for me") || strings.Contains(a.Text, "until my language model is back")
		if says != want {
			t.Errorf("%s: got %s", place, a.Text)
		}
	}
}
