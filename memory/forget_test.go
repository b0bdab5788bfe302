package memory

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"synthbot/core"
	"synthbot/core/epochs"
	"synthbot/core/llm"
)

// populated fills a database with messages of two users and facts about them.
func populated(t testing.TB, db *DB) {
	t.Helper()
	say := func(place core.Path, id, author, text string, private bool) core.Entry {
		e := message(place, id, text)
		e.Message.Author = core.Author{ID: author, Name: "Name" + author}
		e.Message.Private = private
		return e
	}
	quoting := say(group, "g3", "2000", "as jay said", false)
	quoting.Message.ReplyTo = &core.Quote{ID: "g1", From: core.Author{ID: "1000", Name: "Name1000"}, Text: "JAYSECRET in public"}
	reply := say(alone, "p2", "bot", "I keep your JAYSECRET", true)
	reply.Self = true
	waiting := say(group, "g4", "1000", "JAYSECRET waiting", false)
	waiting.Due = true
	asking := say(group, "g5", "2000", "ann waits", false)
	asking.Due = true
	add(t, db, say(group, "g1", "1000", "JAYSECRET in public", false), say(group, "g2", "2000", "ann speaks", false), quoting,
		say(alone, "p1", "1000", "JAYSECRET in private", true), reply, waiting, asking)
	turn := core.TurnID{Path: group, Seq: 4}
	err := db.Commit(t.Context(), &core.Batch{
		Change: []core.Event{{Kind: core.KindReaction, Target: "g2", Data: "👍", Message: core.Message{Path: group, Author: core.Author{ID: "1000"}}}},
		Journal: []core.Record{
			{Key: core.Key{Turn: turn}, Progress: core.ProgressStarted, Data: json.RawMessage(`{"last":4,"attempts":1}`)},
			{Key: core.Key{Turn: turn, Round: 1}, Progress: core.ProgressAccepted, Data: json.RawMessage(`{"response":"JAYSECRET planned"}`)},
			{Key: core.Key{Turn: core.TurnID{Path: group, Seq: 5}}, Progress: core.ProgressStarted, Data: json.RawMessage(`{"last":5}`)},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	save(t, db, core.Fact{Text: "JAYSECRET about jay", Origin: group, About: []core.Path{jay}})
	save(t, db, core.Fact{Text: "JAYSECRET by jay", Origin: group, By: jay})
	save(t, db, core.Fact{Text: "JAYSECRET from his chat", Origin: alone})
	save(t, db, core.Fact{Text: "ann likes tea", Origin: group, About: []core.Path{ann}})
	for _, path := range []core.Path{jay, alone, ann, group} {
		if _, err := db.Items("bio").Put(t.Context(), core.Item{Path: path, Key: "k", Value: json.RawMessage(`"JAYSECRET"`)[:], Version: 0}); path != group && path != ann && err != nil {
			t.Fatal(err)
		}
	}
	for _, path := range []core.Path{ann, group} {
		db.Items("bio").Put(t.Context(), core.Item{Path: path, Key: "k", Value: json.RawMessage(`"of others"`), Version: core.AnyVersion})
	}
	setState(t, db, alone, core.State{Topic: "JAYSECRET"})
	setState(t, db, group, core.State{Topic: "tea"})
	<-db.AddUse(Use{Day: "2026-11-20", Person: jay, Engine: "e"}, Use{Day: "2026-11-20", Person: ann, Engine: "e"})
}

// checkNoTraces checks that none of the words is in a backup or in the compacted file.
func checkNoTraces(t *testing.T, db *DB, words ...string) {
	t.Helper()
	backup := filepath.Join(t.TempDir(), "backup.db")
	if err := db.Backup(backup); err != nil {
		t.Fatal(err)
	}
	if hasTraces(db) || db.engine.remote {
		checkNoTracesIn(t, backup, words...)
	}
	if _, _, err := db.Compact(t.Context()); err != nil {
		t.Fatal(err)
	}
	if !db.engine.remote {
		checkNoTracesIn(t, db.engine.file, words...)
	}
}

func checkNoTracesIn(t *testing.T, file string, words ...string) {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, word := range words {
		for i := 0; ; {
			at := bytes.Index(content[i:], []byte(word))
			if at < 0 {
				break
			}
			t.Errorf("the file holds %q: %q", word, content[max(i+at-40, 0):i+at+40])
			i += at + 1
		}
	}
}

func TestForgetAPerson(t *testing.T) {
	// Without fractions of seconds, which might contain the user's id by chance.
	clock := func() time.Time { return time.Now().Truncate(time.Second) }
	db := openWith(t, t.TempDir(), Options{Clock: clock})
	populated(t, db)
	if err := db.Forget(t.Context(), jay); err != nil {
		t.Fatal(err)
	}
	db.view(t.Context(), func(v *view) error {
		got, err := v.Last(group, 99)
		var said []string
		for _, e := range got {
			said = append(said, e.Message.Text)
		}
		want(t, "the group", said, []string{"ann speaks", "as jay said", "ann waits"})
		want(t, "the quote", got[1].Message.ReplyTo, &core.Quote{ID: "g1"})
		want(t, "reactions", len(got[0].Reactions), 0)
		due, _ := v.Due(group, 9)
		want(t, "who waits", len(due), 1)
		journal, _ := v.Journal(core.TurnID{Path: group, Seq: 5})
		want(t, "ann's journal", len(journal), 1)
		return err
	})
	want(t, "memories", recall(t, db, core.FactQuery{See: []core.Path{group, alone}}), []string{"ann likes tea"})

	// The turn that answered the user ends.
	turn := core.TurnID{Path: group, Seq: 4}
	reply := message(group, "r", "you said JAYSECRET")
	reply.Self = true
	err := db.Commit(t.Context(), &core.Batch{
		Append:   []core.Entry{reply},
		Journal:  []core.Record{{Key: core.Key{Turn: turn, Round: 1, Step: 1}, Progress: core.ProgressDone, Data: json.RawMessage(`"JAYSECRET"`)}},
		Answered: []core.TurnID{turn},
	})
	if err != nil {
		t.Fatal(err)
	}
	// Results of turns that began before are dropped.
	late := message(group, "late", "JAYSECRET late")
	late.Message.Author.ID, late.Due = "1000", true
	if err := db.Commit(epochs.With(t.Context(), 0), &core.Batch{Append: []core.Entry{late}}); err != nil {
		t.Fatal(err)
	}
	if _, err := db.SaveFact(epochs.With(t.Context(), 0), core.Fact{Text: "JAYSECRET again", About: []core.Path{jay}, Origin: group}); !errors.Is(err, core.ErrForgotten) {
		t.Errorf("got %v, want core.ErrForgotten", err)
	}
	// Messages that a platform delivers again stay forgotten.
	for _, id := range []string{"p1", "g1"} {
		place := map[string]core.Path{"p1": alone, "g1": group}[id]
		b := &core.Batch{Append: []core.Entry{message(place, id, "JAYSECRET back-filled")}}
		if err := db.Commit(t.Context(), b); err != nil || !b.Known[0] {
			t.Errorf("%s: unexpected: known is %v, %v", id, b.Known, err)
		}
	}
	checkNoTraces(t, db, "JAYSECRET", "1000", "Name1000", "jay\x01")
	want(t, "who waits at the end", len(dueIn(t, db, group)), 1)

	// New messages of the user are stored under new numbers.
	e := message(alone, "new", "hello again")
	e.Message.Author.ID = "1000"
	if got := add(t, db, e); got[0].Message.Seq <= 2 {
		t.Errorf("the number %d was reused", got[0].Message.Seq)
	}
	// The next turn of the place is not muted.
	next := message(group, "n", "for ann")
	next.Self = true
	if err := db.Commit(t.Context(), &core.Batch{Append: []core.Entry{next},
		Answered: []core.TurnID{{Path: group, Seq: 5}}}); err != nil {
		t.Fatal(err)
	}
	db.view(t.Context(), func(v *view) error {
		got, err := v.Last(group, 1)
		want(t, "the next reply", got[0].Message.Text, "for ann")
		return err
	})
}

func dueIn(t *testing.T, db *DB, place core.Path) (entries []core.Entry) {
	t.Helper()
	if err := db.view(t.Context(), func(v *view) (err error) {
		entries, err = v.Due(place,
			99)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return entries
}

func TestForgetAPlaceOrAll(t *testing.T) {
	for _, path := range []core.Path{group, {}} {
		db := open(t, t.TempDir())
		populated(t, db)
		if err := db.Forget(t.Context(), path); err != nil {
			t.Fatal(err)
		}
		left := everything(t, db)
		if path.IsZero() {
			want(t, "places", len(left), 0)
			checkNoTraces(t, db, "JAYSECRET", "ann", "1000", "2000", "group")
			continue
		}
		want(t, "places", len(left), 1)
		checkNoTraces(t, db, "in public", "ann speaks", "ann likes", "chat\x01group", "chat/group")
		want(t, "memories", recall(t, db, core.FactQuery{See: []core.Path{group, alone}}), []string{"JAYSECRET from his chat"})
	}
}

func TestExportAndImport(t *testing.T) {
	db := open(t, t.TempDir())
	populated(t, db)
	var all, his, place bytes.Buffer
	for w, path := range map[*bytes.Buffer]core.Path{&all: {}, &his: jay, &place: group} {
		if err := db.Export(t.Context(), w, path); err != nil {
			t.Fatal(err)
		}
	}
	if got := strings.Count(his.String(), "\n"); got != 4+1+3+1+2+1+2 {
		t.Errorf("unexpected: %d lines in jay's export:\n%s", got, &his)
	}
	for _, word := range []string{"ann speaks", "ann waits", "ann likes", "2000"} {
		if strings.Contains(his.String(), word) {
			t.Errorf("jay's export holds %q:\n%s", word, &his)
		}
	}
	if strings.Contains(place.String(), "private") || !strings.Contains(place.String(), "ann likes tea") {
		t.Errorf("unexpected export of the group:\n%s", &place)
	}
	other := open(t, t.TempDir())
	for range 2 { // the second import finds everything stored
		n, _, err := other.Import(t.Context(), strings.NewReader(all.String()), nil)
		if err != nil || n != strings.Count(all.String(), "\n") {
			t.Fatalf("%d lines, %v", n, err)
		}
	}
	wanted, got := everything(t, db), everything(t, other)
	for _, entries := range wanted {
		for i := range entries {
			entries[i].Due = false
		}
	}
	want(t, "entries", got, wanted)
	want(t, "memories", len(recall(t, other, core.FactQuery{See: []core.Path{group, alone}})), 4)
	want(t, "waiting", len(dueIn(t, other, group)), 0)
	s, _ := stateIn(t, other, group)
	want(t, "state", s.Topic, "tea")
}

// TestForgetWhatTheBotAnswered: forgetting a user deletes the bot's public replies to them, and the
// facts from those, but not its replies to others.
func TestForgetWhatTheBotAnswered(t *testing.T) {
	db := open(t, t.TempDir())
	seq := uint64(0)
	say := func(id, author string, due bool) {
		e := message(group, id, "words of "+author+" in "+id)
		e.Message.Author.ID, e.Due = author, due
		add(t, db, e)
		seq++
	}
	answer := func(id, text string, more ...core.Entry) {
		reply := message(group, id, text)
		reply.Self = true
		b := &core.Batch{Append: append([]core.Entry{reply}, more...), Answered: []core.TurnID{{Path: group, Seq: seq}}}
		if err := db.Commit(t.Context(), b); err != nil {
			t.Fatal(err)
		}
		seq += uint64(len(b.Append))
	}
	say("1", "1000", true)
	sequel := core.Entry{Due: true, Event: core.Event{Kind: core.KindContinue, Message: core.Message{Path: group, ID: "c"}}}
	elsewhere := message(topic, "away", "JAYSECRET told elsewhere")
	elsewhere.Self = true
	answer("r1", "JAYSECRET alone", elsewhere, sequel)
	seq-- // the reply elsewhere
	answer("r2", "JAYSECRET continued")
	say("2", "1000", false)
	say("3", "2000", true)
	answer("r3", "for ann alone")
	say("4", "1000", true)
	say("5", "2000", true)
	answer("r4", "JAYSECRET together")
	quoting := message(group, "6", "ann quotes the bot")
	quoting.Message.ReplyTo = &core.Quote{ID: "r1", From: core.Author{Name: "Bot", Bot: true}, Text: "JAYSECRET quoted"}
	other := message(group, "7", "ann quotes again")
	other.Message.ReplyTo = &core.Quote{ID: "r3", Text: "for ann alone"}
	add(t, db, quoting, other)
	setState(t, db, group, core.State{Topic: "JAYSECRET discussed"})
	old := message(group, "old", "JAYSECRET of a time when entries did not know")
	old.Self = true
	add(t, db, old)
	turn := core.TurnID{Path: group, Seq: 1}
	err := db.Commit(t.Context(), &core.Batch{Journal: []core.Record{
		{Key: core.Key{Turn: turn}, Progress: core.ProgressDone, Data: json.RawMessage(`{"last":1,"attempts":1}`)},
		{Key: core.Key{Turn: turn, Round: 1, Step: 1, Part: 1}, Progress: core.ProgressDone, Data: json.RawMessage(`{"path":"chat/group","id":"old","text":"JAYSECRET"}`)},
	}})
	if err != nil {
		t.Fatal(err)
	}
	var his bytes.Buffer
	if err := db.Export(t.Context(), &his, jay); err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]bool{"JAYSECRET alone": true, "continued": true, "together": true, "elsewhere": true, "for ann alone": false} {
		if strings.Contains(his.String(), text) != want {
			t.Errorf("%q in the user's export: want %t\n%s", text, want, &his)
		}
	}
	other2 := open(t, t.TempDir())
	var all bytes.Buffer
	if err := db.Export(t.Context(), &all, core.Path{}); err != nil {
		t.Fatal(err)
	}
	if _, _, err := other2.Import(t.Context(), &all, nil); err != nil {
		t.Fatal(err)
	}
	for name, d := range map[string]*DB{"here": db, "after an import": other2} {
		if err := d.Forget(t.Context(), jay); err != nil {
			t.Fatal(err)
		}
		var said []string
		for _, e := range everything(t, d)[group] {
			if said = append(said, e.Message.Text); e.Message.ReplyTo != nil {
				said = append(said, ">"+e.Message.ReplyTo.Text)
			}
		}
		left := []string{"words of 2000 in 3", "for ann alone", "words of 2000 in 5", "ann quotes the bot", ">", "ann quotes again", ">for ann alone"}
		if d == other2 { // without a journal the old reply cannot be found
			left = append(left, "JAYSECRET of a time when entries did not know")
		}
		want(t, name, said, left)
	}
	checkNoTraces(t, db, "JAYSECRET", "1000")
}

// TestForgetBelowAMovedPlace: forgetting a topic of a moved group also deletes what is stored under
// its old path.
func TestForgetBelowAMovedPlace(t *testing.T) {
	db := open(t, t.TempDir())
	add(t, db, message(group, "stays", "in the group"))
	super := core.MustPath("chat/super")
	move := core.Event{Kind: core.KindMigration, Message: core.Message{Path: group}, To: super}
	if err := db.Commit(t.Context(), &core.Batch{Change: []core.Event{move}}); err != nil {
		t.Fatal(err)
	}
	add(t, db, message(topic, "ERASED", "in the topic"))
	if err := <-db.AddUse(Use{Day: "2026-11-20", Person: topic, Engine: "e", Calls: 1}); err != nil {
		t.Fatal(err)
	}
	if err := db.Forget(t.Context(), core.MustPath("chat/super/7")); err != nil {
		t.Fatal(err)
	}
	checkNoTraces(t, db, "ERASED", "in the topic", "group\x017")
	want(t, "places", len(everything(t, db)), 1)
	for _, said := range []core.Entry{message(topic, "ERASED", "again"), message(group, "stays", "again")} {
		b := &core.Batch{Append: []core.Entry{said}}
		if err := db.Commit(t.Context(), b); err != nil || !b.Known[0] {
			t.Errorf("%s: unexpected: known %v, %v", said.Message.ID, b.Known, err)
		}
	}
	uses, err := db.Uses(t.Context(), "2026-11-20", "2026-11-20")
	if err != nil || len(uses) != 1 || uses[0].Person.String() != "chat" {
		t.Errorf("unexpected usage: %+v, %v", uses, err)
	}
}

// TestForgetIDsOfAMovedPlace: ids are forgotten under the path they arrived with. A new message may
// have the same id at the new path.
func TestForgetIDsOfAMovedPlace(t *testing.T) {
	db, super := open(t, t.TempDir()), core.MustPath("chat/super")
	old := message(group, "ERASED", "before")
	old.Message.Author.ID = "1000"
	anns := message(super, "ERASED", "after")
	anns.Message.Author.ID = "2000"
	add(t, db, old)
	move := core.Event{Kind: core.KindMigration, Message: core.Message{Path: group}, To: super}
	if err := db.Commit(t.Context(), &core.Batch{Change: []core.Event{move}}); err != nil {
		t.Fatal(err)
	}
	known := func(e core.Entry) bool {
		b := &core.Batch{Append: []core.Entry{e}}
		if err := db.Commit(t.Context(), b); err != nil {
			t.Fatal(err)
		}
		return b.Known[0]
	}
	if err := db.Forget(t.Context(), jay); err != nil {
		t.Fatal(err)
	}
	checkNoTraces(t, db, "ERASED")
	if known(anns) || !known(anns) || !known(old) {
		t.Error("forgetting the old message did not keep the new one")
	}
	if err := db.Forget(t.Context(), super); err != nil {
		t.Fatal(err)
	}
	checkNoTraces(t, db, "ERASED")
}

// TestForgetBelowAPrivatePlace: forgetting a user deletes everything below their private chat, and
// the paths that led there.
func TestForgetBelowAPrivatePlace(t *testing.T) {
	db := open(t, t.TempDir())
	add(t, db, message(topic, "ERASED", "others' words"), message(kitchen, "stays", "elsewhere"))
	move := core.Event{Kind: core.KindMigration, Message: core.Message{Path: group}, To: alone}
	if err := db.Commit(t.Context(), &core.Batch{Change: []core.Event{move}}); err != nil {
		t.Fatal(err)
	}
	said := message(alone, "ERASED too", "in private")
	said.Message.Author.ID, said.Message.Private = "1000", true
	add(t, db, said)
	if err := db.Forget(t.Context(), jay); err != nil {
		t.Fatal(err)
	}
	checkNoTraces(t, db, "ERASED", "others' words", "chat\x01group")
	want(t, "places", len(everything(t, db)), 1)
	if err := db.Check(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestForgetAPlaceWithItsItems: forgetting a place deletes the items of all plugins there and
// nowhere else.
func TestForgetAPlaceWithItsItems(t *testing.T) {
	db := open(t, t.TempDir())
	other := core.MustPath("chat/group2")
	for _, plugin := range []string{"quiz", "diary"} {
		for _, path := range []core.Path{group, topic, other, jay, {}} {
			if _, err := db.Items(plugin).Put(t.Context(), core.Item{Path: path, Key: "k", Value: json.RawMessage(`1`)}); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := db.Forget(t.Context(), group); err != nil {
		t.Fatal(err)
	}
	for _, plugin := range []string{"quiz", "diary"} {
		items, err := db.Items(plugin).List(t.Context(), core.Path{})
		if err != nil {
			t.Fatal(err)
		}
		var left []core.Path
		for _, item := range items {
			left = append(left, item.Path)
		}
		want(t, plugin, left, []core.Path{{}, jay, other})
	}
}

func TestImportOfOtherText(t *testing.T) {
	db := open(t, t.TempDir())
	good := `{"entry":{"kind":"message","message":{"path":"a/b","id":"1","text":"x"}}}` + "\n"
	for _, bad := range []string{"x", "{}", `{"entry":{}}`, `{"entry":{"kind":"edit","message":{"path":"a/b"}}}`, `{"item":{}}`, `{"other":1}`, `{"state":{}}`} {
		_, _, err := db.Import(t.Context(), strings.NewReader(good+bad), nil)
		checkError(t, err, "line 2")
	}
	want(t, "kept", len(everything(t, db)[core.MustPath("a/b")]), 1)
}

// FuzzImport: an import can be exported and imported again with the same result.
func FuzzImport(f *testing.F) {
	f.Add([]byte(`{"entry":{"kind":"message","message":{"path":"a/b","id":"1","text":"x","time":"2026-11-20T08:00:00Z"}}}`))
	f.Add([]byte(`{"memory":{"text":"x","tags":["y"],"about":["a/@user/1"]}}`))
	f.Add([]byte(`{"use":{"day":"2026-11-20","engine":"e","calls":1,"in":5}}`))
	f.Add([]byte(`{"item":{"plugin":"p","key":"k","value":{}}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		one, err := parseRow(text)
		if err != nil {
			return
		}
		again, err := json.Marshal(one)
		if err != nil {
			t.Skip(err)
		}
		if _, err := parseRow(again); err != nil {
			t.Fatalf("%v\n%s\n%s", err, text, again)
		}
	})
}

// TestMoneyStaysSpent: the cost of a forgotten user's private place still counts, without the user.
// Forgetting the place itself deletes it.
func TestMoneyStaysSpent(t *testing.T) {
	db := open(t, t.TempDir())
	add(t, db, message(alone, "1", "hi"))
	use := func(whose core.Path) Use {
		return Use{Day: "2026-11-20", Person: whose, Engine: "e", Calls: 1, Usage: llm.Usage{In: 10, Out: 2, Cached: 3}}
	}
	if err := <-db.AddUse(use(alone), use(jay), use(alone), use(group), use(ann)); err != nil {
		t.Fatal(err)
	}
	spent := func() map[string]Use {
		uses, err := db.Uses(t.Context(), "2026-11-20", "2026-11-20")
		if err != nil {
			t.Fatal(err)
		}
		by := make(map[string]Use)
		for _, u := range uses {
			by[u.Person.String()] = u
		}
		return by
	}
	forget := func(path core.Path) {
		if err := db.Forget(t.Context(), path); err != nil {
			t.Fatal(err)
		}
	}
	forget(alone)
	forget(jay)
	left := use(core.MustPath("chat"))
	left.Calls, left.In, left.Out, left.Cached = 2, 20, 4, 6
	want(t, "left", spent(), map[string]Use{"chat": left, "chat/group": use(group), "chat/@user/2000": use(ann)})
	forget(core.MustPath("chat"))
	want(t, "in the end", len(spent()), 0)
}

// TestNumbersOfAForgottenPlace: a message in the transaction that forgets its place gets a number
// that no running turn can have, also after a restart.
func TestNumbersOfAForgottenPlace(t *testing.T) {
	dir := t.TempDir()
	db := open(t, dir)
	said := message(group, "", "before")
	add(t, db, said, said, said)
	after, err := prepareBatch(&core.Batch{Append: []core.Entry{message(group, "1", "after")}})
	if err != nil {
		t.Fatal(err)
	}
	after.epoch = db.epochOf(t.Context())
	p := placeKey(group)
	err = db.write(t.Context(), &job{publish: after.publish, run: func(t *tx) error {
		for seq := range uint64(3) {
			t.remove(p, seq+1)
		}
		dropHead(t, p)
		return after.run(t)
	}})
	if got := after.from.Append[0].Message.Seq; err != nil || got != 4 {
		t.Errorf("got number %d, %v, want 4", got, err)
	}
	if err := errors.Join(db.Forget(t.Context(), group), db.Close()); err != nil {
		t.Fatal(err)
	}
	again := &core.Batch{Append: []core.Entry{message(group, "2", "again")}}
	if err := open(t, dir).Commit(t.Context(), again); err != nil || again.Append[0].Message.Seq != 5 {
		t.Errorf("after a restart: got number %d, %v, want 5", again.Append[0].Message.Seq, err)
	}
}

// TestForgetEverybodyByAWrongClock: after everybody was forgotten, older messages are refused and
// newer ones stored, even if the platform's clock differs.
func TestForgetEverybodyByAWrongClock(t *testing.T) {
	for _, ahead := range []time.Duration{-2 * time.Hour, 2 * time.Hour} {
		db := open(t, t.TempDir())
		if err := db.Forget(t.Context(), core.Path{}); err != nil {
			t.Fatal(err)
		}
		before, after := message(group, "1", "before"), message(group, "2", "after")
		for e, when := range map[*core.Entry]time.Duration{&before: -time.Hour, &after: time.Hour} {
			e.Message.Author, e.Message.Ahead = core.Author{ID: "1000"}, ahead
			e.Message.Time = time.Now().Add(when - ahead)
		}
		b := &core.Batch{Append: []core.Entry{before, after}}
		if err := db.Commit(t.Context(), b); err != nil {
			t.Fatal(err)
		}
		want(t, fmt.Sprint("known, our clock ahead by ", ahead), b.Known, []bool{true, false})
	}
}

// TestForgetAfterABrokenOne: after an interrupted Forget, the next one also finds the ids of
// entries that are already deleted, and keeps hashes of all.
func TestForgetAfterABrokenOne(t *testing.T) {
	db := open(t, t.TempDir())
	said := make([]core.Entry, 2*maxStepWrites)
	for i := range said {
		said[i] = message(group, fmt.Sprint("m", i), "words")
		said[i].Message.Author.ID = "1000"
	}
	add(t, db, said...)
	count := func() (entries, ids int) {
		err := db.view(t.Context(), func(v *view) error {
			h, _ := v.readHead(placeKey(group))
			entries = int(h.count)
			return nil
		})
		if err != nil {
			t.Error(err)
		}
		return entries, len(idsOf(t, db, group))
	}
	d := interceptWrites(t, db)
	d.onWrite(func(buf []byte, at int64) (int, error) {
		if isMeta(at) { // readers are blocked here
			return handleOf(db).WriteAt(buf, at)
		}
		if entries, _ := count(); entries < len(said) {
			return 0, syscall.EIO
		}
		return handleOf(db).WriteAt(buf, at)
	})
	if err := db.Forget(t.Context(), jay); err == nil {
		t.Error("Forget was not interrupted")
	}
	d.onWrite(nil)
	if err := db.Forget(t.Context(), jay); err != nil {
		t.Fatal(err)
	}
	entries, ids := count()
	want(t, "entries and ids left", []int{entries, ids}, []int{0, 0})
	b := &core.Batch{Append: said}
	if err := db.Commit(t.Context(), b); err != nil || slices.Contains(b.Known, false) {
		t.Errorf("repeated deliveries were stored: %v", err)
	}
}

// TestForgettingSparesOthers: journals of users who only mention the forgotten one stay, and so do
// a plugin's items elsewhere that have the place's name.
func TestForgettingSparesOthers(t *testing.T) {
	db := open(t, t.TempDir())
	anns := asks("a", "2000")
	anns.Message.Text = "what did 1000 say?"
	jays := asks("j", "1000")
	jays.Due = false
	add(t, db, anns, jays)
	opened := opens(group, 1)
	opened.Data = []byte(`{"last":2,"attempts":1}`)
	if err := db.Commit(t.Context(), &core.Batch{Journal: []core.Record{opened}}); err != nil {
		t.Fatal(err)
	}
	strange := core.Record{Key: core.Key{Turn: core.TurnID{Path: group, Seq: 2}}, Data: json.RawMessage(`[]`)}
	if err := db.Commit(t.Context(), &core.Batch{Journal: []core.Record{strange}}); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"k", group.String(), jay.String()} {
		if _, err := db.Items("bio").Put(t.Context(), core.Item{Path: kitchen, Key: key, Value: json.RawMessage(`1`)}); err != nil {
			t.Fatal(err)
		}
	}
	keys := func() (keys []string) {
		items, err := db.Items("bio").List(t.Context(), kitchen)
		if err != nil {
			t.Fatal(err)
		}
		for _, item := range items {
			keys = append(keys, item.Key)
		}
		return keys
	}
	if err := db.Forget(t.Context(), jay); err != nil {
		t.Fatal(err)
	}
	want(t, "records of ann's turn, and one that opens none", size(t, db, bucketJournal), 2)
	want(t, "items", keys(), []string{group.String(), "k"})
	if err := db.Forget(t.Context(), group); err != nil {
		t.Fatal(err)
	}
	want(t, "records of a forgotten place", size(t, db, bucketJournal), 0)
	want(t, "items afterwards", keys(), []string{group.String(), "k"})
}

// TestExportOfAPerson: a user's export holds the turns of their private places, of any age, and
// elsewhere only turns that answered them.
func TestExportOfAPerson(t *testing.T) {
	db := open(t, t.TempDir())
	secret := message(alone, "p", "between us")
	secret.Message.Author.ID, secret.Message.Private = "1000", true
	add(t, db, secret, message(group, "g", "hello"))
	b := &core.Batch{Journal: []core.Record{opens(alone, 7), opens(group, 1)}}
	if err := db.Commit(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	for _, place := range []core.Path{jay, alone, group, {}} {
		if _, err := db.Items("bio").Put(t.Context(), core.Item{Path: place, Key: "", Value: json.RawMessage(`1`)}); err != nil {
			t.Fatal(err)
		}
	}
	lines := func(path core.Path, kind string) int {
		var out bytes.Buffer
		if err := db.Export(t.Context(), &out, path); err != nil {
			t.Fatal(err)
		}
		return strings.Count(out.String(), "{\""+kind+"\":")
	}
	want(t, "records and items of a person", []int{lines(jay, "record"), lines(jay, "item")}, []int{1, 2})
	want(t, "records and items of a place", []int{lines(group, "record"), lines(group, "item")}, []int{0, 1})
	want(t, "records and items of everybody", []int{lines(core.Path{}, "record"), lines(core.Path{}, "item")}, []int{0, 4})
}

// TestForgettingAnInterface: forgetting an interface deletes its places and the memories of its
// users, wherever they are known.
func TestForgettingAnInterface(t *testing.T) {
	db := open(t, t.TempDir())
	save(t, db, core.Fact{Text: "told by jay", By: jay})
	save(t, db, core.Fact{Text: "told by nobody"})
	save(t, db, core.Fact{Text: "told elsewhere", By: core.MustPath("other/@user/1000")})
	if err := db.Forget(t.Context(), core.MustPath("chat")); err != nil {
		t.Fatal(err)
	}
	got := recall(t, db, core.FactQuery{See: []core.Path{kitchen}})
	slices.Sort(got)
	want(t, "left", got, []string{"told by nobody", "told elsewhere"})
}

// TestTimeOfAPlaceWithoutAnswers: if a forgotten answer was the newest entry, the place gets the
// time of what is left.
func TestTimeOfAPlaceWithoutAnswers(t *testing.T) {
	db := open(t, t.TempDir())
	anns, jays := message(topic, "a", "words of ann"), asks("j", "1000")
	anns.Message.Author.ID, anns.Message.Time, jays.Message.Time = "2000", day, day
	add(t, db, anns, jays)
	reply := message(topic, "r", "for jay")
	reply.Self, reply.Message.Time = true, day.Add(time.Hour)
	if err := db.Commit(t.Context(), &core.Batch{Append: []core.Entry{reply},
		Answered: []core.TurnID{{Path: group, Seq: 1}}}); err != nil {
		t.Fatal(err)
	}
	if err := db.Forget(t.Context(), jay); err != nil {
		t.Fatal(err)
	}
	err := db.view(t.Context(), func(v *view) error {
		h, err := v.Head(topic)
		want(t, "entries", h.Count, uint64(1))
		want(t, "time", h.Time, day)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestOldWordsBehindAButton: a press that quotes forgotten words is stored without them; a command
// about them is not stored.
func TestOldWordsBehindAButton(t *testing.T) {
	db := open(t, t.TempDir())
	add(t, db, asks("j", "1000"))
	if err := db.Forget(t.Context(), jay); err != nil {
		t.Fatal(err)
	}
	press := message(group, "press", "yes")
	press.Target, press.Message.Author.ID = "button", "2000"
	press.Message.ReplyTo = &core.Quote{ID: "old", From: core.Author{ID: "1000"}, Text: "OLD words", Time: day.AddDate(-5, 0, 0)}
	command := press
	command.Message.ID, command.Command = "command", &core.Command{}
	b := &core.Batch{Append: []core.Entry{press, command}}
	if err := db.Commit(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	want(t, "known", b.Known, []bool{false, true})
	entries := everything(t, db)[group]
	want(t, "the press", entries[len(entries)-1].Message.ReplyTo, &core.Quote{ID: "old"})
}

// TestForgettingAnUnreadableFact: an unreadable fact is deleted if its key names the user, and kept
// if it names another.
func TestForgettingAnUnreadableFact(t *testing.T) {
	for path, left := range map[string]bool{
		jay.String(): false, jay.String() + "/1": false, "chat/@user/10001": true, "chat/@user/100": true,
	} {
		db := open(t, t.TempDir())
		_, err := db.SaveFact(t.Context(), core.Fact{Text: "zyzzyva", Origin: group, By: core.MustPath(path)})
		if err != nil {
			t.Fatal(err)
		}
		err = db.update(t.Context(), func(t *tx) {
			for k, v := range t.bucket(bucketFacts).pairs(nil, nil) {
				t.bucket(bucketFacts).Put(bytes.Clone(k), append(bytes.Clone(v), '}'))
				break
			}
		})
		if err := errors.Join(err, db.Forget(t.Context(), jay)); err != nil {
			t.Fatal(err)
		}
		facts, words := size(t, db, bucketFacts), size(t, db, bucketWords)
		want(t, "something is left of a fact by "+path, facts+words > 0, left)
		if err := db.Forget(t.Context(), core.Path{}); err != nil {
			t.Fatal(err)
		}
		want(t, "facts after everything is forgotten", size(t, db, bucketFacts)+size(t, db, bucketWords), 0)
	}
}

// TestAPlanThatCannotBeRead checks that the start and Forget begin anew if a plan cannot be read, and that the start
// says if it cannot know who is to be forgotten.
func TestAPlanThatCannotBeRead(t *testing.T) {
	dir := t.TempDir()
	db := open(t, dir)
	populated(t, db)
	bad := []byte(metaForget + "//")
	err := db.update(t.Context(), func(t *tx) {
		t.bucket(bucketMeta).Put(bad, []byte("{}"))
		t.bucket(bucketMeta).Put([]byte(metaForget+jay.String()), []byte("{"))
		t.bucket(bucketMeta).Put([]byte(metaForget+ann.String()), []byte("{}"))
	})
	if err := errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
	var log strings.Builder
	later := openWith(t, dir, Options{Log: slog.New(slog.NewTextHandler(&log, nil))})
	later.starting.Wait()
	first, second, _ := strings.Cut(strings.TrimSpace(log.String()), "\n")
	checkError(t, errors.New(first), "plan to forget chat/@user/1000")
	checkError(t, errors.New(second), "somebody is not forgotten yet")
	for _, person := range []core.Path{jay, ann} {
		var left bytes.Buffer
		if err := later.Export(t.Context(), &left, person); err != nil {
			t.Fatal(err)
		}
		want(t, "what is left of "+person.String(), left.String(), "")
	}
	checkNoTraces(t, later, "JAYSECRET")
	err = later.update(t.Context(), func(t *tx) {
		t.bucket(bucketMeta).Delete(bad)
		t.bucket(bucketMeta).Put([]byte(metaForget+jay.String()), []byte("{"))
	})
	if err := errors.Join(err, later.Forget(t.Context(), jay)); err != nil {
		t.Error(err)
	}
	want(t, "the person is being forgotten", isForgetting(t, later), false)
}

// TestATurnThatNamesTheForgotten: the journal of a turn that names the forgotten user is deleted;
// what the turn sent to others stays.
func TestATurnThatNamesTheForgotten(t *testing.T) {
	db := open(t, t.TempDir())
	add(t, db, asks("a", "2000"))
	sent := message(group, "sent", "for Ann")
	sent.Self = true
	part := core.Record{Key: core.Key{Turn: core.TurnID{Path: group, Seq: 1}, Round: 1, Step: 1, Part: 1},
		Progress: core.ProgressDone, Data: core.JSON(core.Sent{Path: group, ID: "sent"})}
	plan := core.Record{Key: core.Key{Turn: part.Key.Turn, Round: 1}, Progress: core.ProgressAccepted,
		Data: json.RawMessage(`{"response":"of \"1000\"","names":"1000"}`)}
	commit(t, db, &core.Batch{Journal: []core.Record{opens(group, 1), plan, part}, Append: []core.Entry{sent}})
	quoting := asks("q", "2000")
	quoting.Message.ReplyTo = &core.Quote{ID: "sent", Text: "for Ann"}
	add(t, db, quoting)
	if err := db.Forget(t.Context(), jay); err != nil {
		t.Fatal(err)
	}
	want(t, "what is left", texts(t, db, group), []string{"2000 asks", "for Ann", "2000 asks"})
	want(t, "the quote", everything(t, db)[group][2].Message.ReplyTo.Text, "for Ann")
	want(t, "journal", size(t, db, bucketJournal), 0)
}

// TestNamedWhileForgetting: an item that names a user is refused while that user is being
// forgotten.
func TestNamedWhileForgetting(t *testing.T) {
	db := open(t, t.TempDir())
	epoch := epochs.With(t.Context(), db.Epoch())
	f := newForgetting(t.Context(), db, jay)
	if err := f.begin(); err != nil {
		t.Fatal(err)
	}
	_, err := db.Items("quiz").Put(epoch, core.Item{Path: kitchen, Key: "k", Value: []byte(`{"winner":"1000"}`)})
	f.end()
	if !errors.Is(err, core.ErrForgotten) {
		t.Errorf("got %v, want core.ErrForgotten", err)
	}
}
