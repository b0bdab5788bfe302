package coretest

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"synthbot/core"
)

func logCases() map[string]func(*testing.T, *testedStore) {
	return map[string]func(*testing.T, *testedStore){
		"numbers rise within a place": func(t *testing.T, s *testedStore) {
			got := s.append(said(kitchen, "a", "1"), said(garden, "a", "2"), said(kitchen, "b", "3"))
			same(t, "numbers", seqs(got), []uint64{1, 1, 2})
			got = s.append(said(kitchen, "c", "4"))
			same(t, "next number", seqs(got), []uint64{3})
			same(t, "kitchen", words(s.last(kitchen, 10)), []string{"1", "3", "4"})
			same(t, "garden", words(s.last(garden, 10)), []string{"2"})
		},
		"an id is taken once in its place": func(t *testing.T, s *testedStore) {
			s.append(said(kitchen, "a", "first"), said(kitchen, "b", "second"))
			b := &core.Batch{Append: []core.Entry{
				asked(kitchen, "c", "third"), asked(kitchen, "a", "first again"), said(kitchen, "c", "third again"), said(garden, "a", "elsewhere"),
			}}
			s.commit(b)
			same(t, "known", b.Known, []bool{false, true, true, false})
			same(t, "numbers", seqs(b.Append), []uint64{3, 1, 3, 1})
			same(t, "kitchen", words(s.last(kitchen, 10)), []string{"first", "second", "third"})
			same(t, "due", words(s.due(kitchen)), []string{"third"})
		},
		"long ids that begin alike are different": func(t *testing.T, s *testedStore) {
			long := strings.Repeat("x", 1000)
			b := &core.Batch{Append: []core.Entry{said(kitchen, long+"1", "1"), said(kitchen, long+"2", "2"), said(kitchen, long+"1", "3")}}
			s.commit(b)
			same(t, "known", b.Known, []bool{false, false, true})
			same(t, "entry", s.entry(kitchen, long+"2").Message.Text, "2")
		},
		"without an id nothing is a repetition": func(t *testing.T, s *testedStore) {
			s.append(said(kitchen, "", "one"), said(kitchen, "", "two"))
			same(t, "kitchen", words(s.last(kitchen, 10)), []string{"one", "two"})
			s.view(func(v core.View) error {
				if _, ok, err := v.Entry(kitchen, ""); ok || err != nil {
					t.Errorf("Entry without an id: %t, %v", ok, err)
				}
				return nil
			})
		},
		"every field comes back": everyField,
		"texts come back as they are": func(t *testing.T, s *testedStore) {
			want := []string{"", " ", "a\x00b", "no utf-8 \xff\xfe", "line\nline\r\n", "</script>&", strings.Repeat("long ", 1<<18), "👩‍👩‍👧"}
			for i, text := range want {
				s.append(said(kitchen, fmt.Sprint(i), text))
			}
			s.reopen()
			same(t, "texts", words(s.last(kitchen, 100)), want)
		},
		"all of it is there after opening again": func(t *testing.T, s *testedStore) {
			s.append(asked(kitchen, "a", "one"), asked(kitchen, "b", "two"))
			s.answer(kitchen, 1)
			s.reopen()
			same(t, "due", words(s.due(kitchen)), []string{"two"})
			b := &core.Batch{Append: []core.Entry{said(kitchen, "a", "one"), said(kitchen, "c", "three")}}
			s.commit(b)
			same(t, "numbers", seqs(b.Append), []uint64{1, 3})
			same(t, "head", s.head(kitchen), core.Head{Path: kitchen, Last: 3, Count: 3, Answered: 1, Time: morning})
		},
		"many writers at once": manyWriters,
		"what cannot be an entry is refused": func(t *testing.T, s *testedStore) {
			for _, kind := range []core.Kind{"", core.KindEdit, core.KindDeletion, core.KindReaction, core.KindMigration} {
				bad := said(kitchen, "b", "bad")
				bad.Kind = kind
				s.refused(string(kind), &core.Batch{Append: []core.Entry{said(kitchen, "a", "good"), bad}})
			}
			s.refused("no place", &core.Batch{Append: []core.Entry{said(kitchen, "a", "good"), said(core.Path{}, "b", "bad")}})
			message := core.Event{Kind: core.KindMessage, Message: core.Message{Path: kitchen, ID: "b"}}
			s.refused("no change", &core.Batch{Append: []core.Entry{said(kitchen, "a", "good")}, Change: []core.Event{message}})
			s.refused("no turn", &core.Batch{Append: []core.Entry{said(kitchen, "a", "good")}, Journal: []core.Record{{Progress: core.ProgressDone}}})
			s.refused("no mark", &core.Batch{Append: []core.Entry{said(kitchen, "a", "good")}, Answered: []core.TurnID{{Seq: 1}}})
		},
	}
}

