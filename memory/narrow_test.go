package memory

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"synthbot/core"
	"synthbot/core/coretest"
	"synthbot/core/epochs"
)

// exported returns an export as text.
func exported(t *testing.T, db *DB, path core.Path) string {
	t.Helper()
	var out bytes.Buffer
	if err := db.Export(t.Context(), &out, path); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// TestExportOfAPlace: a place's export leaves out an item elsewhere that only has the place's path
// as key, and a fact about the place from elsewhere.
func TestExportOfAPlace(t *testing.T) {
	db := open(t, t.TempDir())
	item := core.Item{Path: kitchen, Key: group.String(), Value: json.RawMessage(`"ELSEWHERE kept"`)}
	if _, err := db.Items("bio").Put(t.Context(), item); err != nil {
		t.Fatal(err)
	}
	save(t, db, core.Fact{Text: "ELSEWHERE said", Origin: kitchen, About: []core.Path{group}})
	add(t, db, message(group, "1", "here"))
	if out := exported(t, db, group); strings.Contains(out, "ELSEWHERE") || !strings.Contains(out, "here") {
		t.Error(out)
	}
	if err := db.Forget(t.Context(), group); err != nil {
		t.Fatal(err)
	}
	if out := exported(t, db, core.Path{}); strings.Count(out, "ELSEWHERE") != 2 || strings.Contains(out, "here\"") {
		t.Error(out)
	}
}

// TestUnreadableRecordsAreLogged: exports, lists of facts and migrations skip unreadable records
// and log them.
func TestUnreadableRecordsAreLogged(t *testing.T) {
	var log strings.Builder
	db, err := Open(t.TempDir(), Options{Log: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	add(t, db, message(group, "1", "spoilt"), message(group, "2", "fine"))
	fact := save(t, db, core.Fact{Text: "spoilt", Origin: group})
	save(t, db, core.Fact{Text: "fine", Origin: group})
	err = db.update(t.Context(), func(t *tx) {
		t.bucket(bucketLog).Put(seqKey(placeKey(group), 1), []byte{4, 0xff})
		t.bucket(bucketFacts).Put(factKey(&fact), []byte("{"))
		t.bucket(bucketPlugins).Put(pluginKey("bio", group, "k"), []byte("{"))
		t.bucket(bucketStates).Put(placeKey(group), []byte("{"))
		t.bucket(bucketUsage).Put(usageKey(Use{Day: "2026-11-20", Person: group}), []byte{1, 0xff})
	})
	if err != nil {
		t.Fatal(err)
	}
	facts, next, err := db.ListFacts(t.Context(), core.FactPage{N: 9})
	if err != nil || next != "" || len(facts) != 1 {
		t.Errorf("unexpected: facts %v, next %q, error %v", facts, next, err)
	}
	listed := log.String()
	if !strings.Contains(listed, "memory 0000000000000001") {
		t.Errorf("unexpected log of the list: %q", listed)
	}
	exported(t, db, group)
	more := log.String()[len(listed):]
	for _, what := range []string{"chat/group#1", "plugins: item", "states: ", "usage: "} {
		if !strings.Contains(more, what) {
			t.Errorf("the log of the export lacks %q: %q", what, more)
		}
	}
	e := core.Event{Kind: core.KindMigration, Message: core.Message{Path: group}, To: core.MustPath("chat/super")}
	listed = log.String()
	clear(db.unreadable.logged)
	if err := db.Commit(t.Context(), &core.Batch{Change: []core.Event{e}}); err != nil {
		t.Fatal(err)
	}
	if more := log.String()[len(listed):]; !strings.Contains(more, "memory 0000000000000001") {
		t.Errorf("unexpected log of the migration: %q", more)
	}
}

// TestAFactIsReplacedOnce: a fact that matches another by text and by topic replaces it once.
func TestAFactIsReplacedOnce(t *testing.T) {
	db := open(t, t.TempDir())
	err := db.update(t.Context(), func(t *tx) {
		for i, text := range []string{"tea", "milk"} {
			f := core.Fact{ID: factID(uint64(i + 1)), Text: text, Topic: "drink", Origin: group, Time: day.Add(time.Duration(i))}
			t.facts().putFact(f)
		}
		t.bucket(bucketFacts).SetSequence(2)
	})
	if err != nil {
		t.Fatal(err)
	}
	f := save(t, db, core.Fact{Text: "milk", Topic: "drink", Origin: group, Time: day.Add(5)})
	want(t, "id", f.ID, "2")
	want(t, "former", f.Former, []core.Former{{Text: "tea", Time: day}})
}

// TestRecordsOfAMovedPlace: of a turn that continues under the old path of its place, only the
// opening record stores by how much the numbers shifted.
func TestRecordsOfAMovedPlace(t *testing.T) {
	db := open(t, t.TempDir())
	super := core.MustPath("chat/super")
	add(t, db, message(super, "a", "one"), message(super, "b", "two"), message(group, "1", "three"))
	e := core.Event{Kind: core.KindMigration, Message: core.Message{Path: group}, To: super}
	turn := core.TurnID{Path: group, Seq: 1}
	plan := core.Record{Key: core.Key{Turn: turn, Round: 1}, Data: json.RawMessage(`{}`)}
	for _, b := range []*core.Batch{{Change: []core.Event{e}}, {Journal: []core.Record{opens(group, 1), plan}}} {
		if err := db.Commit(t.Context(), b); err != nil {
			t.Fatal(err)
		}
	}
	var shifts []uint64
	err := db.view(t.Context(), func(v *view) error {
		for _, r := range v.records(core.TurnID{Path: super, Seq: 3}) {
			w, err := decodeRecord(r.value)
			if err != nil {
				return err
			}
			shifts = append(shifts, w.Shift)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	want(t, "shifts", shifts, []uint64{2, 0})
}

// TestKeysHoldNumbers: a fact's number is taken from its key.
func TestKeysHoldNumbers(t *testing.T) {
	f, err := decodeFact(binary.BigEndian.AppendUint64(nil, 37), []byte(`{"text":"x","id":"7"}`))
	want(t, "fact", []any{f.ID, err}, []any{"11", nil})
}

// TestMovesWithinAPlace: a topic cannot move to its group, nor a group to its topic.
func TestMovesWithinAPlace(t *testing.T) {
	for _, move := range [][2]core.Path{{topic, group}, {group, topic}, {group, group}} {
		db := open(t, t.TempDir())
		add(t, db, message(topic, "1", "in the topic"), message(group, "1", "in the group"))
		e := core.Event{Kind: core.KindMigration, Message: core.Message{Path: move[0]}, To: move[1]}
		if err := db.Commit(t.Context(), &core.Batch{Change: []core.Event{e}}); err != nil {
			t.Fatal(err)
		}
		for path, entries := range everything(t, db) {
			want(t, fmt.Sprint(move, " leaves in ", path), len(entries), 1)
		}
		want(t, "aliases", size(t, db, bucketAliases), 0)
	}
}

// TestImportOfALongLine: an import accepts lines as long as messages can be.
func TestImportOfALongLine(t *testing.T) {
	db, other := open(t, t.TempDir()), open(t, t.TempDir())
	add(t, db, message(group, "1", strings.Repeat("x", 1<<20)))
	lines, _, err := other.Import(t.Context(), strings.NewReader(exported(t, db, core.Path{})), nil)
	if err != nil || lines != 1 {
		t.Errorf("%d lines, %v", lines, err)
	}
}

// TestSizesOfBatches: the size of a job counts its content, so that a group commit stays small.
func TestSizesOfBatches(t *testing.T) {
	long := strings.Repeat("x", 5000)
	entry := message(group, "1", long)
	for name, b := range map[string]*core.Batch{
		"entry":  {Append: []core.Entry{entry}},
		"change": {Change: []core.Event{{Kind: core.KindEdit, Message: entry.Message}}},
		"record": {Journal: []core.Record{{Key: core.Key{Turn: core.TurnID{Path: group, Seq: 1}}, Data: json.RawMessage(`"` + long + `"`)}}},
	} {
		w, err := prepareBatch(b)
		if err != nil || w.size < len(long) || w.size > len(long)+1000 {
			t.Errorf("%s: unexpected size %d, %v", name, w.size, err)
		}
	}
}

// TestQuotesOfOldReplies: a reply from before entries stored whom they answer is found by the
// journal, and its quotes are removed too.
func TestQuotesOfOldReplies(t *testing.T) {
	db := open(t, t.TempDir())
	asking := message(group, "1", "jay asks")
	asking.Message.Author.ID = "1000"
	old := message(group, "old", "JAYSECRET")
	old.Self = true
	quoting := message(group, "2", "ann quotes")
	quoting.Message.Author.ID = "2000"
	quoting.Message.ReplyTo = &core.Quote{ID: "old", Text: "JAYSECRET"}
	later := time.Unix(1_800_000_000, 0)
	old.Message.Time = later
	add(t, db, asking, quoting, old)
	turn := core.TurnID{Path: group, Seq: 1}
	sent := core.Key{Turn: turn, Round: 1, Step: 1, Part: 1}
	err := db.Commit(t.Context(), &core.Batch{Journal: []core.Record{
		opens(group, 1),
		{Key: sent, Progress: core.ProgressDone, Data: json.RawMessage(`{"path":"chat/group","id":"old"}`)},
	}})
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Forget(t.Context(), jay); err != nil {
		t.Fatal(err)
	}
	entries := everything(t, db)[group]
	want(t, "entries", len(entries), 1)
	want(t, "quote", entries[0].Message.ReplyTo, &core.Quote{ID: "old"})
	err = db.View(t.Context(), func(v core.View) error {
		h, err := v.Head(group)
		want(t, "time of the place", h.Time.Equal(later), false)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	checkNoTraces(t, db, "JAYSECRET")
}

// TestContinuedTurnsOfTheForgotten: a follow-up turn counts as an answer to the users of the first
// turn.
func TestContinuedTurnsOfTheForgotten(t *testing.T) {
	db := open(t, t.TempDir())
	sequel := core.Entry{Due: true, Event: core.Event{Kind: core.KindContinue, Message: core.Message{Path: group, ID: "c"}}}
	add(t, db, asks("1", "1000"))
	batch := &core.Batch{Append: []core.Entry{sequel}, Answered: []core.TurnID{{Path: group, Seq: 1}}}
	if err := db.Commit(t.Context(), batch); err != nil {
		t.Fatal(err)
	}
	add(t, db, asks("2", "2000"))
	plan := core.Key{Turn: core.TurnID{Path: group, Seq: 2}, Round: 1}
	other := core.Key{Turn: core.TurnID{Path: group, Seq: 3}, Round: 1}
	err := db.Commit(t.Context(), &core.Batch{Journal: []core.Record{
		opens(group, 2), {Key: plan, Data: json.RawMessage(`"JAYSECRET planned"`)},
		opens(group, 3), {Key: other, Data: json.RawMessage(`{"last":99,"text":"for ann"}`)},
	}})
	if err != nil {
		t.Fatal(err)
	}
	out := exported(t, db, jay)
	if !strings.Contains(out, "JAYSECRET planned") || strings.Contains(out, "for ann") {
		t.Error(out)
	}
	if err := db.Forget(t.Context(), jay); err != nil {
		t.Fatal(err)
	}
	err = db.View(t.Context(), func(v core.View) error {
		gone, err := v.Journal(plan.Turn)
		want(t, "records of the turn", len(gone), 0)
		left, _ := v.Journal(other.Turn)
		want(t, "records of the other", len(left), 2)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestRanksOfFacts: times and lengths beyond the limits are capped.
func TestRanksOfFacts(t *testing.T) {
	long := strings.Repeat("x", 6*math.MaxUint16+60)
	for _, tc := range []struct {
		f    core.Fact
		want []byte
	}{
		{core.Fact{Text: "sixsix", Time: time.Unix(7200, 0), Importance: 3}, []byte{0, 0, 0, 2, 3, 0, 1}},
		{core.Fact{Text: long, Importance: 99}, []byte{0, 0, 0, 0, 10, 255, 255}},
		{core.Fact{Time: time.Unix(-7200, 0), Importance: -1}, []byte{0, 0, 0, 0, 0, 0, 0}},
	} {
		want(t, fmt.Sprint(len(tc.f.Text)), rankFact(&tc.f), tc.want)
	}
}

// TestLimitsOfFacts: the largest allowed number of tags and length of text are accepted, and no
// more.
func TestLimitsOfFacts(t *testing.T) {
	tags := slices.Repeat([]string{"t"}, maxTags)
	about := slices.Repeat([]core.Path{jay}, maxTags)
	name := strings.Repeat("n", core.MaxName)
	for what, tc := range map[string]struct {
		f  core.Fact
		ok bool
	}{
		"all":           {core.Fact{Text: strings.Repeat("x", maxFactText), Tags: tags, About: about, Topic: name}, true},
		"no text":       {core.Fact{}, false},
		"a long text":   {core.Fact{Text: strings.Repeat("x", maxFactText+1)}, false},
		"many tags":     {core.Fact{Text: "x", Tags: append(slices.Clone(tags), "t")}, false},
		"about many":    {core.Fact{Text: "x", About: append(slices.Clone(about), jay)}, false},
		"a long tag":    {core.Fact{Text: "x", Tags: []string{"a", name + "n"}}, false},
		"a long topic":  {core.Fact{Text: "x", Topic: name + "n"}, false},
		"a longest tag": {core.Fact{Text: "x", Tags: []string{name}}, true},
	} {
		if err := checkFact(&tc.f); (err == nil) != tc.ok {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// TestNobodysWords: entries without an author stay even if everybody is forgotten.
func TestNobodysWords(t *testing.T) {
	db := open(t, t.TempDir())
	epoch := db.Epoch()
	if err := db.Forget(t.Context(), core.Path{}); err != nil {
		t.Fatal(err)
	}
	nobodys, somebodys := message(group, "1", "a notice"), message(group, "2", "words")
	somebodys.Message.Author.ID = "1000"
	b := &core.Batch{Append: []core.Entry{nobodys, somebodys}}
	if err := db.Commit(epochs.With(t.Context(), epoch), b); err != nil {
		t.Fatal(err)
	}
	var said []string
	for _, e := range everything(t, db)[group] {
		said = append(said, e.Message.Text)
	}
	want(t, "kept", said, []string{"a notice", ""})
}

// TestUnreadableRecordsAreForgotten: unreadable records are deleted with everybody, and with the
// user or place that their keys name.
func TestUnreadableRecordsAreForgotten(t *testing.T) {
	for _, path := range []core.Path{{}, jay} {
		db := open(t, t.TempDir())
		err := db.update(t.Context(), func(t *tx) {
			t.bucket(bucketUsage).Put(usageKey(Use{Day: "2026-11-20", Person: jay, Engine: "e"}), []byte{1, 0xff})
			t.bucket(bucketPlugins).Put(pluginKey("bio", jay, "k"), []byte("{"))
			t.bucket(bucketIDs).Put(slices.Concat(placeKey(jay), shortID("x")), []byte{0x80})
		})
		if err != nil {
			t.Fatal(err)
		}
		if err := db.Forget(t.Context(), path); err != nil {
			t.Fatal(err)
		}
		for _, bucket := range []string{bucketUsage, bucketPlugins, bucketIDs} {
			want(t, fmt.Sprintf("%s after %q", bucket, path), size(t, db, bucket), 0)
		}
	}
}

// TestHashesOfOwnIDs: only ids of deleted messages are hashed.
func TestHashesOfOwnIDs(t *testing.T) {
	db := open(t, t.TempDir())
	populated(t, db)
	if err := db.Forget(t.Context(), jay); err != nil {
		t.Fatal(err)
	}
	want(t, "hashes of four ids, of the request and of the newest on the platform", size(t, db, bucketGone), 6)
}

// said returns the texts of a place.
func said(t *testing.T, db *DB, place core.Path) (texts []string) {
	t.Helper()
	for _, e := range everything(t, db)[place] {
		texts = append(texts, e.Message.Text)
	}
	return texts
}

// reply returns a message of the bot.
func reply(id, text string) core.Entry {
	e := message(group, id, text)
	e.Self = true
	return e
}

// TestMutedTurnsAlone: only the outcome of a muted turn is dropped, not other messages of the
// batch, nor the outcome of another turn that also ends the muted one.
func TestMutedTurnsAlone(t *testing.T) {
	for name, tc := range map[string]struct {
		batch *core.Batch
		left  []string
	}{
		"a batch of the muted turn": {&core.Batch{
			Append:   []core.Entry{reply("r", "SECRET"), message(group, "3", "by the way")},
			Journal:  []core.Record{opens(group, 1)},
			Answered: []core.TurnID{{Path: group, Seq: 1}},
		}, []string{"2000 asks", "", "by the way"}},
		"a batch of the next turn": {&core.Batch{
			Append:   []core.Entry{reply("r", "for ann")},
			Journal:  []core.Record{opens(group, 2)},
			Answered: []core.TurnID{{Path: group, Seq: 2}},
		}, []string{"2000 asks", "for ann"}},
	} {
		db := open(t, t.TempDir())
		add(t, db, asks("1", "1000"), asks("2", "2000"))
		if err := db.Commit(t.Context(), &core.Batch{Journal: []core.Record{opens(group, 1)}}); err != nil {
			t.Fatal(err)
		}
		ctx := epochs.With(t.Context(), db.Epoch())
		if err := db.Forget(t.Context(), jay); err != nil {
			t.Fatal(err)
		}
		if err := db.Commit(ctx, tc.batch); err != nil {
			t.Fatal(err)
		}
		want(t, name, said(t, db, group), tc.left)
	}
}

// TestWhomATurnAnswers: a turn answers the users whose entries it ends, and no other users who
// wait.
func TestWhomATurnAnswers(t *testing.T) {
	super := core.MustPath("chat/super")
	move := core.Event{Kind: core.KindMigration, Message: core.Message{Path: group}, To: super}
	waiting := asks("1", "2000")
	waiting.Message.Path = super
	nobodys := asks("2", "")
	own := reply("3", "the bot reminds itself")
	own.Due, own.Message.Author.ID = true, "bot"
	for name, tc := range map[string]struct {
		before []core.Entry
		move   bool
		ends   core.Batch
		people string
	}{
		"one that is settled": {[]core.Entry{asks("1", "2000"), asks("2", "1000")}, false,
			core.Batch{Settled: []core.TurnID{{Path: group, Seq: 2}}}, `["1000"]`},
		"all up to a mark": {[]core.Entry{asks("1", "2000"), nobodys, own, asks("4", "1000"), asks("5", "1000")}, false,
			core.Batch{Answered: []core.TurnID{{Path: group, Seq: 5}}}, `["2000","1000"]`},
		"in a place that moved": {[]core.Entry{waiting, asks("2", "1000")}, true,
			core.Batch{Answered: []core.TurnID{{Path: group, Seq: 1}}}, `["1000"]`},
	} {
		db := open(t, t.TempDir())
		add(t, db, tc.before...)
		if tc.move {
			if err := db.Commit(t.Context(), &core.Batch{Change: []core.Event{move}}); err != nil {
				t.Fatal(err)
			}
		}
		tc.ends.Append = []core.Entry{reply("r", "ANSWER")}
		if err := db.Commit(t.Context(), &tc.ends); err != nil {
			t.Fatal(err)
		}
		found := false
		for line := range strings.Lines(exported(t, db, core.Path{})) {
			if strings.Contains(line, "ANSWER") {
				found = strings.Contains(line, `"answers":`+tc.people)
				if !found {
					t.Errorf("%s: unexpected answer %s", name, line)
				}
			}
		}
		if !found {
			t.Errorf("%s: the answer is missing", name)
		}
	}
}

// TestOldWordsOfNobody: the bot's own messages and quotes without an author stay after everybody
// was forgotten. A command without a target only loses its quote.
func TestOldWordsOfNobody(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	db := openWith(t, t.TempDir(), Options{Clock: func() time.Time { return now }})
	if err := db.Forget(t.Context(), core.Path{}); err != nil {
		t.Fatal(err)
	}
	before, after := now.Add(-time.Hour), now.Add(time.Hour)
	own := reply("1", "of the bot")
	own.Message.Author.ID, own.Message.Time = "bot", before
	quoting := message(group, "2", "of ann")
	quoting.Message.Author.ID, quoting.Message.Time = "2000", after
	quoting.Message.ReplyTo = &core.Quote{ID: "0", From: core.Author{Name: "Channel"}, Text: "of nobody", Time: before}
	command := message(group, "3", "/help")
	command.Message.Author.ID, command.Message.Time = "2000", after
	command.Message.ReplyTo = &core.Quote{ID: "9", From: core.Author{ID: "1000"}, Text: "OLD", Time: before}
	command.Command = &core.Command{Name: "help"}
	add(t, db, own, quoting, command)
	want(t, "texts", said(t, db, group), []string{"of the bot", "of ann", "/help"})
	entries := everything(t, db)[group]
	want(t, "quote of nobody", entries[1].Message.ReplyTo.Text, "of nobody")
	want(t, "quote of jay", entries[2].Message.ReplyTo, &core.Quote{ID: "9"})
}

// TestFormerTextsOfAPerson: a user's export has the facts that they worded in an earlier text.
func TestFormerTextsOfAPerson(t *testing.T) {
	db := open(t, t.TempDir())
	for _, person := range []core.Path{jay, ann} {
		f := core.Fact{Text: "now " + person.String(), Origin: group, By: core.MustPath("chat/@user/3000")}
		f.Former = []core.Former{{Text: "before", By: person}}
		save(t, db, f)
	}
	out := exported(t, db, jay)
	if !strings.Contains(out, "now "+jay.String()) || strings.Contains(out, "now "+ann.String()) {
		t.Error(out)
	}
}

// TestUnreadableFactsAreNotUnknown: replacing or dropping an unreadable fact reports that it is
// damaged.
func TestUnreadableFactsAreNotUnknown(t *testing.T) {
	db, err := Open(t.TempDir(), Options{NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	fact := save(t, db, core.Fact{Text: "tea", Origin: group})
	if err := db.update(t.Context(), func(t *tx) { t.bucket(bucketFacts).Put(factKey(&fact), []byte("{")) }); err != nil {
		t.Fatal(err)
	}
	_, err = db.SaveFact(t.Context(), core.Fact{ID: fact.ID, Text: "milk", Origin: kitchen})
	for _, err := range []error{err, db.DropFact(t.Context(), fact.ID, group)} {
		if err == nil || errors.Is(err, core.ErrUnknown) {
			t.Error(err)
		}
	}
}

// TestOneCommitFailsDuringForgetting: whichever commit fails, Forget returns the error and works
// the next time.
func TestOneCommitFailsDuringForgetting(t *testing.T) {
	commits := 2
	for last := 0; last < commits; last += coretest.Sample(1, 3) {
		db := open(t, t.TempDir())
		populated(t, db)
		d, begun := interceptWrites(t, db), 0
		d.onWrite(func(buf []byte, at int64) (int, error) {
			if isMeta(at) {
				if begun++; begun == last {
					return 0, syscall.EIO
				}
			}
			return handleOf(db).WriteAt(buf, at)
		})
		err := db.Forget(t.Context(), jay)
		switch d.onWrite(nil); {
		case last == 0:
			commits = begun
		case !strings.Contains(fmt.Sprint(err), syscall.EIO.Error()):
			t.Errorf("commit %d of %d: %v, want EIO", last, commits, err)
		}
		if err := db.Forget(t.Context(), jay); err != nil {
			t.Errorf("the second time: %v", err)
		}
		left := map[string]int{
			bucketFacts: 1, bucketPlugins: 2, bucketStates: 0, bucketUsage: 1, bucketJournal: 1,
		}
		for bucket, n := range left {
			want(t, fmt.Sprint(bucket, " after commit ", last), size(t, db, bucket), n)
		}
		want(t, "the group", said(t, db, group), []string{"ann speaks", "as jay said", "ann waits"})
	}
}
