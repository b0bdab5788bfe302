package commands

import (
	"context"
	"encoding/json"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"synthbot/admin"
	"synthbot/core"
	"synthbot/core/llm"
	"synthbot/core/watch"
)

// TestDashboard checks that the dashboard uses only metrics and labels that exist, and shows every metric of
// the bot.
func TestDashboard(t *testing.T) {
	raw, err := os.ReadFile("../../../docs/grafana.json")
	if err != nil {
		t.Fatal(err)
	}
	var dashboard struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
	}
	if err := json.Unmarshal(raw, &dashboard); err != nil {
		t.Fatal(err)
	}
	served := metricsServed(t)
	asked := make(map[string]bool)
	for _, p := range dashboard.Panels {
		if len(p.Targets) == 0 {
			t.Errorf("panel %q has no query", p.Title)
		}
		for _, target := range p.Targets {
			for _, name := range regexp.MustCompile(`\b(?:synthbot|go|process)_[a-z_]+`).FindAllString(target.Expr, -1) {
				asked[name] = true
				if !strings.Contains(served, "\n"+name+"{") && !strings.Contains(served, "\n"+name+" ") {
					t.Errorf("panel %q uses the unknown metric %s", p.Title, name)
				}
			}
			for _, by := range regexp.MustCompile(`by \(([a-z, ]+)\)`).FindAllStringSubmatch(target.Expr, -1) {
				for label := range strings.SplitSeq(by[1], ", ") {
					if !strings.Contains(served, label+`="`) {
						t.Errorf("panel %q uses the unknown label %s", p.Title, label)
					}
				}
			}
		}
	}
	for _, m := range regexp.MustCompile(`# TYPE (synthbot_\w+) (\w+)`).FindAllStringSubmatch(served, -1) {
		forms := []string{m[1], m[1] + "_bucket", m[1] + "_sum"}
		if !slices.ContainsFunc(forms, func(name string) bool { return asked[name] }) {
			t.Errorf("no panel shows %s", m[1])
		}
	}
}

// metricsServed returns the metrics of a bot with one event of each kind.
func metricsServed(t *testing.T) string {
	t.Helper()
	m := admin.NewMetrics()
	place := core.MustPath("console/main")
	trace := &watch.Trace{Took: time.Second, Asks: []watch.Ask{{Engine: "home", Took: time.Second, Faults: []string{"x"}}, {Err: "x"}}}
	for _, e := range []watch.TurnEnd{{Answered: true, Intent: "query", Confidence: 0.5, Trace: trace}, {Aside: true}, {}} {
		e.Turn = core.TurnID{Path: place, Seq: 1}
		m.Observe(e)
	}
	m.Used("home", llm.Usage{In: 1, Out: 1})
	m.ModelFailed("home", llm.ErrorRetryLater)
	fine := func(context.Context) error { return nil }
	w := httptest.NewRecorder()
	m.Handler(fine, fine).ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	return w.Body.String()
}
