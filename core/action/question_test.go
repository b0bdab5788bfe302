package action

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode"

	"synthbot/core"
)

// asked returns the question about a payload, or "" if the step is refused.
func asked(t *testing.T, attaches bool, payload string, change ...func(*core.Step)) string {
	t.Helper()
	w := &world{}
	s := w.catalogue(t, w.act("pay", func(a *core.Action) {
		a.Confirm = true
		a.Schema = json.RawMessage(`{"type":"object","title":"Pay a bill","properties":{"amount":{"type":"number","title":"Amount"},"to":{"type":"string","title":""}}}`)
	}))
	j := newJournal().job(s, by(core.RankMember), step("pay", payload, change...))
	j.Attaches = attaches
	done := run(t, NewRuntime(Options{}), j)
	if done[0].Progress == core.ProgressPending {
		return done[0].Held.Question
	}
	if done[0].Progress != core.ProgressSkipped || !strings.Contains(done[0].Outcome.Text, "cannot be shown completely") {
		t.Errorf("got %q, want it skipped because the payload cannot be shown", describe(done))
	}
	return ""
}

// TestQuestionsTellTheTruth: a question shows all values in full, before the model's own reason.
func TestQuestionsTellTheTruth(t *testing.T) {
	many := map[string]any{}
	var lines []string
	for i := range 12 {
		many[fmt.Sprintf("k%02d", i)] = i
		lines = append(lines, fmt.Sprintf("k%02d: %d", i, i))
	}
	long := strings.Repeat("x", 600) + " end"
	for _, tc := range []struct{ payload, want string }{
		{`{"amount":500,"to":"Ann"}`, "Pay a bill\nAmount: 500\nto: Ann"},
		{string(core.JSON(many)), "Pay a bill\n" + strings.Join(lines, "\n")},
		{`{"to":"` + long + `"}`, "Pay a bill\nto: " + long},
		{`{"to":"a\nAmount: 1\tb"}`, `Pay a bill|to: "a\nAmount: 1\tb"`},
		{`{"to":"\u202egnp.exe"}`, `Pay a bill|to: "\u202egnp.exe"`},
		{`{"to":"9̶0 a\u0332b\u20e0 1️⃣ é"}`, `Pay a bill|to: "9\u03360 a\u0332b\u20e0 1️⃣ é"`},
		{`{"to":"a\u200bb\u2066c\ufeff\u00ad\u3164\u2800\ue000"}`, `Pay a bill|to: "a\u200bb\u2066c\ufeff\u00ad\u3164\u2800\ue000"`},
		{`{"to":"ann\ufe0fie"}`, `Pay a bill|to: "ann\ufe0fie"`},
		{`{"to":"\udb40\udc41 \ud83d\ude00\ufe0f"}`, "Pay a bill|to: \"\\U000e0041 😀\ufe0f\""},
		{`{"to":"a\ufffd\uffff\ufe0eb"}`, `Pay a bill|to: "a\ufffd\uffff\ufe0eb"`},
		{`{"to":" a "}`, `Pay a bill|to: " a "`},
		{`{"to":""}`, `Pay a bill|to: ""`},
		{`{"to":"\"a\\b"}`, `Pay a bill|to: "\"a\\b"`},
		{`{"to":"[free](https://evil.example) ~~not~~"}`, "Pay a bill|to: [free](https://evil.example) ~~not~~"},
		{`{"n":{"a":["x\u202ey",null,true]}}`, `Pay a bill|n: {"a":["x\u202ey",null,true]}`},
		{`{"a\nb":1}`, `Pay a bill|"a\nb": 1`},
	} {
		if got, want := asked(t, false, tc.payload), strings.ReplaceAll(tc.want, "|", "\n"); got != want {
			t.Errorf("%s:\ngot  %q\nwant %q", tc.payload, got, want)
		}
	}
	for n, end := range map[int]string{maxReason: "x", maxReason + 1: "…"} {
		because := func(s *core.Step) { s.ConfirmText = strings.Repeat("x", n) }
		if got := asked(t, false, `{}`, because); got != "Pay a bill\nReason given: "+strings.Repeat("x", maxReason-1)+end {
			t.Errorf("a reason of %d letters: unexpected question %q", n, got)
		}
	}
	second := step("pay", `{"amount":3}`)
	first := step("pay", `{"amount":2}`, func(s *core.Step) { s.Fallback = &second })
	wantFallbacks := "Pay a bill\nAmount: 1\nIf that fails: Pay a bill\nAmount: 2\nIf that fails: Pay a bill\nAmount: 3\nReason given: now"
	if got := asked(t, false, `{"amount":1}`, func(s *core.Step) { s.Fallback, s.ConfirmText = &first, "now" }); got != wantFallbacks {
		t.Errorf("with fallbacks: got %q, want %q", got, wantFallbacks)
	}
	reason := func(s *core.Step) { s.ConfirmText = "Do you want\na cookie?\u202e " + long }
	if got := asked(t, false, `{"amount":500}`, reason); !strings.HasPrefix(got, "Pay a bill\nAmount: 500\nReason given: \"Do you want a cookie?\\u202e xxx") || len(got) > MaxQuestion {
		t.Errorf("unexpected question %q", got)
	}
}

