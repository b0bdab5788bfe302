package memory

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"synthbot/core"
	"synthbot/core/llm"
)

var (
	group = core.MustPath("chat/group")
	topic = core.MustPath("chat/group/7")
	alone = core.MustPath("chat/1000") // private, with jay
	jay   = core.MustPath("chat/@user/1000")
	ann   = core.MustPath("chat/@user/2000")
	day   = time.Date(2026, 11, 20, 8, 0, 0, 0, time.UTC)
)

func save(t testing.TB, db *DB, f core.Fact) core.Fact {
	t.Helper()
	saved, err := db.SaveFact(t.Context(), f)
	if err != nil {
		t.Fatal(err)
	}
	return saved
}

func recall(t testing.TB, db *DB, q core.FactQuery) (said []string) {
	t.Helper()
	if q.N == 0 {
		q.N = 10
	}
	found, err := db.Recall(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range found {
		said = append(said, f.Text)
	}
	return said
}

func want[T any](t testing.TB, what string, got, want T) {
	t.Helper()
	if diff := equal(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

func TestRecallByWords(t *testing.T) {
	db := open(t, t.TempDir())
	for _, f := range []core.Fact{
		{Text: "Jay keeps three dogs and a cat", Language: "en", Origin: group, Time: day},
		{Text: "Die Häuser in der Straße gehören Ann", Language: "de", Origin: group, Time: day},
		{Text: "Jay likes running in the rain", Language: "en", Origin: group, Time: day, Tags: []string{"Sport"}},
		{Text: "猫が好きです", Language: "ja", Origin: group, Time: day},
	} {
		save(t, db, f)
	}
	for _, tc := range []struct {
		q    core.FactQuery
		want []string
	}{
		{core.FactQuery{Text: "a dog"}, []string{"Jay keeps three dogs and a cat"}},
		{core.FactQuery{Text: "who runs?"}, []string{"Jay likes running in the rain"}},
		{core.FactQuery{Text: "Haus"}, []string{"Die Häuser in der Straße gehören Ann"}},
		{core.FactQuery{Text: "dogs"}, []string{"Jay keeps three dogs and a cat"}},
		{core.FactQuery{Text: "好き"}, []string{"猫が好きです"}},
		{core.FactQuery{Tags: []string{"sport"}}, []string{"Jay likes running in the rain"}},
		{core.FactQuery{Text: "sport"}, []string{"Jay likes running in the rain"}},
		{core.FactQuery{Text: "nothing of that kind"}, nil},
	} {
		tc.q.See = []core.Path{group}
		want(t, fmt.Sprintf("%+v", tc.q), recall(t, db, tc.q), tc.want)
	}
	want(t, "everything", len(recall(t, db, core.FactQuery{See: []core.Path{group}})), 4)
	want(t, "two at most", len(recall(t, db, core.FactQuery{See: []core.Path{group}, N: 2})), 2)
}

// TestRecallInScripts: search finds words in scripts without spaces, next to other scripts, and
// whatever form accents have.
func TestRecallInScripts(t *testing.T) {
	const python, phone, cat, khmer, caffe = "我用Python写代码", "iPhone15を買った", "猫が好きです", "ខ្ញុំចូលចិត្តឆ្មា", "José ama il caffè"
	db := open(t, t.TempDir())
	for language, text := range map[string]string{"zh": python, "ja": phone, "": cat, "km": khmer, "it": caffe} {
		save(t, db, core.Fact{Text: text, Language: language, Origin: group, Time: day, Tags: []string{"é"}})
	}
	for q, found := range map[string]string{
		"Python": python, "写代码": python, "python 教程": python, "iphone15": phone, "買った": phone, "15": "",
		"猫": cat, "猫は？": cat, "です": cat, "コーヒー": "", "ឆ្មា": khmer, "Jose\u0301": caffe, "caffe\u0300": caffe,
	} {
		said := recall(t, db, core.FactQuery{Text: q, See: []core.Path{group}})
		if strings.Join(said, "") != found {
			t.Errorf("%q finds %q, want %q", q, said, found)
		}
	}
	want(t, "by tag", len(recall(t, db, core.FactQuery{Tags: []string{"e\u0301"}, See: []core.Path{group}})), 5)
}

// TestFactsStayWhereTheyWereSaid: no operation reveals a fact to a place that may not see it.
func TestFactsStayWhereTheyWereSaid(t *testing.T) {
	checkFactsStay(t, open(t, t.TempDir()), func() {})
}

func checkFactsStay(t *testing.T, db *DB, settled func()) {
	save(t, db, core.Fact{Text: "jay told a secret", Origin: alone, About: []core.Path{jay}, Tags: []string{"x"}, Topic: "secret"})
	save(t, db, core.Fact{Text: "jay told the topic", Origin: topic, About: []core.Path{jay}, Tags: []string{"x"}})
	save(t, db, core.Fact{Text: "jay told the group", Origin: group, About: []core.Path{jay}, Tags: []string{"x"}})
	save(t, db, core.Fact{Text: "jay told everybody", About: []core.Path{jay}, Tags: []string{"x"}})
	settled()
	other := core.MustPath("chat/group2")
	for _, q := range []core.FactQuery{{Text: "jay told"}, {Text: "jay"}, {Tags: []string{"x"}}, {About: []core.Path{jay}}, {}} {
		for _, tc := range []struct {
			see  []core.Path
			want []string
		}{
			{[]core.Path{alone}, []string{"jay told a secret", "jay told everybody"}},
			{[]core.Path{group}, []string{"jay told everybody", "jay told the group"}},
			{[]core.Path{topic}, []string{"jay told everybody", "jay told the group", "jay told the topic"}},
			{[]core.Path{other}, []string{"jay told everybody"}},
			{[]core.Path{other, topic}, []string{"jay told everybody", "jay told the group", "jay told the topic"}},
			{nil, nil},
		} {
			q.See = tc.see
			got := recall(t, db, q)
			slices.Sort(got)
			want(t, fmt.Sprintf("%+v", q), got, tc.want)
		}
	}
	same := save(t, db, core.Fact{Text: "jay told a secret", Origin: group, About: []core.Path{jay}, Topic: "secret"})
	want(t, "a fact of another origin is another fact", len(same.Former), 0)
	if err := db.DropFact(t.Context(), same.ID, alone, other); !errors.Is(err, core.ErrUnknown) {
		t.Errorf("dropping a fact from a place that cannot see it: unexpected error %v", err)
	}
	if err := db.DropFact(t.Context(), same.ID, topic); err != nil {
		t.Error(err)
	}
}

func TestTheNewestWins(t *testing.T) {
	db := open(t, t.TempDir())
	about := []core.Path{jay}
	first := save(t, db, core.Fact{Text: "Jay lives in Rome", Language: "en", Origin: group, About: about, Topic: "home", Time: day, By: jay, Tags: []string{"a"}, Importance: 3})
	again := save(t, db, core.Fact{Text: "In Rome Jay lives!", Language: "en", Origin: group, About: about, Time: day.Add(1), Tags: []string{"b"}, By: jay})
	want(t, "one that says the same", again.ID, first.ID)
	moved := save(t, db, core.Fact{Text: "Jay moved to Oslo", Language: "en", Origin: group, About: about, Topic: "Home", Time: day.Add(2), By: ann, Rank: core.RankModerator})
	want(t, "one of the same topic", moved.ID, first.ID)
	moved = save(t, db, core.Fact{Text: "Jay lives in Bergen", Language: "en", Origin: group, About: about, Topic: "home", Time: day.Add(3), By: jay})
	want(t, "what it said before", moved.Former, []core.Former{
		{Text: "Jay moved to Oslo", Time: day.Add(2), By: ann}, {Text: "In Rome Jay lives!", Time: day.Add(1), By: jay}, {Text: "Jay lives in Rome", Time: day, By: jay},
	})
	other := save(t, db, core.Fact{Text: "Jay works in Oslo", Language: "en", Origin: topic, About: about, Topic: "home"})
	if other.ID == first.ID {
		t.Error("a fact of another origin was replaced")
	}
	want(t, "the old words", recall(t, db, core.FactQuery{Text: "Oslo", See: []core.Path{group}}), nil)
	want(t, "the new words", recall(t, db, core.FactQuery{Text: "Bergen", See: []core.Path{group}}), []string{"Jay lives in Bergen"})
	changed := save(t, db, core.Fact{ID: first.ID, Text: "Jay lived in Rome once", Language: "en", Time: day.Add(4)})
	want(t, "changed", changed.Importance, 3)
	want(t, "tags", changed.Tags, []string{"b", "a"})
	want(t, "former", len(changed.Former), 4)
	if _, err := db.SaveFact(t.Context(), core.Fact{ID: "zzz", Text: "x"}); !errors.Is(err, core.ErrUnknown) {
		t.Errorf("got %v, want core.ErrUnknown", err)
	}
	if _, err := db.SaveFact(t.Context(), core.Fact{Text: strings.Repeat("x", 1<<20)}); !errors.Is(err, ErrBatch) {
		t.Errorf("got %v, want ErrBatch", err)
	}
}

func TestRecencyAndImportanceDecideAmongEquals(t *testing.T) {
	db := open(t, t.TempDir())
	db.clock = func() time.Time { return day }
	save(t, db, core.Fact{Text: "old cheese", Origin: group, Time: day.AddDate(-1, 0, 0)})
	save(t, db, core.Fact{Text: "new cheese", Origin: group, Time: day})
	save(t, db, core.Fact{Text: "great cheese", Origin: group, Time: day.AddDate(-1, 0, 0), Importance: 10})
	want(t, "order", recall(t, db, core.FactQuery{Text: "cheese", See: []core.Path{group}})[2], "old cheese")
}

func TestPluginItems(t *testing.T) {
	dir := t.TempDir()
	db := open(t, dir)
	put := func(plugin string, path core.Path, key, value string, version uint64) (uint64, error) {
		return db.Items(plugin).Put(t.Context(), core.Item{Path: path, Key: key, Version: version,
			Value: json.RawMessage(value)})
	}
	for i, version := range []uint64{0, 1, core.AnyVersion} {
		if got, err := put("bio", jay, "main", `{"n":1}`, version); err != nil || got != uint64(i+1) {
			t.Errorf("unexpected version %d, %v", got, err)
		}
	}
	if _, err := put("bio", jay, "main", `{}`, 1); !errors.Is(err, core.ErrVersion) {
		t.Errorf("got %v, want core.ErrVersion", err)
	}
	if _, err := put("bio", jay, "main", `{`, 3); !errors.Is(err, ErrBatch) {
		t.Errorf("got %v, want ErrBatch", err)
	}
	for _, path := range []core.Path{{}, group, topic, core.MustPath("chat/group2"), ann} {
		put("bio", path, "k", `"`+path.String()+`"`, 0)
		put("bios", path, "k", `2`, 0)
	}
	list := func(plugin string, root core.Path) (paths []string) {
		items, err := db.Items(plugin).List(t.Context(), root)
		if err != nil {
			t.Error(err)
		}
		for _, item := range items {
			paths = append(paths, item.Path.String()+"|"+item.Key)
		}
		return paths
	}
	want(t, "the group", list("bio", group), []string{"chat/group|k", "chat/group/7|k"})
	want(t, "all", list("bio", core.Path{}), []string{"|k", "chat/@user/1000|main", "chat/@user/2000|k", "chat/group|k", "chat/group/7|k", "chat/group2|k"})
	want(t, "none", list("bi", core.Path{}), nil)
	item, ok, err := db.Items("bio").Get(t.Context(), jay, "main")
	if err != nil || !ok || string(item.Value) != `{"n":1}` || item.Version != 3 {
		t.Errorf("unexpected item %+v, %t, %v", item, ok, err)
	}
	if _, err := db.Items("bio").Put(t.Context(), core.Item{Path: jay, Key: "main", Version: 3}); err != nil {
		t.Error(err)
	}
	if _, ok, err := db.Items("bio").Get(t.Context(), jay, "main"); ok || err != nil {
		t.Errorf("the item was deleted, but found: %t, %v", ok, err)
	}
}

// stateIn returns the state of the conversation in a place.
func stateIn(t *testing.T, db *DB, path core.Path) (s core.State, err error) {
	t.Helper()
	err = db.View(t.Context(), func(v core.View) error {
		s, err = v.State(path)
		return err
	})
	return s, err
}

func TestStatesAndUse(t *testing.T) {
	db := open(t, t.TempDir())
	s := core.State{Topic: "tea", SlotsFilled: map[string]json.RawMessage{"x": json.RawMessage(`1`)}}
	if err := setState(t, db, group, s); err != nil {
		t.Fatal(err)
	}
	got, err := stateIn(t, db, group)
	want(t, "state", got, s)
	if got, _ := stateIn(t, db, topic); !got.IsZero() || err != nil {
		t.Errorf("unexpected state of the topic: %+v, %v", got, err)
	}
	setState(t, db, group, core.State{})
	if got, err := stateIn(t, db, group); !got.IsZero() || err != nil {
		t.Errorf("unexpected state after clearing: %+v, %v", got, err)
	}
	use := Use{Day: "2026-11-20", Person: jay, Engine: "home", Calls: 1, Usage: llm.Usage{In: 10, Out: 5}, Cost: new(0.1)}
	free := Use{Day: "2026-11-20", Person: jay, Engine: "work", Calls: 1, Cost: new(0.0)}
	old := Use{Day: "2026-11-20", Person: jay, Engine: "zoo", Calls: 1} // by a version that stored no cost
	nobody := Use{Day: "2026-11-20", Engine: "home", Calls: 2, Usage: llm.Usage{In: 1}}
	late := Use{Day: "2026-11-21", Person: jay, Engine: "home", Calls: 1}
	more := old
	more.Cost = new(0.5)
	if err := <-db.AddUse(use, use, free, old, more, nobody, late); err != nil {
		t.Fatal(err)
	}
	uses, err := db.Uses(t.Context(), "2026-11-20", "2026-11-20")
	if err != nil {
		t.Fatal(err)
	}
	use.Calls, use.In, use.Out, use.Cost = 2, 20, 10, new(0.2)
	old.Calls = 2
	want(t, "use", uses, []Use{nobody, use, free, old})
}

// TestUnreadableUse checks that counters of which only a part can be read begin again.
func TestUnreadableUse(t *testing.T) {
	db := openWith(t, t.TempDir(), Options{Log: slog.New(slog.DiscardHandler)})
	use := Use{Day: "2026-11-20", Person: jay, Engine: "home", Calls: 1}
	value := []byte{1, 1, 8, 2, 9} // four calls, and a field that is cut off
	err := db.update(t.Context(), func(t *tx) { t.bucket(bucketUsage).Put(usageKey(use), value) })
	if err := errors.Join(err, <-db.AddUse(use)); err != nil {
		t.Fatal(err)
	}
	uses, err := db.Uses(t.Context(), use.Day, use.Day)
	if err != nil {
		t.Fatal(err)
	}
	want(t, "use", uses, []Use{use})
}

func TestKnowledgeMoves(t *testing.T) {
	db := open(t, t.TempDir())
	super := core.MustPath("chat/super")
	add(t, db, message(group, "1", "x"))
	save(t, db, core.Fact{Text: "said in the group", Origin: group})
	save(t, db, core.Fact{Text: "said in the topic", Origin: topic})
	setState(t, db, group, core.State{Topic: "tea"})
	db.Items("bio").Put(t.Context(), core.Item{Path: topic, Key: "k", Value: json.RawMessage(`1`)})
	today, old := db.clock().Format(time.DateOnly), "2020-01-01"
	before := []Use{
		{Day: today, Person: group, Engine: "e", Calls: 1}, {Day: today, Person: super, Engine: "e", Calls: 2},
		{Day: today, Person: topic, Engine: "e", Calls: 4}, {Day: old, Person: group, Engine: "e", Calls: 8},
	}
	if err := <-db.AddUse(before...); err != nil {
		t.Fatal(err)
	}
	if err := db.Commit(t.Context(), &core.Batch{Change: []core.Event{{Kind: core.KindMigration,
		Message: core.Message{Path: group}, To: super}}}); err != nil {
		t.Fatal(err)
	}
	moved := core.MustPath("chat/super/7")
	for _, see := range []core.Path{topic, moved} {
		want(t, "memories", len(recall(t, db, core.FactQuery{Text: "said", See: []core.Path{see}})), 2)
	}
	uses, err := db.Uses(t.Context(), old, today)
	if err != nil {
		t.Fatal(err)
	}
	want(t, "uses", uses, []Use{
		before[3], {Day: today, Person: super, Engine: "e", Calls: 3}, {Day: today, Person: moved, Engine: "e", Calls: 4},
	})
	s, err := stateIn(t, db, super)
	want(t, "state", s.Topic, "tea")
	_, ok, err2 := db.Items("bio").Get(t.Context(), moved, "k")
	if !ok || err != nil || err2 != nil {
		t.Errorf("the item did not move: %v, %v", err, err2)
	}
}

func TestRetention(t *testing.T) {
	db := open(t, t.TempDir())
	now := day
	db.clock = func() time.Time { return now }
	b := &core.Batch{}
	for i := range 1200 {
		e := message([]core.Path{group, topic, alone}[i%3], fmt.Sprint(i), "x")
		e.Message.Time = day.Add(-time.Duration(1200-i) * time.Hour)
		e.Due = i == 300 // the group's 101st message
		b.Append = append(b.Append, e)
	}
	if err := db.Commit(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	old := core.Record{Key: core.Key{Turn: core.TurnID{Path: topic, Seq: 1}}, Progress: core.ProgressDone,
		Time: day.Add(-time.Hour * 500)}
	open1 := core.Record{Key: core.Key{Turn: core.TurnID{Path: topic, Seq: 399}}, Progress: core.ProgressDone,
		Time: day.Add(-time.Hour * 500)}
	if err := db.Commit(t.Context(), &core.Batch{Journal: []core.Record{old, open1},
		Answered: []core.TurnID{{Path: topic, Seq: 5}}}); err != nil {
		t.Fatal(err)
	}
	c := Config{Journal: 168 * time.Hour, Keep: []Retention{
		{Path: core.Path{}, Age: 300 * time.Hour}, {Path: topic, Messages: 10},
	}}
	if err := db.Prune(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	left := everything(t, db)
	want(t, "by count", len(left[topic]), 10)
	want(t, "by age", len(left[alone]), 100)
	want(t, "what waits stays, and what follows", len(left[group]), 300)
	db.view(t.Context(), func(v *view) error {
		one, _ := v.Journal(old.Key.Turn)
		two, err := v.Journal(open1.Key.Turn)
		want(t, "old journal", len(one), 0)
		want(t, "journal of what is not answered", len(two), 1)
		return err
	})
	known := func() bool {
		b := &core.Batch{Append: []core.Entry{message(alone, "2", "again")}}
		if err := db.Commit(t.Context(), b); err != nil {
			t.Fatal(err)
		}
		return b.Known[0]
	}
	if !known() {
		t.Error("the id of a pruned message was forgotten at once")
	}
	now = now.Add(2 * idAge)
	if err := db.Prune(t.Context(), Config{}); err != nil {
		t.Fatal(err)
	}
	if known() {
		t.Error("the id of a pruned message was never forgotten")
	}
}

// vocabulary returns a function that makes texts with a realistic distribution of words.
func vocabulary() func() string {
	random := rand.New(rand.NewPCG(3, 4))
	zipf := rand.NewZipf(random, 1.1, 4, 20000)
	return func() string {
		var b strings.Builder
		for range 12 {
			fmt.Fprintf(&b, "word%d ", zipf.Uint64())
		}
		return b.String()
	}
}

// setState stores the state of a conversation.
func setState(t testing.TB, db *DB, place core.Path, s core.State) error {
	t.Helper()
	return db.Commit(t.Context(), &core.Batch{States: map[core.Path]core.State{place: s}})
}

func TestListFacts(t *testing.T) {
	db := open(t, t.TempDir())
	for i := range 25 {
		f := core.Fact{Text: fmt.Sprint("fact ", i), Origin: []core.Path{group, topic, alone, {}, core.MustPath("chat/group2")}[i%5]}
		if i%2 == 0 {
			f.About = []core.Path{jay}
		}
		save(t, db, f)
	}
	list := func(l core.FactPage) (said []string) {
		for pages := 0; ; pages++ {
			facts, next, err := db.ListFacts(t.Context(), l)
			if err != nil || len(facts) > l.N || pages > 30 {
				t.Fatalf("page %d: %d facts, %v", pages, len(facts), err)
			}
			for _, f := range facts {
				said = append(said, strings.TrimPrefix(f.Text, "fact "))
			}
			if next == "" {
				return said
			}
			l.Before = next
		}
	}
	for _, n := range []int{1, 2, 3, 5, 24, 25, 100} {
		want(t, fmt.Sprint("all, by ", n), len(list(core.FactPage{N: n})), 25)
		want(t, fmt.Sprint("the group's, by ", n), list(core.FactPage{Below: group, N: n}), []string{"21", "20", "16", "15", "11", "10", "6", "5", "1", "0"})
		want(t, fmt.Sprint("about jay in private, by ", n), list(core.FactPage{Below: alone, About: jay, N: n}), []string{"22", "12", "2"})
	}
	first := save(t, db, core.Fact{Text: "jay lives in rome", Origin: group, Topic: "home", About: []core.Path{jay}})
	save(t, db, core.Fact{Text: "jay lives in oslo", Origin: group, Topic: "home", About: []core.Path{jay}})
	facts, _, err := db.ListFacts(t.Context(), core.FactPage{N: 1})
	if err != nil || facts[0].ID != first.ID || facts[0].Text != "jay lives in oslo" || facts[0].Former[0].Text != "jay lives in rome" {
		t.Errorf("unexpected facts %+v, %v", facts, err)
	}
	if _, _, err := db.ListFacts(t.Context(), core.FactPage{Before: "!", N: 1}); !errors.Is(err, core.ErrUnknown) {
		t.Errorf("got %v, want core.ErrUnknown", err)
	}
}

// TestAFactIsChangedFromWhereItIsSeen: a fact can only be changed from a place that can see it,
// since an ID may be guessed.
func TestAFactIsChangedFromWhereItIsSeen(t *testing.T) {
	db := open(t, t.TempDir())
	secret := save(t, db, core.Fact{Text: "a secret", Origin: alone})
	if got, err := db.SaveFact(t.Context(), core.Fact{ID: secret.ID, Text: "guessed", Origin: group}); !errors.Is(err, core.ErrUnknown) || got.Former != nil {
		t.Errorf("%+v, %v, want core.ErrUnknown", got, err)
	}
	save(t, db, core.Fact{ID: secret.ID, Text: "another secret", Origin: alone})
	want(t, "changed", recall(t, db, core.FactQuery{See: []core.Path{alone}}), []string{"another secret"})
}

// TestKeysOfItemsAreBounded: the limit of an item's key includes the plugin's name.
func TestKeysOfItemsAreBounded(t *testing.T) {
	db := open(t, t.TempDir())
	for _, tc := range []struct {
		plugin string
		key    int
		ok     bool
	}{{"bio", maxPluginKey - 3, true}, {"bio", maxPluginKey - 2, false}, {"", 1, false}, {"bio\x00", 1, false}} {
		_, err := db.Items(tc.plugin).Put(t.Context(), core.Item{Key: strings.Repeat("k", tc.key), Value: json.RawMessage(`1`)})
		if (err == nil) != tc.ok || err != nil && !errors.Is(err, ErrBatch) {
			t.Errorf("plugin %q, a key of %d bytes: unexpected error %v", tc.plugin, tc.key, err)
		}
	}
	setState(t, db, group, core.State{Topic: "tea"})
	setState(t, db, group, core.State{})
	want(t, "states that say nothing", size(t, db, bucketStates), 0)
}

// TestTagsAreBounded: a memory that replaces another one takes over its tags up to the limit.
func TestTagsAreBounded(t *testing.T) {
	db := open(t, t.TempDir())
	tags := func(name string, n int) (all []string) {
		for i := range n {
			all = append(all, fmt.Sprint(name, i))
		}
		return all
	}
	old := save(t, db, core.Fact{Text: "tea", Origin: group, Tags: tags("a", 2)})
	newer := save(t, db, core.Fact{Text: "tea", Origin: group, Tags: tags("b", maxTags-1)})
	want(t, "tags", newer.Tags, append(tags("b", maxTags-1), "a0"))
	want(t, "known", []bool{old.Known, newer.Known}, []bool{false, true})
	other := save(t, db, core.Fact{ID: old.ID, Text: "coffee"})
	want(t, "known with another text", other.Known, false)
	commit(t, db, moves(group, kitchen))
	want(t, "origin after a move", save(t, db, core.Fact{Text: "milk", Origin: group}).Origin, kitchen)
	if err := db.DropFact(t.Context(), "no number!", group); !errors.Is(err, core.ErrUnknown) {
		t.Errorf("got %v, want core.ErrUnknown", err)
	}
}
