package knowledge

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"synthbot/core"
	"synthbot/core/action"
	"synthbot/core/epochs"
	"synthbot/core/passage"
)

// waitingIndex has passages without vectors, and gets one vector with each call.
type waitingIndex struct {
	passage.Index
	left, stuck int
	failed      error
}

func (x *waitingIndex) Waiting(context.Context) (n int, failed, err error) {
	x.left = max(x.left-1, x.stuck)
	return x.left, x.failed, nil
}

// TestAwaitVectors checks that the number of passages without vectors is printed until it is zero or stays the
// same.
func TestAwaitVectors(t *testing.T) {
	for stuck, want := range map[int]string{0: "99 passages wait for vectors, 79 ", 90: "90 passages have no vectors yet"} {
		synctest.Test(t, func(t *testing.T) {
			p := &Plugin{host: core.Host{Passages: &waitingIndex{left: 100, stuck: stuck}}}
			var lines []string
			began := time.Now()
			if err := p.AwaitVectors(t.Context(), func(line string) { lines = append(lines, line) }); err != nil {
				t.Error(err)
			}
			if got := strings.Join(lines, ", "); !strings.Contains(got, want) || time.Since(began) > 2*vectorWait {
				t.Errorf("after %v: got %s", time.Since(began), got)
			}
		})
	}
}

// TestVectorErrors checks that the error of an engine for vectors is shown while passages wait, and at the end.
func TestVectorErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &Plugin{host: core.Host{Passages: &waitingIndex{left: 1, stuck: 1, failed: errors.New("connection\nrefused")}}}
		var lines []string
		if err := p.AwaitVectors(t.Context(), func(line string) { lines = append(lines, line) }); err != nil {
			t.Error(err)
		}
		last := "1 passages have no vectors yet; the bot makes them when it runs: connection refused"
		if lines[0] != "1 passages wait for vectors: connection refused" || lines[len(lines)-1] != last {
			t.Errorf("got %q", lines)
		}
	})
}

// TestOffers checks that a preview does not change the offers of a running turn, that a text of citation marks
// only is not sent, and that marks are hidden while an answer is streamed.
func TestOffers(t *testing.T) {
	p := made(t, Config{Sources: []Source{{Name: "handbook", Path: "testdata/handbook"}}})
	synced(t, p)
	room := core.MustPath("room/1")
	inject := func(ctx func() core.TurnID, text string) json.RawMessage {
		t.Helper()
		c := t.Context()
		if ctx != nil {
			c = epochs.WithTurn(c, ctx(), 0)
		}
		value, err := p.Inject(c, core.Scene{Path: room, Text: text})
		if err != nil {
			t.Fatal(err)
		}
		return value
	}
	turn := func() core.TurnID { return core.TurnID{Path: room, Seq: 1} }
	if v := inject(turn, "How long does a refund take if a course is cancelled?"); !strings.Contains(string(v), "#refunds") {
		t.Fatalf("offers: got %s", v)
	}
	if v := inject(nil, "Which bin is for sawdust?"); strings.Contains(string(v), "#refunds") {
		t.Errorf("preview: got %s", v)
	}
	said := func(texts ...string) (all []string) {
		var plan core.Plan
		for _, text := range texts {
			plan.Steps = append(plan.Steps, core.Step{Type: "message_room", Payload: core.JSON(map[string]string{"text": text})})
		}
		for _, s := range p.Edit(action.Requester{Path: room}, plan).Steps {
			var payload struct{ Text string }
			if err := json.Unmarshal(s.Payload, &payload); err != nil {
				t.Fatal(err)
			}
			all = append(all, payload.Text)
		}
		return all
	}
	const cited = "Ten days (faq.md, Refunds)."
	if got := said("Ten days [k1].", " [k77]", "[k8, k9] [k10]"); len(got) != 1 || got[0] != cited {
		t.Errorf("sent: got %q", got)
	}
	code := "Take `a[k1]`, or:\n```\nb [k1]\n```\n"
	if got := said(code + "Ten days [k1]."); got[0] != code+cited {
		t.Errorf("sent with code: got %q", got)
	}
	final := "Ten days [k1]."
	for i := range len(final) + 1 {
		shown := p.EditDraft(room, final[:i])
		if !strings.HasPrefix(cited, shown) || strings.Contains(shown, "[") {
			t.Errorf("%q: shown %q", final[:i], shown)
		}
	}
	if got := p.EditDraft(room, "An array[3] and [x"); got != "An array[3] and [x" {
		t.Errorf("text without a mark: got %q", got)
	}
}
