package recon

import (
	"fmt"
	"testing"
)

// TestMemo: a text is looked at once, as long as there are not too many others.
func TestMemo(t *testing.T) {
	looked := 0
	m := newMemo(func(text string) int { looked++; return len(text) })
	for range 3 {
		if got := m.in("some words"); got != 10 || looked != 1 {
			t.Errorf("%d, looked %d times", got, looked)
		}
	}
	for i := range 2 * maxFound {
		m.in(fmt.Sprint(i))
	}
	if m.in("some words"); looked != 2+2*maxFound {
		t.Errorf("looked %d times", looked)
	}
}
