package driver

import (
	"context"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
)

// TestQueueKeepsOrder: waiting callers enter by priority, then in the order of their calls. Those whose
// context ended do not enter.
func TestQueueKeepsOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l Queue[string]
		leave, err := l.Enter(t.Context(), "c", 0)
		if err != nil {
			t.Fatal(err)
		}
		var mu sync.Mutex
		var order []string
		wait := func(name string, priority int, ctx context.Context) {
			go func() {
				leave, err := l.Enter(ctx, "c", priority)
				if err != nil {
					return
				}
				mu.Lock()
				order = append(order, name)
				mu.Unlock()
				leave()
			}()
			synctest.Wait()
		}
		gone, cancel := context.WithCancel(t.Context())
		wait("low", -1, t.Context())
		wait("one", 0, t.Context())
		wait("gone", 1, gone)
		wait("two", 0, t.Context())
		wait("high", 1, t.Context())
		cancel()
		synctest.Wait()
		leave()
		synctest.Wait()
		if got := strings.Join(order, " "); got != "high one two low" {
			t.Errorf("got order %q, want high one two low", got)
		}
		if l.Busy("c") {
			t.Error("the channel is still busy")
		}
	})
}
