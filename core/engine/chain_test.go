package engine

import (
	"strings"
	"testing"

	"synthbot/core"
)

func TestNothingConfigured(t *testing.T) {
	c, err := New(nil, Options{})
	if err != nil {
		t.Fatal(err)
	}
	a, err := c.Ask(bounded(t), plainQuestion())
	if err != nil || a.Engine != "offline" || a.Text == "" {
		t.Errorf("%+v, %v", a, err)
	}
}

func TestFirstEngineAnswers(t *testing.T) {
	s := newServer(t, aiSays("yo"))
	c, err := New([]Config{s.table()}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	a, err := c.Ask(bounded(t), plainQuestion())
	if err != nil || a.Engine != "test" || a.Text != "yo" || a.Truncated {
		t.Errorf("%+v, %v", a, err)
	}
	if want := (core.Usage{In: 30, Out: 4, Cached: 20}); a.Usage != want {
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
		t.Errorf("%+v, %v", a, err)
	}
}

func TestFaultsOfTablesComeTogether(t *testing.T) {
	_, err := New([]Config{
		{Name: "a", Provider: "nobody"},
		{Name: "b", Provider: "groq"},
		{Name: "b", Provider: "ollama", Model: "m", BaseURL: "ftp://x"},
	}, Options{})
	for _, want := range []string{`engine a: provider: "nobody"`, "engine b: model: missing", "api_key: missing", `name: "b" is taken`, "no http or https address"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v lacks %q", err, want)
		}
	}
}
