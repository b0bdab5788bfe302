package recon

import (
	"fmt"
	"testing"
)

// TestMemo: a text is examined once, unless too many others came in between.
func TestMemo(t *testing.T) {
	looked := 0
	m := newMemo(func(text string) int { looked++; return len(text) })
	for range 3 {
		if got := m.in("some words"); got != 10 || looked != 1 {
			t.Errorf("unexpected: result %d, examined %d times", got, looked)
		}
	}
	for i := range 2 * maxFound {
		m.in(fmt.Sprint(i))
	}
	if m.in("some words"); looked != 2+2*maxFound {
		t.Errorf("unexpected: examined %d times", looked)
	}
}
