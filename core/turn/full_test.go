package turn_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"synthbot/core"
	"synthbot/core/coretest"
	"synthbot/core/turn"
	"synthbot/memory"
)

// cramped is a store that reports a full disk for the batches for which refuses is true.
type cramped struct {
	core.Store
	mu      sync.Mutex
	refuses func(*core.Batch) bool // nil: there is room
	refused atomic.Int32
}

func (c *cramped) fill(refuses func(*core.Batch) bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.refuses = refuses
}

func (c *cramped) Commit(ctx context.Context, b *core.Batch) error {
	c.mu.Lock()
	full := c.refuses != nil && c.refuses(b)
	c.mu.Unlock()
	if full {
		c.refused.Add(1)
		return core.ErrFull
	}
	return c.Store.Commit(ctx, b)
}

// TestFullDiskWhileATurnRuns: however long the disk is full while a turn runs, each answer is sent
// once, the model is asked once, a confirmed action runs once, and no turn is set aside.
func TestFullDiskWhileATurnRuns(t *testing.T) {
	for name, refuses := range map[string]func(*core.Batch) bool{
		"the end does not fit": func(b *core.Batch) bool { return len(b.Answered) > 0 },
		"nothing fits":         func(*core.Batch) bool { return true },
		"large ones do not fit": func(b *core.Batch) bool {
			return len(b.Append) > 0 || len(b.Journal) > 1
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { checkFullDisk(t, refuses) })
		})
	}
}

func checkFullDisk(t *testing.T, refuses func(*core.Batch) bool) {
	store := open(t, t.TempDir())
	defer store.Close()
	s := &cramped{Store: store}
	room := coretest.NewRoom("room")
	room.Forgets = true
	room.Fail = func(text string) error { // the disk fills while this is sent
		if text == "two" || text == "paid" {
			s.fill(refuses)
		}
		return nil
	}
	var pays atomic.Int32
	bank := coretest.NewPlugin("bank", core.Action{
		Name: "pay", Brief: "Pay somebody", Permission: core.PermissionEveryone, Confirm: true,
		Do: func(context.Context, core.Call) (core.Result, error) {
			pays.Add(1)
			s.fill(refuses)
			return core.Result{}, nil
		},
	})
	asker := coretest.NewAsker(plan("one\ntwo\nthree"), `{"response":"sure","actions":[{"type":"pay"}]}`)
	b := start(t, s, room, asker, func(o *turn.Options) {
		o.Catalogue = catalogueOf(t, room, bank)
		o.Places.Chooser = func(core.Path) core.Chooser { return room }
	})
	full := func() {
		t.Helper()
		time.Sleep(time.Hour)
		if s.refused.Swap(0) == 0 {
			t.Error("the disk was never full")
		}
		s.fill(nil)
		b.Retry()
		b.quiet()
	}
	b.receive(said("1", "jay", "hi"))
	full()
	b.holds("one", "two", "three")
	b.history("hi", "one", "two", "three")
	b.receive(said("2", "jay", "pay Ann"))
	b.quiet()
	for id, choices := range room.Choices() {
		press := said("press", "jay", "")
		press.Kind, press.Target, press.Data = core.KindPress, id, choices[0].Data
		b.receive(press)
	}
	full()
	if n := len(asker.Asked()); n != 2 || pays.Load() != 1 {
		t.Errorf("the model was asked %d times and paid %d times, want 2 and 1", n, pays.Load())
	}
	if texts := room.Texts(); len(texts) != 5 || !strings.HasSuffix(texts[4], "✓ Done.") {
		t.Errorf("the room holds %q, want 5 messages, the outcome last", texts)
	}
	b.stop()
	for {
		select {
		case e := <-room.Ends():
			if e.Aside {
				t.Errorf("a turn was set aside: %+v", e)
			}
			continue
		default:
		}
		break
	}
}

// TestFullDiskWhileSomebodyIsForgotten: results that could not be written are kept for the next
// attempt of the turn, unless a user of the turn was forgotten meanwhile.
func TestFullDiskWhileSomebodyIsForgotten(t *testing.T) {
	for who, asked := range map[string]int{"ann": 2, "jay": 3} {
		t.Run(who, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { checkForgetWhileFull(t, who, asked) })
		})
	}
}

