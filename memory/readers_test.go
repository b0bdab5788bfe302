package memory

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"synthbot/core"
	"synthbot/core/epochs"
)

// TestEndedContexts: with an ended context every call returns only the context's error.
func TestEndedContexts(t *testing.T) {
	db := open(t, t.TempDir())
	populated(t, db)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	items := db.Items("bio")
	for name, ask := range map[string]func() error{
		"use":   func() error { _, err := db.Uses(ctx, "2000-01-01", "2100-01-01"); return err },
		"facts": func() error { _, _, err := db.ListFacts(ctx, core.FactPage{N: 1}); return err },
		"a search": func() error {
			_, err := db.Recall(ctx, core.FactQuery{Text: "tea", See: []core.Path{group}, N: 1})
			return err
		},
		"a fact":  func() error { _, err := db.SaveFact(ctx, core.Fact{Text: "tea"}); return err },
		"no fact": func() error { return db.DropFact(ctx, "1", group) },
		"an item": func() error { _, _, err := items.Get(ctx, group, "k"); return err },
		"items":   func() error { _, err := items.List(ctx, group); return err },
		"a new item": func() error {
			_, err := items.Put(ctx, core.Item{Path: group, Key: "x", Value: []byte("1")})
			return err
		},
		"new items":  func() error { return items.PutAll(ctx, core.Item{Path: group, Key: "x", Value: []byte("1")}) },
		"a view":     func() error { return db.View(ctx, func(core.View) error { return nil }) },
		"a batch":    func() error { return db.Commit(ctx, &core.Batch{Append: []core.Entry{message(group, "x", "x")}}) },
		"nothing":    func() error { return db.Commit(ctx, &core.Batch{}) },
		"an export":  func() error { return db.Export(ctx, io.Discard, group) },
		"a check":    func() error { return db.Check(ctx) },
		"pruning":    func() error { return db.Prune(ctx, Config{}) },
		"forgetting": func() error { return db.Forget(ctx, group) },
		"compaction": func() error { return compacted(ctx, db) },
		"an import": func() error {
			_, _, err := db.Import(ctx, strings.NewReader(`{"state":{"path":"chat/group"}}`), nil)
			return err
		},
	} {
		if err := ask(); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: got %v, want context.Canceled", name, err)
		}
	}
}

// TestUseIsChecked: usage needs a valid day and an engine whose name can be a key.
func TestUseIsChecked(t *testing.T) {
	db := open(t, t.TempDir())
	for name, u := range map[string]Use{
		"no day": {Engine: "e"}, "a long day": {Day: "2026-11-200", Engine: "e"}, "an engine": {Day: "2026-11-20", Engine: "a\x00b"},
		"a long engine": {Day: "2026-11-20", Engine: strings.Repeat("e", maxPluginKey+1)},
	} {
		good := Use{Day: "2026-11-20", Engine: "e", Calls: 1}
		if err := <-db.AddUse(good, u); !errors.Is(err, ErrBatch) {
			t.Errorf("%s: got %v, want ErrBatch", name, err)
		}
	}
	uses, err := db.Uses(t.Context(), "2000-01-01", "2100-01-01")
	want(t, "use that was counted beside it", len(uses), 0)
	long := Use{Day: "2026-11-20", Engine: strings.Repeat("e", maxPluginKey)}
	if err := errors.Join(err, <-db.AddUse(long)); err != nil {
		t.Error(err)
	}
	if db.Close(); !errors.Is(<-db.AddUse(long), core.ErrClosed) {
		t.Error("a closed database counted a use")
	}
}

// TestLimitsOfMessages: a message of exactly the largest size is accepted.
func TestLimitsOfMessages(t *testing.T) {
	for _, more := range []int{0, 1} {
		text, id := message(group, "", strings.Repeat("x", maxEntryBytes+more)), message(group, strings.Repeat("i", maxIDBytes+more), "")
		for _, e := range []*core.Entry{&text, &id} {
			if err := checkEvent(&e.Event, false); errors.Is(err, ErrBatch) != (more > 0) {
				t.Errorf("%d above the limit: unexpected error %v", more, err)
			}
		}
	}
}

