package daemon

import (
	"strings"
	"testing"

	"synthbot/core"
	"synthbot/core/watch"
)

// TestWhyShowsPlan checks that /why shows an admin the steps of a turn, and the model's intent, confidence and
// metadata.
func TestWhyShowsPlan(t *testing.T) {
	sure := 0.9
	e := watch.TurnEnd{Trace: &watch.Trace{Plans: []core.Plan{
		{Intent: "query", Confidence: &sure, Metadata: []byte(`{"reason":"because"}`)}, {Metadata: []byte(`"` + strings.Repeat("x", 5000) + `"`)},
	}}}
	e.Trace.Steps = []watch.Step{
		{Progress: core.ProgressDone, Outcome: core.Outcome{Action: "dice_roll"}},
		{Progress: core.ProgressPending, Outcome: core.Outcome{Action: "transfer"}},
		{Progress: core.ProgressSkipped, Outcome: core.Outcome{Action: "ban", Kind: core.Forbidden, Text: "is not open to who asked"}},
		{Progress: core.ProgressFailed, Outcome: core.Outcome{Action: "web_read", Kind: core.Broken, Text: "no such page"}},
		{Progress: core.ProgressUnknown, Outcome: core.Outcome{Action: "file_send"}},
	}
	got := explain(&e)
	for _, want := range []string{
		"- did: dice_roll\n", "- waits for a yes: transfer\n", "- did not do: ban (forbidden: is not open to who asked)\n",
		"- failed: web_read (broken: no such page)\n", "- may have done: file_send\n",
		"- intent: query, confidence 0.9\n", "- metadata: `{\"reason\":\"because\"}`\n"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is not in %q", want, got)
		}
	}
	if len(got) > 1000 {
		t.Errorf("got %d bytes, want at most 1000", len(got))
	}
}
