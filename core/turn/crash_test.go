package turn_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"synthbot/core"
	"synthbot/core/coretest"
	"synthbot/core/turn"
)

// mortal is a store whose process dies at its n-th commit and writes nothing from then on. With
// after, that commit still reaches the disk.
type mortal struct {
	core.Store
	after bool
	die   func()

	mu   sync.Mutex
	left int
}

func (m *mortal) kill() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.left = 0
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

// TestCrashAnywhere kills the bot around each commit, once and twice, and then restarts it. Each
// message is answered and an accepted plan is not asked for again. A part is sent twice only if the
// interface has no idempotency keys and cannot look up its own messages, and then at most once for
// each kill.
func TestCrashAnywhere(t *testing.T) {
	for name, room := range map[string]func(*coretest.Room){
		"knows keys": func(*coretest.Room) {},
		"forgets":    func(r *coretest.Room) { r.Forgets = true },
		"looks":      func(r *coretest.Room) { r.Forgets, r.Looks = true, true },
	} {
		for _, after := range []bool{false, true} {
			for n := 1; n <= 14; n++ {
				for _, second := range []int{0, 5, 3, 6}[:coretest.Sample(4, 1+n%2)] {
					t.Run(fmt.Sprintf("%s/after=%t/commits=%d,%d", name, after, n, second), func(t *testing.T) {
						t.Parallel()
						checkCrash(t, room, after, n, second)
					})
				}
			}
		}
	}
}

// runUntilDeath runs a bot whose process dies at its n-th commit.
func runUntilDeath(t *testing.T, s core.Store, room *coretest.Room, asker *coretest.Asker, n int, after bool) {
	dead := make(chan struct{})
	var once sync.Once
	m := &mortal{Store: s, left: n, after: after, die: func() { once.Do(func() { close(dead) }) }}
	b := start(t, m, room, asker)
	for _, id := range []string{"1", "2"} { // delivers unacknowledged messages again
		if b.Receive(t.Context(), said(id, "author"+id, "hi "+id)) != nil {
			break
		}
	}
	for ends := 0; ends < 2; ends++ {
		select {
		case e := <-room.Ends():
			if e.Turn.Seq == 0 {
				ends--
			}
			continue
		case <-dead:
		case <-time.After(100 * time.Millisecond): // some were answered before
		}
		break
	}
	b.kill()
}

func checkCrash(t *testing.T, kind func(*coretest.Room), after bool, deaths ...int) {
	s := open(t, t.TempDir())
	defer s.Close()
	room := coretest.NewRoom("room")
	kind(room)
	const reply = "one\ntwo\nthree"
	kills := 0
	for _, n := range deaths {
		if n > 0 {
			runUntilDeath(t, s, room, coretest.NewAsker(plan(reply)), n, after)
			kills++
		}
	}
	accepted := acceptedPlans(t, s)
	last := coretest.NewAsker(plan(reply))
	b := start(t, s, room, last)
	for _, id := range []string{"1", "2"} {
		b.receive(said(id, "author"+id, "hi "+id))
	}
	b.quiet()
	b.stop()
	if got := len(last.Asked()); got > 2-accepted {
		t.Errorf("the model was asked %d times after the crash, although %d plans were accepted", got, accepted)
	}
	counts := map[string]int{}
	for _, text := range room.Texts() {
		counts[text]++
	}
	extra := 0
	for _, part := range strings.Fields(reply) {
		if counts[part] < 2 {
			t.Errorf("the room holds %q %d times, want at least twice", part, counts[part])
		}
		extra += counts[part] - 2
	}
	if limit := map[bool]int{true: kills}[room.Forgets && !room.Looks]; extra > limit {
		t.Errorf("%d parts were sent again, want at most %d: %q", extra, limit, room.Texts())
	}
	if log := logged(t, s); len(log) != 8 {
		t.Errorf("the history holds %q, want 8 messages", log)
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
			if slices.ContainsFunc(records, func(r core.Record) bool { return r.Progress == core.ProgressAccepted }) {
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

// logged returns the texts in the history of the private place.
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

// quiet waits until no place has waiting messages.
func (b *bot) quiet() {
	b.t.Helper()
	for {
		var waiting []core.Path
		if err := b.store.View(context.Background(), func(v core.View) (err error) {
			waiting, err = v.Waiting()
			return err
		}); err != nil {
			b.t.Fatal(err)
		}
		if len(waiting) == 0 {
			return
		}
		select {
		case <-b.room.Ends():
		case <-time.After(coretest.Patience):
			b.t.Fatalf("messages still wait in %v", waiting)
		}
	}
}

// TestAnotherInstallation: turn numbers restart with a new database, but idempotency keys differ,
// so that the platform does not take new messages for old ones.
func TestAnotherInstallation(t *testing.T) {
	room := coretest.NewRoom("room")
	for _, text := range []string{"one", "two"} {
		s := open(t, t.TempDir())
		b := start(t, s, room, coretest.NewAsker(plan(text)))
		b.receive(said("1", "jay", "hi"))
		b.ended(1)
		b.stop()
		s.Close()
	}
	if got := room.Texts(); !slices.Equal(got, []string{"one", "two"}) {
		t.Errorf("the room holds %q, want one and two", got)
	}
}

// TestEditedBeforeTheStart: a message that was edited while the bot was down is answered as edited, and one that was
// deleted is not answered. What is received at the start does not wait.
func TestEditedBeforeTheStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, t.TempDir())
		defer s.Close()
		asker := coretest.NewAsker(plan("never"))
		asker.Hold = make(chan struct{})
		b := start(t, s, coretest.NewRoom("room"), asker)
		gone := said("2", "ann", "gone")
		gone.Message.Path = core.MustPath("room/2")
		b.receive(said("1", "jay", "for four"), gone)
		b.thinks(2)
		b.kill()
		asker = coretest.NewAsker(plan("ok"))
		b = start(t, s, b.room, asker, func(o *turn.Options) { o.Places.Settle = time.Second })
		defer b.stop()
		late := said("3", "bob", "and this")
		late.Message.Path = core.MustPath("room/3")
		b.receive(late)
		synctest.Wait()
		if n := len(asker.Asked()); n != 1 {
			t.Errorf("the model was asked %d times at first, want once", n)
		}
		edit := said("1", "jay", "for six")
		edit.Kind, gone.Kind, gone.Target = core.KindEdit, core.KindDeletion, "2"
		b.receive(edit, gone)
		time.Sleep(time.Minute)
		if n := len(asker.Asked()); n != 2 || !strings.Contains(b.input(1), "for six") {
			t.Errorf("the model was asked %d times, want 2; the last input is %s", n, b.input(n-1))
		}
	})
}