// TestMovesWithinABatch: a place that begins in a batch can move in the same batch, and a private
// place stays private when another joins it.
func TestMovesWithinABatch(t *testing.T) {
	db, super := open(t, t.TempDir()), core.MustPath("chat/super")
	secret := message(super, "s", "between us")
	secret.Message.Private = true
	add(t, db, secret)
	b := &core.Batch{
		Append: []core.Entry{message(topic, "t", "in the topic"), message(group, "g", "in the group")},
		Change: []core.Event{{Kind: core.KindMigration, Message: core.Message{Path: group}, To: super}},
	}
	if err := db.Commit(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	want(t, "the group", texts(t, db, super), []string{"between us", "in the group"})
	want(t, "the topic", texts(t, db, core.MustPath("chat/super/7")), []string{"in the topic"})
	want(t, "private", privacy(t, db), map[core.Path]bool{super: true, core.MustPath("chat/super/7"): false})
}

// TestLateForwards: a late message of another user is stored without the forgotten words that it
// forwards.
func TestLateForwards(t *testing.T) {
	db := open(t, t.TempDir())
	add(t, db, asks("j", "1000"))
	epoch := db.Epoch()
	forgetUser(t, db, "1000")
	late := message(group, "late", "look at this")
	late.Message.Author.ID, late.Message.Time = "2000", day
	later := day.AddDate(50, 0, 0)
	late.Message.Foreign = []core.Foreign{
		{Kind: core.ForeignForward, From: core.Author{ID: "1000"}, Text: "PASSED on", Time: later},
		{Kind: core.ForeignForward, From: core.Author{ID: "3000"}, Text: "of another", Time: later},
	}
	if err := db.Commit(epochs.With(t.Context(), epoch), &core.Batch{Append: []core.Entry{late}}); err != nil {
		t.Fatal(err)
	}
	entries := everything(t, db)[group]
	last := entries[len(entries)-1].Message
	want(t, "the message", last.Text, "look at this")
	want(t, "what it passes on", len(last.Foreign), 1)
	want(t, "the caller's own", len(late.Message.Foreign), 2)
}

// TestCommandsAboutForgottenWords: a command about a forgotten message is not stored, whatever time
// its platform gives, since words of the same second may be older than the request.
func TestCommandsAboutForgottenWords(t *testing.T) {
	db := openWith(t, t.TempDir(), Options{Clock: func() time.Time { return day }})
	add(t, db, asks("gone", "1000"))
	if err := db.Forget(t.Context(), jay); err != nil {
		t.Fatal(err)
	}
	about := func(target string) core.Entry {
		e := message(group, "about "+target, "/remember")
		e.Message.Author.ID, e.Message.Time = "2000", day
		e.Kind, e.Target, e.Command = core.KindCommand, target, &core.Command{Name: "remember"}
		e.Message.Foreign = []core.Foreign{{Kind: core.ForeignForward, From: core.Author{ID: "1000"}, Text: "words", Time: day}}
		return e
	}
	b := &core.Batch{Append: []core.Entry{about("gone"), about("another")}}
	if err := db.Commit(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	want(t, "refused", b.Known, []bool{true, false})
}

// TestEditsThatChangeNothing: an edit without a change keeps the entry and its attachments.
func TestEditsThatChangeNothing(t *testing.T) {
	db := open(t, t.TempDir())
	e := message(group, "1", "a picture")
	e.Message.Attachments = []core.Attachment{{Name: "cat.png"}}
	add(t, db, e)
	edit := core.Event{Kind: core.KindEdit, Message: message(group, "1", "a picture").Message}
	if err := db.Commit(t.Context(), &core.Batch{Change: []core.Event{edit}}); err != nil {
		t.Fatal(err)
	}
	got := everything(t, db)[group][0]
	want(t, "revisions and attachments", []int{int(got.Rev), len(got.Message.Attachments)}, []int{0, 1})
	edit.Message.Attachments = []core.Attachment{}
	if err := db.Commit(t.Context(), &core.Batch{Change: []core.Event{edit}}); err != nil {
		t.Fatal(err)
	}
	got = everything(t, db)[group][0]
	want(t, "revisions and attachments", []int{int(got.Rev), len(got.Message.Attachments)}, []int{1, 0})
}

// TestPrivatePlacesOfOthers: an answer to the forgotten user in another user's private place is
// deleted; the place stays.
func TestPrivatePlacesOfOthers(t *testing.T) {
	db, anns := open(t, t.TempDir()), core.MustPath("chat/2000")
	hers := message(anns, "a", "between us")
	hers.Message.Author.ID, hers.Message.Private = "2000", true
	add(t, db, hers, asks("j", "1000"))
	reply := message(anns, "r", "jay asked for you")
	reply.Self, reply.Message.Private = true, true
	if err := db.Commit(t.Context(), &core.Batch{Append: []core.Entry{reply},
		Answered: []core.TurnID{{Path: group, Seq: 1}}}); err != nil {
		t.Fatal(err)
	}
	if err := db.Forget(t.Context(), jay); err != nil {
		t.Fatal(err)
	}
	want(t, "her place", texts(t, db, anns), []string{"between us"})
}

// TestWordsWithoutAnAuthor: quoted and forwarded words that may be older than a request to forget
// are dropped, unless they are known to be another user's.
func TestWordsWithoutAnAuthor(t *testing.T) {
	now := day
	db := openWith(t, t.TempDir(), Options{Clock: func() time.Time { return now }})
	kept, gone := message(group, "kept", "stays"), message(group, "gone", "goes")
	kept.Message.Author.ID, gone.Message.Author.ID = "2000", "2000"
	add(t, db, asks("j", "1000"), kept, gone)
	commit(t, db, &core.Batch{Change: []core.Event{{Kind: core.KindDeletion, Message: core.Message{Path: group}, Target: "gone"}}})
	if err := db.Forget(t.Context(), jay); err != nil {
		t.Fatal(err)
	}
	before, after := day.Add(-time.Hour), day.Add(time.Hour)
	for name, tc := range map[string]struct {
		quote core.Quote
		stays bool
	}{
		"an old quote": {core.Quote{Text: "x", Time: before}, false}, "a new quote": {core.Quote{Text: "x", Time: after}, true},
		"a quote that is known": {core.Quote{ID: "kept", Text: "x", Time: before}, true},
		"a quote of somebody":   {core.Quote{From: core.Author{ID: "2000"}, Text: "x", Time: before}, true},
		"a quote of no words":   {core.Quote{Time: before}, true},
		"a quote of the gone":   {core.Quote{From: core.Author{ID: "1000"}, Text: "x", Time: before}, false},
	} {
		e := message(group, name, name)
		e.Message.Author.ID, e.Message.Time, e.Message.ReplyTo = "2000", after, &tc.quote
		add(t, db, e)
		entries := everything(t, db)[group]
		quote := entries[len(entries)-1].Message.ReplyTo
		if stays := quote.Text == tc.quote.Text && quote.Time.Equal(tc.quote.Time); stays != tc.stays {
			t.Errorf("%s: unexpected quote %+v", name, quote)
		}
	}
	for name, tc := range map[string]struct {
		passed core.Foreign
		stays  bool
	}{
		"an old forward": {core.Foreign{Text: "x", Time: before}, false}, "a new forward": {core.Foreign{Text: "x", Time: after}, true},
		"of what is kept":    {core.Foreign{Text: "x", Time: before, Path: group, ID: "kept"}, true},
		"of what is deleted": {core.Foreign{Text: "x", Time: before, Path: group, ID: "gone"}, false},
		"of what is unknown": {core.Foreign{Text: "x", Time: before, Path: group, ID: "none"}, false},
		"of a photo":         {core.Foreign{Time: before, Voice: true}, true},
	} {
		e := message(group, name, name)
		tc.passed.Kind = core.ForeignForward
		e.Message.Author.ID, e.Message.Time, e.Message.Foreign = "2000", after, []core.Foreign{tc.passed}
		add(t, db, e)
		entries := everything(t, db)[group]
		passed := entries[len(entries)-1].Message.Foreign[0]
		if stays := passed.Text == tc.passed.Text && passed.Voice == tc.passed.Voice; stays != tc.stays {
			t.Errorf("%s: unexpected forward %+v", name, passed)
		}
	}
	now = after.Add(time.Hour)
	if err := db.Forget(t.Context(), core.Path{}); err != nil {
		t.Fatal(err)
	}
	old, fresh := message(group, "old", "old"), message(group, "fresh", "fresh")
	old.Message.Author.ID, old.Message.Time = "2000", after
	fresh.Message.Author.ID, fresh.Message.Time = "2000", now
	b := &core.Batch{Append: []core.Entry{old, fresh}}
	commit(t, db, b)
	want(t, "known after everybody was forgotten", b.Known, []bool{true, false})
}