// TestQuestionsThatCannotBeShown: a question that is too long for a message is attached where
// possible, and otherwise the step is refused.
func TestQuestionsThatCannotBeShown(t *testing.T) {
	for _, tc := range []struct {
		payload           string
		attached, message bool
	}{
		{`{"to":"` + strings.Repeat("x", MaxQuestion-len("Pay a bill\nto: ")) + `"}`, true, true},
		{`{"to":"` + strings.Repeat("x", MaxQuestion-len("Pay a bill\nto: ")+1) + `"}`, true, false},
		{`{"to":"` + strings.Repeat("x", maxAttached-len("Pay a bill\nto: ")) + `"}`, true, false},
		{`{"to":"` + strings.Repeat("x", maxAttached-len("Pay a bill\nto: ")+1) + `"}`, false, false},
		{`{"to":"Ann","private_thought":"and more"}`, false, false},
		{`{"body":{"x_private_thought":"and more"}}`, false, false},
	} {
		if got := asked(t, false, tc.payload) != ""; got != tc.message {
			t.Errorf("%.60s: asked in a message: got %v, want %v", tc.payload, got, tc.message)
		}
		if got := asked(t, true, tc.payload) != ""; got != tc.attached {
			t.Errorf("%.60s: asked with a file: got %v, want %v", tc.payload, got, tc.attached)
		}
	}
}

// TestThoughtsStayOutOfQuestions: a question leaves out private thoughts that stay within the bot.
// Thoughts that an action would send prevent the question.
func TestThoughtsStayOutOfQuestions(t *testing.T) {
	w := &world{}
	write := w.act("write", func(a *core.Action) {
		a.Schema = json.RawMessage(`{"type":"object","properties":{"private_thought":{"type":"string"},"text":{"type":"string"}}}`)
	})
	send := w.act("send", func(a *core.Action) { a.Schema, a.Effects = write.Schema, core.EffectRequests })
	s := w.catalogue(t, write, send)
	d, _ := s.Resolve("write")
	st := step("write", `{"text":"hi","private_thought":"hm"}`)
	if got, whole := (&Snapshot{}).question(d, &st, ""); got != "Do write\ntext: hi" || !whole {
		t.Errorf("unexpected question %q, complete: %v", got, whole)
	}
	if d, _ = s.Resolve("send"); d == nil {
		t.Fatal("the action send is missing")
	}
	if got, whole := (&Snapshot{}).question(d, &st, ""); whole {
		t.Errorf("a question hides a thought that would be sent: %q", got)
	}
}

func FuzzQuestion(f *testing.F) {
	f.Add("a\u202eb", "x")
	f.Add("\x00\n\u200d", `\u202e`)
	f.Fuzz(func(t *testing.T, one, other string) {
		invisible := func(r rune) bool { return unicode.Is(unicode.Cf, r) || unicode.IsControl(r) }
		if got := shown(one); strings.ContainsFunc(got, invisible) {
			t.Errorf("%q is shown ambiguously as %q", one, got)
		}
		if one, other = strings.ToValidUTF8(one, ""), strings.ToValidUTF8(other, ""); one != other && shown(one) == shown(other) {
			t.Errorf("%q and %q are both shown as %q", one, other, shown(one))
		}
	})
}

// TestSummary: the summary of a step is in plain words, with readable times and without default
// values.
func TestSummary(t *testing.T) {
	w := &world{}
	s := w.catalogue(t, w.act("keep", func(a *core.Action) {
		a.Schema = json.RawMessage(`{"type":"object","title":"Remember something","properties":{"text":{"type":"string","title":"what"},` +
			`"about":{"type":"array","items":{"type":"string"}},"importance":{"type":"integer","default":3},"at":{"type":"string"},"tags":{"type":"array"}}}`)
	}))
	now := time.Date(2026, 11, 27, 20, 0, 0, 0, time.FixedZone("CET", 3600))
	for _, tc := range []struct{ payload, want string }{
		{`{"text":"Jay likes figs","about":["me","Ann"],"importance":3,"tags":[],"at":null}`, "about: me, Ann; what: Jay likes figs"},
		{`{"importance":8,"at":"2026-11-27T20:32:57Z"}`, "at: 21:32 CET; importance: 8"},
		{`{"at":"2026-12-01T20:32:57Z","about":["\u202ex"],"n":{"a_b":[1,true]}}`, `about: "\u202ex"; at: 1 Dec 21:32 CET; n: a b: 1, true`},
	} {
		d, _ := s.Resolve("keep")
		got := s.summary(d, &core.Step{Type: "keep", Payload: json.RawMessage(tc.payload)}, now)
		if want := "Remember something; " + tc.want; got != want {
			t.Errorf("%s: got %q, want %q", tc.payload, got, want)
		}
	}
}