func checkForgetWhileFull(t *testing.T, who string, asked int) {
	db := open(t, t.TempDir()).(*memory.DB)
	defer db.Close()
	s := &cramped{Store: db}
	room := coretest.NewRoom("room")
	room.Forgets = true
	room.Fail = func(text string) error {
		if text == "two" {
			s.fill(func(*core.Batch) bool { return true })
		}
		return nil
	}
	asker := coretest.NewAsker(plan("one"), plan("two\nthree"), plan("anew"))
	asker.Hold = make(chan struct{})
	b := start(t, s, room, asker)
	b.receive(talk("1", "bob", "Aria, hi"))
	b.thinks(1)
	for n := range 6 { // answered by one turn
		b.receive(talk(fmt.Sprint("more ", n), []string{"bob", "jay"}[n%2], "Aria, and you?"))
	}
	close(asker.Hold)
	time.Sleep(time.Hour)
	if err := db.Forget(t.Context(), core.MustPath("room/@user/"+who)); err != nil {
		t.Fatal(err)
	}
	s.fill(nil)
	time.Sleep(time.Minute)
	b.quiet()
	if n := len(asker.Asked()); n != asked {
		t.Errorf("the model was asked %d times, want %d", n, asked)
	}
	if asked == 2 {
		b.holds("one", "two", "three")
	}
	b.stop()
}

// TestReallyFullDisk fills a small file system while turns run: the turns end, each answer is sent
// once, and nothing is lost. It is skipped without the right to mount one.
func TestReallyFullDisk(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=12m"); err != nil {
		t.Skip("cannot mount a small file system: ", err)
	}
	t.Cleanup(func() { syscall.Unmount(dir, syscall.MNT_DETACH) })
	ballast, filled := filepath.Join(dir, "ballast"), make(chan struct{})
	fillUp := func() {
		defer close(filled)
		f, err := os.Create(ballast)
		for block := make([]byte, 4096); err == nil; {
			_, err = f.Write(block)
		}
		f.Close()
	}
	makeRoom := sync.OnceFunc(func() {
		<-filled
		os.Remove(ballast)
	})
	s := open(t, filepath.Join(dir, "data"))
	defer s.Close()
	platform := coretest.NewRoom("room")
	platform.Forgets = true
	var sends atomic.Int32
	platform.Fail = func(string) error {
		if sends.Add(1) == 10 {
			fillUp()
		}
		return nil
	}
	const messages = 40
	answer := strings.Repeat("An answer of some length. ", 400)
	asker := coretest.NewAsker(plan(answer))
	b := start(t, s, platform, asker)
	for n := range messages {
		e := said(fmt.Sprint(n), "jay", strings.Repeat("many words ", 500))
		e.Message.Path = core.MustPath(fmt.Sprintf("room/%d", n))
		for b.Receive(t.Context(), e) != nil { // the platform delivers it again
			makeRoom()
			time.Sleep(10 * time.Millisecond)
		}
	}
	makeRoom()
	for end := time.Now().Add(coretest.Patience); len(platform.Sent()) < messages && time.Now().Before(end); {
		time.Sleep(50 * time.Millisecond) // places retry by themselves
	}
	b.quiet()
	b.stop()
	places := make(map[core.Path]int)
	for _, sent := range platform.Sent() {
		places[sent.Path]++
	}
	for n := range messages {
		if got := places[core.MustPath(fmt.Sprintf("room/%d", n))]; got != 1 {
			t.Errorf("message %d was answered %d times, want once", n, got)
		}
	}
	if n := len(asker.Asked()); n != messages {
		t.Errorf("the model was asked %d times, want %d", n, messages)
	}
}

