package sorting

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestSort: the results equal those of package slices.
func TestSort(t *testing.T) {
	type pair struct{ key, at int }
	for n := range 200 {
		list := make([]pair, n)
		for i := range list {
			list[i] = pair{rand.IntN(20), i}
		}
		want := slices.Clone(list)
		byKey := func(a, b pair) int { return cmp.Compare(a.key, b.key) }
		slices.SortStableFunc(want, byKey)
		stable := slices.Clone(list)
		SortStable(stable, byKey)
		if !slices.Equal(stable, want) {
			t.Fatalf("stable: got %v, want %v", stable, want)
		}
		Sort(list, byKey)
		if !slices.IsSortedFunc(list, byKey) {
			t.Fatalf("not sorted: %v", list)
		}
	}
}