func everyField(t *testing.T, s *testedStore) {
	want := filled[core.Entry](t)
	want.Message.Path, want.Message.Seq, want.Kind, want.Message.ID = kitchen, 1, core.KindCommand, "a"
	want.Reactions = nil // counted, never given
	s.append(want)
	s.reopen()
	same(t, "last", s.last(kitchen, 1), []core.Entry{want})
	same(t, "due", s.due(kitchen), []core.Entry{want})
	same(t, "entry", s.entry(kitchen, "a"), want)
}

func manyWriters(t *testing.T, s *testedStore) {
	const writers, each = 8, 25
	var all sync.WaitGroup
	for w := range writers {
		all.Go(func() {
			for i := range each {
				own := core.MustPath(fmt.Sprintf("house/%d", w))
				b := &core.Batch{Append: []core.Entry{
					said(kitchen, fmt.Sprintf("%d.%d", w, i), "shared"), asked(own, fmt.Sprint(i), "own"),
				}}
				if err := s.Commit(context.Background(), b); err != nil || b.Append[1].Message.Seq != uint64(i+1) {
					t.Errorf("writer %d: number %d of message %d, %v", w, b.Append[1].Message.Seq, i, err)
				}
			}
		})
	}
	all.Wait()
	got := s.last(kitchen, writers*each+1)
	same(t, "entries", len(got), writers*each)
	for i, e := range got {
		if e.Message.Seq != uint64(i+1) {
			t.Fatalf("entry %d has number %d", i, e.Message.Seq)
		}
	}
	same(t, "waiting", len(s.waiting()), writers)
}

func callCases() map[string]func(*testing.T, *testedStore) {
	return map[string]func(*testing.T, *testedStore){
		"an empty batch is nothing": func(t *testing.T, s *testedStore) {
			s.commit(&core.Batch{})
		},
		"closed is closed": func(t *testing.T, s *testedStore) {
			for range 2 {
				if err := s.Close(); err != nil {
					t.Errorf("Close: %v", err)
				}
			}
			wantError(t, "Commit", s.Commit(context.Background(), &core.Batch{Append: []core.Entry{said(kitchen, "a", "late")}}), core.ErrClosed)
			wantError(t, "View", s.View(context.Background(), func(core.View) error { t.Error("a view of a closed store"); return nil }), core.ErrClosed)
			s.Store = s.open(t, s.dir)
			same(t, "kitchen", len(s.last(kitchen, 1)), 0)
		},
		"an ended context writes nothing": func(t *testing.T, s *testedStore) {
			ctx, end := context.WithCancel(context.Background())
			end()
			wantError(t, "Commit", s.Commit(ctx, &core.Batch{Append: []core.Entry{said(kitchen, "a", "late")}}), context.Canceled)
			wantError(t, "View", s.View(ctx, func(core.View) error { t.Error("a view after the end"); return nil }), context.Canceled)
			same(t, "kitchen", len(s.last(kitchen, 1)), 0)
		},
		"the function's error is the view's": func(t *testing.T, s *testedStore) {
			want := fmt.Errorf("my own")
			wantError(t, "View", s.View(context.Background(), func(core.View) error { return want }), want)
		},
		"close lets what is being written end": closing,
	}
}

// closing: while the store is being closed, exactly those batches are stored for which Commit returns nil.
func closing(t *testing.T, s *testedStore) {
	const writers = 8
	written := make(chan string, 10000)
	var all sync.WaitGroup
	for w := range writers {
		all.Go(func() {
			for i := 0; ; i++ {
				id := fmt.Sprintf("%d.%d", w, i)
				if s.Commit(context.Background(), &core.Batch{Append: []core.Entry{said(kitchen, id, id)}}) != nil {
					return
				}
				written <- id
			}
		})
	}
	for range 2 * writers {
		<-written
	}
	wantError(t, "Close", s.Close(), nil)
	all.Wait()
	close(written)
	n := 2 * writers
	s.Store = s.open(t, s.dir)
	for id := range written {
		same(t, "entry", s.entry(kitchen, id).Message.Text, id)
		n++
	}
	same(t, "entries", len(s.last(kitchen, 100000)), n)
}

