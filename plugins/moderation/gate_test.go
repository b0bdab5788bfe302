package moderation

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"synthbot/core"
	"synthbot/core/command"
	"synthbot/core/gate"
	"synthbot/plugins/filter"
	"synthbot/plugins/limits"
	"synthbot/plugins/plugintest"
)

// TestAllowedWhileBlocked checks that a blocked user can use three commands in private, five times a day, and
// that a repeated judgement does not count.
func TestAllowedWhileBlocked(t *testing.T) {
	for text, want := range map[string]bool{
		"/appeal": true, "/appeal please": true, "/Appeal@AriaBot please": true, "/mydata": true, "/forgetme yes": true, "/appeal\nplease": true,
		"/appeals": false, "appeal": false, " /appeal": false, "/help /appeal": false, "//appeal": false, "/": false, "": false, "/forgetme_": false,
	} {
		if allowedWhileBlocked(text) != want {
			t.Errorf("%q: got %v", text, !want)
		}
	}
	s := plugintest.NewHarness(t, "moderation")
	p := made(t, s, Config{})
	if _, err := p.holdUser(t.Context(), boss(p), blocked, holdRequest{name: jayPath.String()}); err != nil {
		t.Fatal(err)
	}
	passes := func(m *core.Message, again bool) bool { return p.Judge(m, again).Admission == gate.Quiet }
	for day := range 2 {
		for i := range 7 {
			for range 3 {
				if !passes(says("jay", "jay", "/forgetme yes"), true) {
					t.Errorf("day %d, command %d: the second judgement differs", day, i)
				}
			}
			if got := passes(says("jay", "jay", "/forgetme yes"), false); got != (i < commandsDaily) {
				t.Errorf("day %d, command %d: got %v", day, i, got)
			}
			if passes(says("1", "jay", "/appeal"), false) || passes(says("jay", "jay", "let me in"), false) {
				t.Error("more than five commands are allowed")
			}
		}
		s.Advance(24 * time.Hour)
	}
}

