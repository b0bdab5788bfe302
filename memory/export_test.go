package memory

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"synthbot/core"
	"synthbot/core/llm"
)

// TestExportIsExact compares exports of everybody, of users and of places with testdata/export.txt,
// since other programs read them.
func TestExportIsExact(t *testing.T) {
	db := openWith(t, t.TempDir(), Options{Clock: func() time.Time { return day }})
	populated(t, db)
	both := message(group, "r", "for both of you")
	both.Self = true
	react := func(person, emoji string) core.Event {
		e := core.Event{Kind: core.KindReaction, Target: "g2", Data: emoji, Message: core.Message{Path: group}}
		e.Message.Author.ID = person
		return e
	}
	err := db.Commit(t.Context(), &core.Batch{
		Append: []core.Entry{both}, Answered: []core.TurnID{{Path: group, Seq: 5}},
		Change: []core.Event{react("2000", "🎉"), react("2000", "👍"), react("3000", "👎")},
	})
	use := Use{Day: "2026-11-21", Person: alone, Engine: "e", Calls: 2, Usage: llm.Usage{In: 3, Out: 4, Cached: 5}, Cost: new(0.25)}
	if err := errors.Join(err, <-db.AddUse(use, Use{Day: "2026-11-21", Engine: "e", Calls: 1})); err != nil {
		t.Fatal(err)
	}
	var all, out bytes.Buffer
	for _, path := range []core.Path{{}, jay, ann, group, alone, core.MustPath("chat"), core.MustPath("other/@user/1000")} {
		var lines bytes.Buffer
		if err := db.Export(t.Context(), &lines, path); err != nil {
			t.Fatal(err)
		}
		if fmt.Fprintf(&out, "%q\n%s", path, &lines); path.IsZero() {
			all = lines
		}
	}
	const golden = "testdata/export.txt"
	if *update {
		if err := os.WriteFile(golden, out.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	stored, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	want(t, "exported", strings.Split(out.String(), "\n"), strings.Split(string(stored), "\n"))

	again, exported := openWith(t, t.TempDir(), Options{Clock: func() time.Time { return day }}), bytes.Buffer{}
	_, added, err := again.Import(t.Context(), bytes.NewReader(all.Bytes()), nil)
	want(t, "added lines", added, strings.Count(all.String(), "\n")-strings.Count(all.String(), `{"record"`))
	_, added, err2 := again.Import(t.Context(), &all, nil)
	want(t, "lines that a second import added", added, 0)
	if err := errors.Join(err, err2, again.Export(t.Context(), &exported, core.Path{})); err != nil {
		t.Fatal(err)
	}
	without := func(text string) (lines []string) { // lines that are not imported, and waiting marks
		for line := range strings.Lines(text) {
			if !strings.HasPrefix(line, `{"record"`) {
				lines = append(lines, strings.ReplaceAll(line, `,"due":true`, ""))
			}
		}
		return lines
	}
	first, _, _ := strings.Cut(out.String()[len("\"\"\n"):], fmt.Sprintf("%q\n", jay))
	want(t, "exported after an import", without(exported.String()), without(first))
}

// TestImportAgain: an import of an older export of the same bot adds nothing, and takes nothing back.
func TestImportAgain(t *testing.T) {
	db := open(t, t.TempDir())
	use := Use{Day: "2026-11-21", Person: jay, Engine: "e", Calls: 2, Usage: llm.Usage{In: 3}, Cost: new(0.25)}
	if err := <-db.AddUse(use); err != nil {
		t.Fatal(err)
	}
	save(t, db, core.Fact{Text: "ann likes tea", Topic: "drinks", Origin: group})
	save(t, db, core.Fact{Text: "ann likes coffee", Topic: "drinks", Origin: group})
	older := exported(t, db, core.Path{})
	if err := <-db.AddUse(use); err != nil {
		t.Fatal(err)
	}
	before := exported(t, db, core.Path{})
	lines, added, err := db.Import(t.Context(), strings.NewReader(older), nil)
	if lines != 2 || added != 0 || err != nil {
		t.Errorf("got %d of %d lines, %v", added, lines, err)
	}
	want(t, "exported after the import", exported(t, db, core.Path{}), before)
	other := open(t, t.TempDir())
	for _, text := range []string{older, before} { // the later one has more calls
		if _, _, err := other.Import(t.Context(), strings.NewReader(text), nil); err != nil {
			t.Fatal(err)
		}
	}
	want(t, "exported by another bot", exported(t, other, core.Path{}), before)
}

// TestImportOfManyLines: an import of more lines than fit one transaction stores each once.
func TestImportOfManyLines(t *testing.T) {
	db, other := open(t, t.TempDir()), open(t, t.TempDir())
	const n = 2*importStep + 7
	b := &core.Batch{}
	for range n {
		b.Append = append(b.Append, message(group, "", "words"))
	}
	var out bytes.Buffer
	if err := errors.Join(db.Commit(t.Context(), b), db.Export(t.Context(), &out, core.Path{})); err != nil {
		t.Fatal(err)
	}
	lines, _, err := other.Import(t.Context(), strings.NewReader("\n \n"+out.String()+"\n"), nil)
	want(t, "lines", lines, n+3)
	want(t, "entries", len(everything(t, other)[group]), n)
	if err != nil {
		t.Error(err)
	}
	for _, db := range []*DB{db, other} {
		_, added, err := db.Import(t.Context(), strings.NewReader(out.String()), nil)
		if err != nil {
			t.Error(err)
		}
		want(t, "lines that a second import added", added, 0)
	}
}

// TestImportWithoutIDs: entries without an id that say the same are added as often as they are missing, also if their
// place has moved.
func TestImportWithoutIDs(t *testing.T) {
	db, other, street := open(t, t.TempDir()), open(t, t.TempDir()), core.MustPath("chat/street")
	later := message(group, "", "words")
	later.Message.Time = later.Message.Time.Add(time.Nanosecond)
	question := message(group, "", "words")
	question.Data = core.QuestionMark + "1.1.1"
	add(t, db, message(group, "", "words"), message(group, "", "words"), later, question, message(group, "", "other words"))
	add(t, other, message(group, "", "words"), message(street, "1", "hello"))
	move := core.Event{Kind: core.KindMigration, Message: core.Message{Path: group}, To: street}
	if err := other.Commit(t.Context(), &core.Batch{Change: []core.Event{move}}); err != nil {
		t.Fatal(err)
	}
	for _, missing := range []int{4, 0} {
		_, added, err := other.Import(t.Context(), strings.NewReader(exported(t, db, core.Path{})), nil)
		if err != nil {
			t.Error(err)
		}
		want(t, "added lines", added, missing)
	}
	want(t, "entries", len(everything(t, other)[street]), 6)
}

// TestImportCountsAgain: an entry without an id is known in each try of a transaction.
func TestImportCountsAgain(t *testing.T) {
	db := open(t, t.TempDir())
	add(t, db, message(group, "", "words"))
	e, unknown, known := message(group, "", "words"), message(group, "", "other words"), make(twins)
	err := db.update(t.Context(), func(t *tx) { known.take(t, &unknown) })
	for try := range 2 {
		found := false
		left := known.clone()
		err = cmp.Or(err, db.update(t.Context(), func(t *tx) { found = left.take(t, &e) }))
		want(t, fmt.Sprintf("known in try %d", try), found, true)
	}
	if err != nil {
		t.Error(err)
	}
}

// TestImportRefuses: an invalid line ends the import; the lines before it are kept.
func TestImportRefuses(t *testing.T) {
	db := open(t, t.TempDir())
	good := `{"state":{"path":"chat/group","state":{"topic":"tea"}}}`
	reaction := func(path, id, person, emoji string) string {
		return fmt.Sprintf(`{"reaction":{"path":%q,"id":%q,"person":%q,"emoji":[%s]}}`, path, id, person, emoji)
	}
	long := strings.Repeat("x", maxIDBytes+1)
	emoji := strings.Repeat(`"x",`, maxReactors)
	for name, tc := range map[string]struct {
		line string
		ok   bool
	}{
		"a state": {good, true}, "a state of no place": {`{"state":{"state":{"topic":"tea"}}}`, false},
		"a state that says nothing": {`{"state":{"path":"chat/group"}}`, true},
		"nothing":                   {`{}`, false}, "no JSON": {`{`, false}, "text behind the JSON": {good + ` {"state":{}}`, false}, "another field": {`{"state":{"path":"chat/group"},"other":1}`, false},
		"a use": {`{"use":{"day":"2026-11-20","engine":"e","calls":1}}`, true}, "a use of no day": {`{"use":{"engine":"e"}}`, false},
		"a use of an invalid day":      {`{"use":{"day":"9999-99-99","engine":"e","calls":1}}`, false},
		"a use with a negative count":  {`{"use":{"day":"2026-11-20","engine":"e","calls":1,"in":-5}}`, false},
		"a use with a negative cost":   {`{"use":{"day":"2026-11-20","engine":"e","calls":1,"cost":-1}}`, false},
		"a use of an invalid engine":   {`{"use":{"day":"2026-11-20","engine":"e\u0000","calls":1}}`, false},
		"an entry of an invalid rank":  {`{"entry":{"kind":"message","message":{"path":"chat/group","author":{"id":"1","rank":99}}}}`, false},
		"a quote of an invalid rank":   {`{"entry":{"kind":"message","message":{"path":"chat/group","reply_to":{"id":"1","from":{"id":"1","rank":4}}}}}`, false},
		"a forward of an invalid rank": {`{"entry":{"kind":"message","message":{"path":"chat/group","foreign":[{"kind":"forward","from":{"id":"1","rank":4}}]}}}`, false},
		"an entry of the highest rank": {`{"entry":{"kind":"message","message":{"path":"chat/group","author":{"id":"1","rank":3}}}}`, true},
		"an entry of no place":         {`{"entry":{"kind":"message"}}`, false}, "an empty memory": {`{"memory":{}}`, false},
		"an item of no plugin":  {`{"item":{"key":"k","value":1}}`, false},
		"a reaction":            {reaction("chat/group", "1", "1000", `"x"`), true},
		"a reaction nowhere":    {reaction("", "1", "1000", `"x"`), false},
		"a reaction to nothing": {reaction("chat/group", "", "1000", `"x"`), false},
		"anonymous reaction":    {reaction("chat/group", "1", "", `"x"`), false},
		"a long id":             {reaction("chat/group", long, "1000", `"x"`), false},
		"the longest ids":       {reaction("chat/group", long[1:], long[1:], `"x"`), true},
		"a long person":         {reaction("chat/group", "1", long, `"x"`), false},
		"no emoji":              {reaction("chat/group", "1", "1000", `"x",""`), false},
		"taken away":            {reaction("chat/group", "1", "1000", `"`+core.TakenAway+`x"`), false},
		"many emoji":            {reaction("chat/group", "1", "1000", emoji+`"x"`), false},
		"the most emoji":        {reaction("chat/group", "1", "1000", emoji[:len(emoji)-1]), true},
		"a long emoji":          {reaction("chat/group", "1", "1000", fmt.Sprintf("%q", long[:maxEmoji+1])), false},
		"the longest emoji":     {reaction("chat/group", "1", "1000", fmt.Sprintf("%q", long[:maxEmoji])), true},
	} {
		lines, _, err := db.Import(t.Context(), strings.NewReader(good+"\n"+tc.line+"\n"+good), nil)
		if (err == nil) != tc.ok || !tc.ok && (!errors.Is(err, ErrBatch) || !strings.Contains(err.Error(), "line 2")) {
			t.Errorf("%s: unexpected error %v", name, err)
		}
		if wanted := map[bool]int{true: 3, false: 2}[tc.ok]; lines != wanted {
			t.Errorf("%s: %d lines, want %d", name, lines, wanted)
		}
		s, err := stateIn(t, db, group)
		if s.Topic != "tea" || err != nil {
			t.Errorf("%s: the line before is lost (%v)", name, err)
		}
		if err := setState(t, db, group, core.State{}); err != nil {
			t.Fatal(err)
		}
	}
}

// TestExportOfWhatPluginsStore: a user's export has the items under their path and those that have
// their path as key.
func TestExportOfWhatPluginsStore(t *testing.T) {
	db := open(t, t.TempDir())
	for _, item := range []core.Item{
		{Path: jay, Key: "under"}, {Path: group, Key: jay.String()}, {Path: group, Key: group.String()}, {Path: group, Key: "other"},
	} {
		item.Value, item.Version = []byte("1"), core.AnyVersion
		if _, err := db.Items("quiz").Put(t.Context(), item); err != nil {
			t.Fatal(err)
		}
	}
	for path, n := range map[core.Path]int{jay: 2, ann: 0, group: 3, alone: 0} {
		var out bytes.Buffer
		if err := db.Export(t.Context(), &out, path); err != nil {
			t.Fatal(err)
		}
		want(t, "items of "+path.String(), strings.Count(out.String(), `{"item"`), n)
	}
}

// lister is a writer that lists a directory at each write.
type lister struct {
	dir  string
	seen []string
}

func (l *lister) Write(b []byte) (int, error) {
	list, err := os.ReadDir(l.dir)
	for _, f := range list {
		l.seen = append(l.seen, f.Name())
	}
	return len(b), err
}

// TestExportLeavesNoFile: the temporary file of an export has no name and is closed at the end.
func TestExportLeavesNoFile(t *testing.T) {
	dir := t.TempDir()
	db := furnished(t, dir)
	l := &lister{dir: dir}
	if err := db.Export(t.Context(), l, core.Path{}); err != nil {
		t.Fatal(err)
	}
	slices.Sort(l.seen)
	for _, name := range slices.Compact(l.seen) {
		if name != FileName && name != FileName+reserveSuffix {
			t.Errorf("the file %s exists during the export", name)
		}
	}
	list, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Skip(err)
	}
	for _, fd := range list {
		if name, _ := os.Readlink("/proc/self/fd/" + fd.Name()); strings.HasPrefix(name, dir+"/.spool") {
			t.Errorf("the file %s was not closed", name)
		}
	}
}

// TestExportOfWhatCannotBeRead: an export leaves out unreadable records and logs them.
func TestExportOfWhatCannotBeRead(t *testing.T) {
	var log strings.Builder
	db, err := Open(t.TempDir(), Options{Log: slog.New(slog.NewTextHandler(&log, nil)), NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	populated(t, db)
	broken := []byte("{")
	use := usageKey(Use{Day: "2026-11-20", Person: ann, Engine: "e"})
	plan := append(turnKey(core.TurnID{Path: group, Seq: 4}), 0, 1, 0, 0, 0, 0)
	err = db.update(t.Context(), func(t *tx) {
		t.bucket(bucketLog).Put(seqKey(placeKey(group), 3), []byte{1, 9})
		t.bucket(bucketFacts).Put(binary.BigEndian.AppendUint64(nil, 4), broken)
		t.bucket(bucketStates).Put(placeKey(group), broken)
		t.bucket(bucketPlugins).Put(pluginKey("bio", ann, "k"), broken)
		t.bucket(bucketUsage).Put(use, []byte{1, 9})
		t.bucket(bucketJournal).Put(plan, broken)
	})
	var out bytes.Buffer
	err2 := db.Export(t.Context(), &out, core.Path{})
	if err := errors.Join(err, err2, db.Export(t.Context(), &out, jay)); err != nil {
		t.Fatal(err)
	}
	for _, what := range []string{"log: ", "facts: ", "states: ", "plugins: ", "usage: ", "journal: "} {
		if !strings.Contains(log.String(), what) {
			t.Errorf("the log lacks %s", what)
		}
	}
	for _, left := range []string{"as jay said", "likes tea"} {
		if strings.Contains(out.String(), left) {
			t.Errorf("%q was exported", left)
		}
	}
}

// TestImportOfReactionsToKnownEntries: imported reactions are added to an entry that has none,
// known reactions stay, and each can be removed.
func TestImportOfReactionsToKnownEntries(t *testing.T) {
	db := open(t, t.TempDir())
	react := func(person, emoji string) {
		e := core.Event{Kind: core.KindReaction, Target: "1", Data: emoji, Message: core.Message{Path: group}}
		e.Message.Author.ID = person
		commit(t, db, &core.Batch{Change: []core.Event{e}})
	}
	reactions := func() map[string]int { return everything(t, db)[group][0].Reactions }
	commit(t, db, &core.Batch{Append: []core.Entry{message(group, "1", "words")}})
	line := `{"reaction":{"path":"chat/group","id":"1","person":%q,"emoji":["👍","👍"]}}` + "\n"
	for _, person := range []string{"1000", "1000", "2000"} {
		if _, _, err := db.Import(t.Context(), strings.NewReader(fmt.Sprintf(line, person)), nil); err != nil {
			t.Fatal(err)
		}
	}
	want(t, "reactions after the import", reactions(), map[string]int{"👍": 2})
	react("1000", core.TakenAway+"👍")
	want(t, "reactions after one was taken away", reactions(), map[string]int{"👍": 1})
	if err := db.Forget(t.Context(), ann); err != nil {
		t.Error(err)
	}
	react("2000", "")
	want(t, "reactions in the end", reactions(), nil)
}
