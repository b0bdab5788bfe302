package daemon

import (
	"strings"
	"testing"

	"synthbot/core"
	"synthbot/core/watch"
)

// TestWhyTellsWhatThePlanMeant: an admin who asks why is shown what the model said
// of its plan.
func TestWhyTellsWhatThePlanMeant(t *testing.T) {
	sure := 0.9
	e := watch.TurnEnd{Trace: &watch.Trace{Plans: []core.Plan{
		{Intent: "query", Confidence: &sure, Metadata: []byte(`{"reason":"because"}`)}, {Metadata: []byte(`"` + strings.Repeat("x", 5000) + `"`)},
	}}}
	got := explain(&e)
	for _, want := range []string{"- intent: query, confidence 0.9\n", "- metadata: `{\"reason\":\"because\"}`\n"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is not in %q", want, got)
		}
	}
	if len(got) > 1000 {
		t.Errorf("%d bytes", len(got))
	}
}
