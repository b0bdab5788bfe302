package turn_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"synthbot/core"
	"synthbot/core/coretest"
)

// mortal is a store whose process dies around its n-th commit: from then on
// nothing is written any more. With after, that commit still reaches the disk.
type mortal struct {
	core.Store
	after bool
	die   func()

	mu   sync.Mutex
	left int
}

var errDead = errors.New("the process is dead")

func (m *mortal) Commit(ctx context.Context, b *core.Batch) error {
	m.mu.Lock()
	m.left--
	left := m.left
	m.mu.Unlock()
	if left > 0 || left == 0 && m.after {
		if err := m.Store.Commit(ctx, b); err != nil || left > 0 {
			return err
		}
	}
	m.die()
	return errDead
}

// TestCrashAnywhere kills the bot around each of its commits and lets a second
// life go on: each message is answered, the model is not asked again for a plan
// that was accepted, and no part is sent twice, or at most one that was in
// flight where the interface knows no idempotency keys.
func TestCrashAnywhere(t *testing.T) {
	for _, forgets := range []bool{false, true} {
		for _, after := range []bool{false, true} {
			for n := 1; n <= 14; n++ {
				t.Run(fmt.Sprintf("forgets=%t/after=%t/commit=%d", forgets, after, n), func(t *testing.T) {
					crash(t, forgets, after, n)
				})
			}
		}
	}
}

func crash(t *testing.T, forgets, after bool, n int) {
	s := open(t, t.TempDir())
	defer s.Close()
	room := coretest.NewRoom("room")
	room.Forgets = forgets
	m := &mortal{Store: s, left: n, after: after}
	first := coretest.NewAsker(plan("one\ntwo\nthree"))
	b := start(t, m, room, first)
	dead := make(chan struct{})
	var once sync.Once
	m.die = func() { once.Do(func() { close(dead) }) }

	var took []string // what was acknowledged
	for _, id := range []string{"1", "2"} {
		if b.Receive(t.Context(), said(id, "author"+id, "hi "+id)) == nil {
			took = append(took, id)
		}
	}
	ends := 0
	for alive := true; alive && ends < 2; {
		select {
		case <-room.Ends():
			ends++
		case <-dead:
			alive = false
		case <-time.After(10 * time.Second):
			t.Fatal("neither dead nor done")
		}
	}
	b.kill()
	accepted := acceptedPlans(t, s)

	second := coretest.NewAsker(plan("one\ntwo\nthree"))
	b = start(t, s, room, second)
	for _, id := range []string{"1", "2"} { // the platform delivers again what was not acknowledged
		b.receive(said(id, "author"+id, "hi "+id))
	}
	waitQuiet(t, s)
	b.stop()
	if got := len(second.Asked()); got > 2-accepted {
		t.Errorf("the model was asked %d times after the crash, though %d plans were accepted (took %q)", got, accepted, took)
	}
	counts := map[string]int{}
	for _, text := range room.Texts() {
		counts[text]++
	}
	extra := 0
	for _, part := range strings.Fields("one two three") {
		if counts[part] < 2 {
			t.Errorf("%q stands %d times in the room, want 2: something was lost", part, counts[part])
		}
		extra += counts[part] - 2
	}
	if limit := map[bool]int{true: 1}[forgets]; extra > limit {
		t.Errorf("%d parts stand twice in the room, at most %d may: %q", extra, limit, room.Texts())
	}
	if log := logged(t, s); len(log) != 8 {
		t.Errorf("the log holds %q", log)
	}
}

// acceptedPlans counts the turns that have a journalled plan.
func acceptedPlans(t *testing.T, s core.Store) (n int) {
	t.Helper()
	err := s.View(context.Background(), func(v core.View) error {
		for seq := uint64(1); seq < 20; seq++ {
			records, err := v.Journal(core.TurnID{Path: place, Seq: seq})
			if err != nil {
				return err
			}
			if slices.ContainsFunc(records, func(r core.Record) bool { return r.Progress == core.Accepted }) {
				n++
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func logged(t *testing.T, s core.Store) (texts []string) {
	t.Helper()
	err := s.View(context.Background(), func(v core.View) error {
		entries, err := v.Last(place, 100)
		for _, e := range entries {
			texts = append(texts, e.Message.Text)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return texts
}

// waitQuiet waits until nothing is due any more.
func waitQuiet(t *testing.T, s core.Store) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end); time.Sleep(time.Millisecond) {
		var waiting []core.Path
		if err := s.View(context.Background(), func(v core.View) (err error) {
			waiting, err = v.Waiting()
			return err
		}); err != nil {
			t.Fatal(err)
		}
		if len(waiting) == 0 {
			return
		}
	}
	t.Fatal("something still waits")
}
