package action

import (
	"strings"
	"testing"

	"synthbot/core"
)

// in makes a step part of a unit.
func in(unit string, s core.Step) core.Step {
	s.Unit = unit
	return s
}

// TestUnitsOfAPlan: the steps of a unit succeed or are undone together, and none of them runs if
// one was refused. Other steps are not affected.
func TestUnitsOfAPlan(t *testing.T) {
	const back = ": it was undone, because another step of its unit failed"
	one, two, fails := step("one", `{}`), step("two", `{}`), step("fails", `{}`)
	last := step("two", `{}`)
	last.Priority = 1
	for name, test := range map[string]struct {
		steps       []core.Step
		done, calls []string
	}{
		"whole": {
			[]core.Step{in("u", last), step("three", `{}`), in("u", one)},
			[]string{"2 three done", "3 one done", "1 two done"}, []string{"three", "one", "two"},
		},
		"torn": {
			[]core.Step{in("u", one), in("u", fails), step("three", `{}`), in("u", two)},
			[]string{"1 one failed" + back, "2 fails failed: no luck", "4 two skipped: another step of its unit failed", "3 three done"},
			[]string{"one", "fails", "undo one", "three"},
		},
		"two units": {
			[]core.Step{in("u", one), in("v", two), in("v", step("three", `{}`)), in("u", fails)},
			[]string{"1 one failed" + back, "4 fails failed: no luck", "2 two done", "3 three done"},
			[]string{"one", "fails", "undo one", "two", "three"},
		},
		"refused": {
			[]core.Step{in("u", one), in("u", step("unknown", `{}`)), two},
			[]string{"1 two done"}, []string{"two"},
		},
		"confirmed": {
			[]core.Step{in("u", one), in("u", step("transfer", `{}`))},
			[]string{"1 one failed" + back, "2 transfer skipped: transfer must be confirmed, which is not possible inside of a unit"},
			[]string{"one", "undo one"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var w world
			s := w.catalogue(t, w.asks("one"), w.asks("two"), w.asks("three"), w.failing("fails"))
			plan, faults := s.Check(core.Plan{Steps: test.steps}, by(core.RankMember))
			if len(faults) > 0 && !strings.Contains(name, "refused") {
				t.Fatal(faults)
			}
			j := newJournal()
			job := j.job(s, by(core.RankMember), plan.Steps...)
			wantLines(t, "done", describe(run(t, NewRuntime(Options{}), job)), test.done)
			wantLines(t, "calls", w.did(), test.calls)
			if err := j.Write(t.Context()); err != nil {
				t.Fatal(err)
			}
			job.Journal = j.crash()
			wantLines(t, "done after a restart", describe(run(t, NewRuntime(Options{}), job)), test.done)
			wantLines(t, "calls after a restart", w.did(), nil)
		})
	}
}
