package filter

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"synthbot/core"
	"synthbot/core/gate"
	"synthbot/plugins/moderation"
	"synthbot/plugins/plugintest"
)

func TestScripts(t *testing.T) {
	plugintest.Run(t, "testdata/*.txt", plugintest.Of(func(h core.Host, c Config) (*moderation.Plugin, error) {
		p, err := moderation.New(h, plugintest.Defaults(t, moderation.Config{}))
		if err != nil {
			return nil, err
		}
		f, err := New(h.Clock, c, p)
		p.AddGates(f)
		return p, err
	}))
}

// notes is a Log that keeps its lines.
type notes []string

func (n *notes) LogAuthor(m *core.Message, what, detail string, _ time.Time) {
	*n = append(*n, m.Author.ID+" "+what+" "+detail)
}

func (n *notes) NotifyAbout(m *core.Message, text string, to ...core.Path) {
	*n = append(*n, fmt.Sprint(to, m.Author.ID, text))
}

// says returns a message to the bot: in a group if place is a number, else in the private place of that name.
func says(place, who, text string) *core.Message {
	m := &core.Message{
		Path: core.MustPath("room/" + place), Author: core.Author{ID: who, Name: strings.ToUpper(who)}, Text: text,
		Addressed: core.AddressedMention,
	}
	if place[0] > '9' {
		m.Private, m.Addressed = true, core.AddressedDirect
	}
	return m
}

// TestAgain checks that an edited or repeated message that breaks a rule is not answered, notified or logged.
func TestAgain(t *testing.T) {
	log := new(notes)
	f, err := New(time.Now, Config{Rules: []Rule{{Name: "r", Words: []string{"bad"}, Reply: "No."}, {Name: "t", Words: []string{"odd"}, Action: ruleTell}}}, log)
	if err != nil {
		t.Fatal(err)
	}
	for range 5 {
		if v := f.Judge(says("1", "jay", "bad"), true); v != (gate.Verdict{Admission: gate.Quiet}) {
			t.Errorf("got %+v", v)
		}
		if v := f.Judge(says("1", "jay", "odd"), true); v != (gate.Verdict{}) {
			t.Errorf("got %+v", v)
		}
	}
	if len(*log)+f.warned.Len() > 0 {
		t.Errorf("log: got %+v", *log)
	}
	if v := f.Judge(says("1", "jay", "bad"), false); v.Reply != "No." {
		t.Errorf("got %+v", v)
	}
}

// TestDeliveredAgain checks that a message that is delivered twice gets the same verdict and one log line.
func TestDeliveredAgain(t *testing.T) {
	log := new(notes)
	f, err := New(time.Now, Config{Rules: []Rule{{Name: "r", Words: []string{"bad"}, Reply: "No."}}}, log)
	if err != nil {
		t.Fatal(err)
	}
	m := says("1", "jay", "bad")
	m.ID = "1"
	for range 3 {
		if v := f.Judge(m, false); v != (gate.Verdict{Admission: gate.Quiet, Reply: "No."}) {
			t.Errorf("got %+v", v)
		}
	}
	f.Forget(core.MustPath("room/@user/jay"))
	other := says("1", "jay", "also bad")
	other.ID = "2"
	if v := f.Judge(other, false); v.Reply != "No." || len(*log) != 2 {
		t.Errorf("got %+v, log %q", v, *log)
	}
}

// BenchmarkLong judges the longest message that patterns see.
func BenchmarkLong(b *testing.B) {
	s, err := newRuleSet(&Config{Rules: []Rule{
		{Name: "links", Links: linksListed, Allow: []string{"example.org"}}, {Name: "words", Words: []string{"badword"}},
	}})
	if err != nil {
		b.Fatal(err)
	}
	m := says("1", "jay", strings.Repeat("some words, and a host.name ", maxScan/28))
	b.SetBytes(int64(len(m.Text)))
	for b.Loop() {
		s.judge(m)
	}
}
