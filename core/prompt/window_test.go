package prompt

import "testing"

func TestWindowMovesInSteps(t *testing.T) {
	for _, n := range []int{1, 7, 20} {
		moves, before := 0, uint64(0)
		for last := uint64(1); last <= 1000; last++ {
			start := WindowStart(last, n)
			held := last - start
			if held > uint64(2*n) || held < uint64(n) && start != 0 {
				t.Fatalf("n %d: the window after %d holds %d entries at %d", n, start, held, last)
			}
			if start != before {
				moves++
			}
			before = start
		}
		if most := 1000 / n; moves > most {
			t.Errorf("n %d: the window moved %d times in 1000 entries, want at most %d", n, moves, most)
		}
	}
	if WindowStart(5, 0) != 5 {
		t.Error("a window of size 0 holds entries")
	}
}