func readCases() map[string]func(*testing.T, *testedStore) {
	return map[string]func(*testing.T, *testedStore){
		"last, after and their bounds": func(t *testing.T, s *testedStore) {
			for i := range 10 {
				s.append(said(kitchen, fmt.Sprint(i), fmt.Sprint(i)), said(garden, fmt.Sprint(i), "x"))
			}
			same(t, "last 3", words(s.last(kitchen, 3)), []string{"7", "8", "9"})
			same(t, "last 100", len(s.last(kitchen, 100)), 10)
			same(t, "last 0", len(s.last(kitchen, 0)), 0)
			same(t, "last -1", len(s.last(kitchen, -1)), 0)
			s.view(func(v core.View) error {
				got, err := v.After(kitchen, 7, 2, nil)
				same(t, "after 7", seqs(got), []uint64{8, 9})
				all, _ := v.After(kitchen, 0, 100, nil)
				same(t, "after 0", len(all), 10)
				none, _ := v.After(kitchen, ^uint64(0), 100, nil)
				same(t, "after the largest", len(none), 0)
				none, _ = v.After(kitchen, 3, 0, nil)
				same(t, "no room", len(none), 0)
				for room := range 5 {
					got, err = v.After(kitchen, 7, 100, slices.Repeat(all[:1], room))
					same(t, "into a slice", seqs(got), []uint64{8, 9, 10})
				}
				return err
			})
		},
		"a place that nobody knows": func(t *testing.T, s *testedStore) {
			same(t, "head", s.head(kitchen), core.Head{Path: kitchen})
			same(t, "last", len(s.last(kitchen, 5)), 0)
			same(t, "due", len(s.due(kitchen)), 0)
			same(t, "waiting", len(s.waiting()), 0)
		},
		"places are listed by path and element": func(t *testing.T, s *testedStore) {
			s.append(said(fence, "1", "x"), said(shed, "1", "x"), said(street, "1", "x"), said(garden, "1", "x"), said(kitchen, "1", "x"))
			same(t, "all", s.places(core.Path{}), []core.Path{garden, shed, fence, kitchen, street})
			same(t, "below the garden", s.places(garden), []core.Path{garden, shed})
			same(t, "below the shed", s.places(shed), []core.Path{shed})
			same(t, "below nothing", len(s.places(core.MustPath("sea"))), 0)
		},
		"recent merges places by time": recent,
		"recent stays within its root": func(t *testing.T, s *testedStore) {
			s.append(at(said(garden, "1", "garden"), 1), at(said(shed, "1", "shed"), 2), at(said(fence, "1", "fence"), 3))
			s.view(func(v core.View) error {
				got, err := v.Recent(garden, 10, nil)
				same(t, "recent", words(got), []string{"garden", "shed"})
				return err
			})
		},
		"a view sees one state": func(t *testing.T, s *testedStore) {
			s.append(said(kitchen, "1", "one"))
			s.view(func(v core.View) error {
				one, err := v.Last(kitchen, 5)
				two, _ := v.Last(kitchen, 5)
				same(t, "twice", two, one)
				return err
			})
		},
		"what was read stays": func(t *testing.T, s *testedStore) {
			s.append(said(kitchen, "1", "the text"))
			got := s.last(kitchen, 1)
			s.change(core.Event{Kind: core.KindEdit, Message: core.Message{Path: kitchen, ID: "1", Text: "edited"}})
			for i := range 100 {
				s.append(said(kitchen, fmt.Sprint("n", i), "more"))
			}
			same(t, "read before", words(got), []string{"the text"})
		},
	}
}

func (s *testedStore) places(root core.Path) (paths []core.Path) {
	s.t.Helper()
	s.view(func(v core.View) error {
		heads, err := v.Places(root)
		for _, h := range heads {
			paths = append(paths, h.Path)
		}
		return err
	})
	return paths
}

func recent(t *testing.T, s *testedStore) {
	for i := range 30 {
		place := []core.Path{kitchen, garden, shed}[i%3]
		s.append(at(said(place, fmt.Sprint(i), fmt.Sprint(i)), time.Duration(i)*time.Second))
	}
	s.append(at(said(street, "1", "old"), -time.Hour))
	s.view(func(v core.View) error {
		house := core.MustPath("house")
		got, err := v.Recent(house, 4, nil)
		same(t, "the last four", words(got), []string{"26", "27", "28", "29"})
		got, _ = v.Recent(house, 4, func(p core.Path) bool { return p != shed })
		same(t, "without the shed", words(got), []string{"24", "25", "27", "28"})
		got, _ = v.Recent(core.Path{}, 100, nil)
		same(t, "everything", len(got), 31)
		same(t, "the oldest first", got[0].Message.Text, "old")
		got, _ = v.Recent(core.Path{}, 2, nil)
		same(t, "fewer than places", words(got), []string{"28", "29"})
		got, _ = v.Recent(house, 0, nil)
		same(t, "none", len(got), 0)
		got, _ = v.Recent(house, 5, func(core.Path) bool { return false })
		same(t, "nothing kept", len(got), 0)
		return err
	})
}