// TestAtOnce lets users write, get blocked, forgotten and unblocked concurrently. In the end no block remains.
// Run it with -race.
func TestAtOnce(t *testing.T) {
	s := plugintest.NewHarness(t, "moderation")
	three, five := limits.Rate{Count: 3, Per: time.Hour}, limits.Rate{Count: 5, Per: time.Minute}
	p := gated(t, s, limits.Config{Private: three, Group: three, Place: five, Repeat: 2}, filter.Rule{Name: "r", Words: []string{"bad"}})
	ctx, cancel := context.WithCancel(t.Context())
	var back, all sync.WaitGroup
	back.Go(func() {
		if err := p.Run(ctx); err != nil {
			t.Error(err)
		}
	})
	for n := range 4 {
		id := fmt.Sprintf("p%d", n)
		path := core.MustPath("room/@user/" + id)
		all.Go(func() {
			for i := range 300 {
				p.Judge(says(fmt.Sprint(i%3), id, []string{"good", "bad", "/help", ""}[i%4]), i%5 == 0)
				p.Judge(says(id, id, "/appeal"), false)
			}
		})
		all.Go(func() {
			for range 5 {
				if _, err := p.holdUser(t.Context(), boss(p), blocked, holdRequest{name: path.String()}); err != nil {
					t.Error(err)
				}
				if n%2 == 0 {
					if err := errors.Join(p.Erase(t.Context(), path), s.DB.Forget(t.Context(), path)); err != nil {
						t.Error(err)
					}
				}
				if _, err := call(t, p, "blocked", command.Call{Path: core.MustPath("room/boss"), Private: true, Author: core.Author{ID: "boss", Rank: core.RankAdmin}}); err != nil {
					t.Error(err)
				}
				if _, _, err := p.release(t.Context(), boss(p), blocked, path.String()); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	cancel()
	back.Wait()
	for _, q := range []*Plugin{p, made(t, s, Config{})} {
		q.Judge(says("1", "ann", "hi"), false)
		if list := q.records.active(blocked, func(*hold) bool { return true }); len(list) != 0 {
			t.Errorf("blocks remain: %v", list)
		}
	}
}

// TestWritten checks that Run writes all waiting events, also those that could not be written at first, but not
// those that exceeded the queue.
func TestWritten(t *testing.T) {
	s := plugintest.NewHarness(t, "moderation")
	full := &fullDisk{Items: s.Items, full: true}
	s.Items = full
	p := gated(t, s, limits.Config{Group: limits.Rate{Count: 1, Per: time.Hour}})
	for i := range 2 * maxQueue {
		for range 2 {
			p.Judge(says("1", fmt.Sprint("p", i), "hi"), false)
		}
	}
	if n := len(p.records.queue.items); n != maxQueue {
		t.Fatalf("got %d waiting events", n)
	}
	run(t, p)
	full.full = false
	for tries := 0; tries < 50 && len(p.records.queue.items) > 0; tries++ {
		run(t, p) // a slow disk accepts some of the events each time
	}
	if n := strings.Count(disk(t, s), `"what":"limited"`); n != maxQueue {
		t.Errorf("got %d stored events", n)
	}
	again := gated(t, s, limits.Config{Group: limits.Rate{Count: 1, Per: time.Hour}})
	if v := again.Judge(says("1", "p7", "hi"), false); v != (gate.Verdict{Admission: gate.Quiet}) {
		t.Errorf("the limit was lost: %+v", v)
	}
}

// picky is a store that never stores items of a user.
type picky struct {
	core.Items
	user string
}

func (p picky) Put(ctx context.Context, item core.Item) (uint64, error) {
	if strings.HasSuffix(item.Path.String(), p.user) {
		return 0, fmt.Errorf("%w: too large", core.ErrBadEvent)
	}
	return p.Items.Put(ctx, item)
}

// TestUnstorable: an item that can never be stored does not block those behind it.
func TestUnstorable(t *testing.T) {
	s := plugintest.NewHarness(t, "moderation")
	s.Items = picky{s.Items, "/p0"}
	p := gated(t, s, limits.Config{Group: limits.Rate{Count: 1, Per: time.Hour}})
	for i := range 3 {
		for range 2 {
			p.Judge(says("1", fmt.Sprint("p", i), "hi"), false)
		}
	}
	run(t, p)
	if n := strings.Count(disk(t, s), `"what":"limited"`); n != 2 || len(p.records.queue.items) != 0 {
		t.Errorf("%d are written, %d wait", n, len(p.records.queue.items))
	}
}

// fullDisk is a store whose writes fail for a while.
type fullDisk struct {
	core.Items
	full bool
}

func (f *fullDisk) Put(ctx context.Context, item core.Item) (uint64, error) {
	if f.full {
		return 0, core.ErrFull
	}
	return f.Items.Put(ctx, item)
}

// TestLog checks the limits of the log and of its appeals, for each user and in total.
func TestLog(t *testing.T) {
	var j modLog
	kept := make(map[string]bool)
	id := int64(0)
	add := func(e event) {
		id++
		e.id = formatID(id)
		kept[e.id] = true
		for _, gone := range j.add(e) {
			_, id, _ := strings.Cut(gone.Key, " ")
			if !kept[id] || gone.Value != nil {
				t.Fatalf("%s was removed twice", id)
			}
			delete(kept, id)
		}
	}
	for i := range 3 * maxEvents {
		e := event{What: wasLimited, about: jayPath}
		if i%2 == 0 {
			e.about = core.MustPath(fmt.Sprint("room/@user/", i))
		}
		add(e)
	}
	for i := range maxAppeals + 50 {
		add(event{Text: "please", about: core.MustPath(fmt.Sprint("room/@user/", i%200, "x", i/7))})
		add(event{Text: "please", about: jayPath})
	}
	his, appeals, hisAppeals := 0, 0, 0
	for _, e := range j.events {
		switch {
		case e.isAppeal() && e.about == jayPath:
			appeals++
			hisAppeals++
		case e.isAppeal():
			appeals++
		case e.about == jayPath:
			his++
		}
	}
	if his != maxEventsEach || len(j.events)-appeals > maxEvents || len(kept) != len(j.events) {
		t.Errorf("got %d events of one user, %d in total, %d stored", his, len(j.events), len(kept))
	}
	if hisAppeals != maxAppealsEach || appeals > maxAppeals {
		t.Errorf("got %d appeals of one user, %d in total", hisAppeals, appeals)
	}
}