// TestModelWaitsForTheDisk: an action's output is on disk before the model gets it.
func TestModelWaitsForTheDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := open(t, t.TempDir())
		defer store.Close()
		s := &cramped{Store: store}
		room := coretest.NewRoom("room")
		looks := 0
		eye := coretest.NewPlugin("eye", core.Action{Name: "look", Permission: core.PermissionEveryone, Confirm: true, Do: func(context.Context, core.Call) (core.Result, error) {
			looks++
			s.fill(func(*core.Batch) bool { return true })
			return core.Result{Output: []byte(`"a cat"`)}, nil
		}}, core.Action{Name: "glance", Permission: core.PermissionEveryone, Do: func(context.Context, core.Call) (core.Result, error) {
			looks++
			s.fill(func(*core.Batch) bool { return true })
			return core.Result{Output: []byte(`"a dog"`)}, nil
		}})
		asker := coretest.NewAsker(`{"actions":[{"type":"glance"}]}`, plan("A dog."), `{"actions":[{"type":"look"}]}`, plan("A cat."))
		b := start(t, s, room, asker, func(o *turn.Options) {
			o.Catalogue, o.Places.Chooser = catalogueOf(t, room, eye), func(core.Path) core.Chooser { return room }
		})
		defer b.stop()
		full := func(asked int) {
			t.Helper()
			time.Sleep(time.Hour)
			if n := len(asker.Asked()); n != asked {
				t.Errorf("the model was asked %d times while nothing could be written, want %d", n, asked)
			}
			s.fill(nil)
			time.Sleep(time.Minute)
		}
		b.receive(said("1", "jay", "glance"))
		full(1)
		b.ended(1)
		b.receive(said("2", "jay", "look"))
		b.ended(1)
		b.receive(b.press("p", "jay", "Confirm"))
		full(3)
		b.ended(1)
		if texts := strings.Join(room.Texts(), "|"); looks != 2 || !strings.HasPrefix(texts, "A dog.|") || !strings.HasSuffix(texts, "|A cat.") {
			t.Errorf("the actions ran %d times and the room holds %q, want 2 and both answers", looks, texts)
		}
	})
}

// TestCommandWaitsForTheDisk: a command that must not run twice waits until its start is on disk.
func TestCommandWaitsForTheDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := open(t, t.TempDir())
		defer store.Close()
		s := &cramped{Store: store}
		var calls atomic.Int32
		b := start(t, s, coretest.NewRoom("room"), coretest.NewAsker(), func(o *turn.Options) {
			o.Plugins.Commands = registry(t, map[string]commandFunc{"count": func(context.Context, call) (string, error) { calls.Add(1); return "one", nil }})
		})
		defer b.stop()
		s.fill(func(b *core.Batch) bool {
			return slices.ContainsFunc(b.Journal, func(r core.Record) bool { return r.Key.Round != 0 })
		})
		b.receive(called("1", "jay", "count"))
		time.Sleep(time.Hour)
		if calls.Load() != 0 || s.refused.Load() == 0 {
			t.Errorf("called %d times with %d refused commits, want no call and at least one refusal", calls.Load(), s.refused.Load())
		}
		s.fill(nil)
		time.Sleep(time.Minute)
		b.ended(1)
		b.holds("one")
	})
}

// TestFullDiskEndsWhatHasBegun: all commits of a turn that has begun may use the space that is
// reserved for finishing.
func TestFullDiskEndsWhatHasBegun(t *testing.T) {
	store := open(t, t.TempDir())
	t.Cleanup(func() { store.Close() })
	s := &cramped{Store: store}
	begins := func(b *core.Batch) bool { // receipts and beginnings of turns
		opening := func(r core.Record) bool { return r.Key.Round == 0 && len(b.Answered)+len(b.Settled) == 0 }
		return len(b.Journal) == 0 || slices.ContainsFunc(b.Journal, opening)
	}
	s.fill(func(b *core.Batch) bool { return !b.Finishing && !begins(b) })
	room := coretest.NewRoom("room")
	bank := coretest.NewPlugin("bank", core.Action{Name: "pay", Brief: "Pay somebody", Permission: core.PermissionEveryone, Confirm: true,
		Do: func(context.Context, core.Call) (core.Result, error) {
			return core.Result{Output: []byte(`"paid"`)}, nil
		}})
	b := start(t, s, room, coretest.NewAsker(pays, plan("Paid.")), func(o *turn.Options) {
		o.Catalogue, o.Places.Chooser = catalogueOf(t, room, bank), func(core.Path) core.Chooser { return room }
	})
	b.receive(said("1", "jay", "pay Ann"))
	b.ended(1)
	b.receive(b.press("p", "jay", "Confirm"))
	b.ended(1)
	if n := s.refused.Load(); n > 0 {
		t.Errorf("%d commits of turns that had begun were refused, want none", n)
	}
}
