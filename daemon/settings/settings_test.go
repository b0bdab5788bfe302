package settings_test

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"synthbot/config"
	"synthbot/core"
	"synthbot/daemon/settings"
	"synthbot/memory"
)

// newItems returns the items of a new database.
func newItems(t *testing.T) (core.Items, *memory.DB) {
	t.Helper()
	db, err := memory.Open(t.TempDir(), memory.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return db.Items("bot"), db
}

func open[T any](t *testing.T, items core.Items) *settings.Changes[T] {
	t.Helper()
	c, err := settings.Open[T](t.Context(), items)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// extended is the program's settings and one more, added as a single field.
type extended struct {
	settings.Settings
	Mood string `toml:"mood" json:"mood,omitempty" set:"admin" base:"bot.mood" oneof:"calm|wild" example:"wild" doc:"How the bot feels there."`
}

// configuration is the part of a configuration that the settings come from.
type configuration struct {
	Bot struct {
		Activation string        `toml:"activation" doc:"." default:"mention"`
		Keywords   []string      `toml:"keywords" doc:"."`
		Attention  time.Duration `toml:"attention" doc:"." default:"0s"`
		Observe    bool          `toml:"observe" doc:"." default:"true"`
		Bots       bool          `toml:"bots" doc:"."`
		Mood       string        `toml:"mood" doc:"." default:"calm"`
	} `toml:"bot" doc:"."`
	Persona struct {
		Path string `toml:"path" doc:"."`
	} `toml:"persona" doc:"."`
	Prompt struct {
		Scope string `toml:"scope" doc:"." default:"chat"`
	} `toml:"prompt" doc:"."`
	Budget struct {
		PersonTokens int64 `toml:"person_tokens" doc:"." default:"1000000"`
	} `toml:"budget" doc:"."`
	Overrides []struct {
		Path core.Path `toml:"path" doc:"." required:"true" example:"desk/1"`
		extended
	} `toml:"override" doc:"."`
}

// TestAddedSetting checks that a single new field is enough for a setting to be read from the file, validated,
// changed with /set, stored, resolved and listed with its origin.
func TestAddedSetting(t *testing.T) {
	var c configuration
	file := "[[override]]\npath = \"desk/1\"\nmood = \"wild\"\nlanguage = \"it\"\n"
	if err := config.Read("config.toml", []byte(file), &c, config.Options{}); err != nil {
		t.Fatal(err)
	}
	if names := settings.Names[extended](); !slices.Contains(names, "mood") || slices.Contains(names, "activation") {
		t.Errorf("Names: got %v, want mood among them and not activation", names)
	}
	store, _ := newItems(t)
	changes := open[extended](t, store)
	layers := []settings.Layer[extended]{{Path: c.Overrides[0].Path, From: "override desk/1", Values: c.Overrides[0].extended}}
	r := settings.New(settings.Base[extended](&c), layers, changes, nil)
	holds := func(place, mood, origin string) {
		t.Helper()
		at := core.MustPath(place)
		want := settings.Row{Name: "mood", Value: mood, From: origin, Set: mood}
		if got := r.At(at).Mood; got != mood || !slices.Contains(r.Rows(at), want) {
			t.Errorf("%s: got %q, rows %v, want %v", place, got, r.Rows(at), want)
		}
	}
	holds("desk/2", "calm", "bot.mood")
	holds("desk/1/5", "wild", "override desk/1")
	if err := changes.Set(t.Context(), core.MustPath("desk/1/5"), "mood", "calm"); err != nil {
		t.Fatal(err)
	}
	holds("desk/1/5/6", "calm", "a command in desk/1/5")
	holds("desk/1/7", "wild", "override desk/1")
	err := changes.Set(t.Context(), core.MustPath("desk/1"), "mood", "sad")
	if err == nil || err.Error() != `invalid: mood is "sad"; write one of calm, wild.` {
		t.Errorf("invalid value: got %v", err)
	}
	r = settings.New(settings.Base[extended](&c), layers, open[extended](t, store), nil)
	holds("desk/1/5/6", "calm", "a command in desk/1/5")
}

// manyLayers returns a resolver with overlapping layers. desk/8 is a channel of the category desk/9.
func manyLayers(t *testing.T) *settings.Resolver[settings.Settings] {
	t.Helper()
	var c configuration
	config.Defaults(&c)
	store, _ := newItems(t)
	changes := open[settings.Settings](t, store)
	for _, line := range []string{"language pt-BR", "actions_deny memory_forget web*", "tokens 1_000", "person_tokens 0", "actions_allow dice_*"} {
		name, value, _ := strings.Cut(line, " ")
		if err := changes.Set(t.Context(), core.MustPath("desk/1/2"), name, value); err != nil {
			t.Fatal(err)
		}
	}
	number := func(n int64) *int64 { return &n }
	yes, minute, gm := true, time.Minute, "gm.toml"
	return settings.New(settings.Base[settings.Settings](&c), []settings.Layer[settings.Settings]{
		{core.MustPath("desk"), "budget.place desk", settings.Settings{Tokens: number(0)}},
		{core.MustPath("desk/1/2"), "override desk/1/2", settings.Settings{Tokens: number(7), ActionsAllow: settings.Patterns{"x"}, ActionsDeny: settings.Patterns{"dice_*"}}},
		{core.MustPath("desk/1"), "override desk/1", settings.Settings{ActionsDeny: settings.Patterns{"a", "b"}, Keywords: []string{"help", "bot"}}},
		{core.MustPath("desk/9"), "override desk/9", settings.Settings{Tokens: number(5), Scope: "unified", Engine: "home", Persona: &gm, Bots: &yes, Attention: &minute}},
		{core.MustPath("desk/8"), "override desk/8", settings.Settings{Scope: "interface"}},
	}, changes, func(place core.Path) []core.Path {
		if place.Within(core.MustPath("desk/8")) {
			return []core.Path{core.MustPath("desk/9")}
		}
		return nil
	})
}

// TestRows checks the values of the settings in a place and their origins.
func TestRows(t *testing.T) {
	r := manyLayers(t)
	rows := func(place string) (lines string) {
		for _, row := range r.Rows(core.MustPath(place)) {
			lines += row.Name + "=" + row.Value + " <" + row.From + ">\n"
		}
		return lines
	}
	for place, want := range map[string]string{
		"other": `persona= <persona.path>
engine= <the first engine>
activation=mention <bot.activation>
asleep=false <->
keywords= <bot.keywords>
observe=true <bot.observe>
bots=false <bot.bots>
attention=0s <bot.attention>
language= <bot.language>
scope=chat <prompt.scope>
actions_allow=all <->
actions_deny= <->
person_tokens=1000000 <budget.person_tokens>
tokens=no limit <->
`,
		"desk/1/2/3": `persona= <persona.path>
engine= <the first engine>
activation=mention <bot.activation>
asleep=false <->
keywords=help, bot <override desk/1>
observe=true <bot.observe>
bots=false <bot.bots>
attention=0s <bot.attention>
language=pt-BR <a command in desk/1/2>
scope=chat <prompt.scope>
actions_allow=dice_* <a command in desk/1/2>
actions_deny=a, b <override desk/1>
actions_deny=dice_* <override desk/1/2>
actions_deny=memory_forget, web* <a command in desk/1/2>
person_tokens=no limit <a command in desk/1/2>
tokens=no limit <budget.place desk>
tokens=1000 <a command in desk/1/2>
`,
		"desk/8": `persona=gm.toml <override desk/9>
engine=home <override desk/9>
activation=mention <bot.activation>
asleep=false <->
keywords= <bot.keywords>
observe=true <bot.observe>
bots=true <override desk/9>
attention=1m0s <override desk/9>
language= <bot.language>
scope=interface <override desk/8>
actions_allow=all <->
actions_deny= <->
person_tokens=1000000 <budget.person_tokens>
tokens=no limit <budget.place desk>
`,
	} {
		if diff := cmp.Diff(want, rows(place)); diff != "" {
			t.Errorf("%s: got %s", place, diff)
		}
	}
	here := r.At(core.MustPath("desk/1/2/3"))
	if here.Language != "pt-BR" || *here.PersonTokens != 0 || !*here.Observe || !slices.Equal(here.ActionsDeny.Strings(), []string{"a", "b", "dice_*", "memory_forget", "web*"}) {
		t.Errorf("desk/1/2/3: %+v", here)
	}
	var order []string
	for _, l := range r.All() {
		order = append(order, l.From)
	}
	if want := []string{"budget.place desk", "override desk/1", "override desk/8", "override desk/9", "override desk/1/2", "a command in desk/1/2"}; !slices.Equal(order, want) {
		t.Errorf("all layers: %v", order)
	}
}

// TestStoredFormat checks that the stored format of changes stays the same.
func TestStoredFormat(t *testing.T) {
	store, _ := newItems(t)
	at := core.MustPath("desk/1")
	before := `{"persona":"gm.toml","engine":"home","activation":"always","asleep":true,"admin":true,"language":"it","scope":"unified","allow":"dice_*, web_*","deny":"memory_*","person":5,"tokens":0}`
	if _, err := store.Put(t.Context(), core.Item{Path: at, Key: "changed", Value: []byte(before), Version: core.AnyVersion}); err != nil {
		t.Fatal(err)
	}
	changes := open[settings.Settings](t, store)
	yes, gm, five, none := true, "gm.toml", int64(5), int64(0)
	want := settings.Settings{
		Persona: &gm, Engine: "home", Activation: "always", Asleep: &yes, Admin: &yes, Language: "it", Scope: "unified",
		ActionsAllow: settings.Patterns{"dice_*", "web_*"}, ActionsDeny: settings.Patterns{"memory_*"}, PersonTokens: &five, Tokens: &none,
	}
	if diff := cmp.Diff(want, changes.All()[0].Values); diff != "" {
		t.Error(diff)
	}
	if err := changes.Set(t.Context(), at, "language", "en"); err != nil {
		t.Fatal(err)
	}
	item, _, err := store.Get(t.Context(), at, "changed")
	if err != nil {
		t.Fatal(err)
	}
	if after := strings.Replace(before, `"language":"it"`, `"language":"en"`, 1); !maps.Equal(decoded(t, after), decoded(t, string(item.Value))) {
		t.Errorf("before %s\nafter  %s", before, item.Value)
	}
}

// decoded decodes a stored item.
func decoded(t *testing.T, raw string) (values map[string]any) {
	t.Helper()
	if err := json.Unmarshal([]byte(raw), &values); err != nil {
		t.Fatal(err)
	}
	return values
}

// TestChanges checks that changes apply below their path, survive a restart, and are forgotten with their place
// or user.
func TestChanges(t *testing.T) {
	store, db := newItems(t)
	changes := open[settings.Settings](t, store)
	resolver := func() *settings.Resolver[settings.Settings] {
		return settings.New(settings.Settings{}, nil, changes, nil)
	}
	r := resolver()
	yes, no, jay := true, false, core.MustPath("telegram/@user/1")
	change := func(path string, f func(*settings.Settings)) {
		t.Helper()
		if err := changes.Change(t.Context(), core.MustPath(path), f); err != nil {
			t.Fatal(err)
		}
	}
	asleep := func(path string) bool {
		s := r.At(core.MustPath(path))
		return s.Asleep != nil && *s.Asleep
	}
	change("telegram/-100", func(s *settings.Settings) { s.Asleep = &yes })
	change("telegram/-100/7", func(s *settings.Settings) { s.Asleep = &no })
	change("telegram/@user/1", func(s *settings.Settings) { s.Admin = &yes })
	holds := func() {
		t.Helper()
		for path, want := range map[string]bool{"telegram/-100": true, "telegram/-100/3": true, "telegram/-100/7": false, "telegram/5": false} {
			if got := asleep(path); got != want {
				t.Errorf("%s: asleep = %v, want %v", path, got, want)
			}
		}
	}
	holds()
	changes = open[settings.Settings](t, store)
	r = resolver()
	holds()
	private := core.MustPath("telegram/9")
	said := core.Event{Kind: core.KindMessage, Message: core.Message{Path: private, ID: "1", Author: core.Author{ID: "1"}, Private: true, Text: "hello"}}
	if err := db.Commit(t.Context(), &core.Batch{Append: []core.Entry{{Event: said}}}); err != nil {
		t.Fatal(err)
	}
	change("telegram/9", func(s *settings.Settings) { s.Asleep = &yes })
	forget := func(path core.Path, want bool) {
		t.Helper()
		if err := db.Forget(t.Context(), path); err != nil {
			t.Fatal(err)
		}
		if fewer, err := changes.Reread(t.Context()); fewer != want || err != nil {
			t.Errorf("%s: fewer changes = %v, want %v: %v", path, fewer, want, err)
		}
	}
	if !asleep("telegram/9") {
		t.Error("telegram/9 is not asleep after the change")
	}
	forget(jay, true)
	if asleep("telegram/9") {
		t.Error("the change of a forgotten user's private chat still applies")
	}
	for _, l := range changes.All() {
		if l.Path == jay {
			t.Errorf("a change of the forgotten user remains: %+v", l.Values)
		}
	}
	forget(jay, false)
	forget(core.MustPath("telegram/-100"), true)
	if asleep("telegram/-100/3") {
		t.Error("the change of a forgotten place still applies")
	}
	change("telegram/4", func(s *settings.Settings) { s.Asleep = &yes })
	change("telegram/4", func(s *settings.Settings) { s.Asleep = nil })
	if _, found, err := store.Get(t.Context(), core.MustPath("telegram/4"), "changed"); found || err != nil {
		t.Errorf("an item is stored although nothing is changed: %v", err)
	}
}

// TestSet checks that an error of Set says which values are valid, and that valid values are stored and can be
// reset.
func TestSet(t *testing.T) {
	store, _ := newItems(t)
	changes := open[settings.Settings](t, store)
	at := core.MustPath("desk/1")
	for line, want := range map[string]string{
		"scope everywhere":  `scope is "everywhere"; write one of chat, interface, unified.`,
		"tokens -1":         "tokens is -1; write 0 or more.",
		"tokens many":       `tokens is "many"; write a whole number.`,
		"actions_allow [":   `actions_allow is "["; write the name of an action, or a part of it with *.`,
		"actions_deny ,":    "actions_deny is empty; write a value, or default.",
		"language klingon!": `language is "klingon!"; write a language tag like en, it or pt-BR.`,
		"colour red":        `There is no setting "colour".`,
		"observe maybe":     `observe is "maybe"; write true or false.`,
		"attention 2h":      `attention is 2h0m0s; write 0s to 1h.`,
		"asleep true":       `There is no setting "asleep".`,
		"admin true":        `There is no setting "admin".`,
	} {
		name, value, _ := strings.Cut(line, " ")
		if err := changes.Set(t.Context(), at, name, value); err == nil || err.Error() != "invalid: "+want {
			t.Errorf("%s: got %v, want %s", line, err, want)
		}
	}
	if list := changes.All(); len(list) > 0 {
		t.Errorf("an invalid value was stored: %+v", list[0])
	}
	for _, line := range []string{"language it", "keywords help, bot", "observe false", "bots true", "attention 5m"} {
		name, value, _ := strings.Cut(line, " ")
		if err := changes.Set(t.Context(), at, name, value); err != nil {
			t.Error(err)
		}
	}
	again := open[settings.Settings](t, store).All()[0].Values
	if !slices.Equal(again.Keywords, []string{"help", "bot"}) || *again.Observe || !*again.Bots || *again.Attention != 5*time.Minute {
		t.Errorf("values after a restart: got %+v", again)
	}
	for _, name := range []string{"language", "keywords", "observe", "bots", "attention"} {
		if err := changes.Set(t.Context(), at, name, settings.Default); err != nil {
			t.Error(err)
		}
	}
	if list := changes.All(); len(list) > 0 {
		t.Errorf("a change remains after its reset: %+v", list[0])
	}
}

// brokenItems fails on every write and is empty.
type brokenItems struct{ core.Items }

func (brokenItems) PutAll(context.Context, ...core.Item) error           { return core.ErrClosed }
func (brokenItems) List(context.Context, core.Path) ([]core.Item, error) { return nil, nil }

// TestNotStored checks that a change that cannot be stored does not apply.
func TestNotStored(t *testing.T) {
	changes := open[settings.Settings](t, brokenItems{})
	if err := changes.Set(t.Context(), core.MustPath("desk/1"), "language", "it"); err == nil || len(changes.All()) > 0 {
		t.Errorf("got %v and changes %v, want an error and no change", err, changes.All())
	}
}

// BenchmarkAt measures a read of the settings of a place with overrides.
func BenchmarkAt(b *testing.B) {
	layers := []settings.Layer[settings.Settings]{
		{core.MustPath("discord/1"), "override discord/1", settings.Settings{Language: "it"}},
		{core.MustPath("discord/1/2"), "override discord/1/2", settings.Settings{Scope: "unified"}},
	}
	r := settings.New(settings.Settings{}, layers, new(settings.Changes[settings.Settings]), nil)
	place := core.MustPath("discord/1/2/3")
	b.ReportAllocs()
	for b.Loop() {
		if r.At(place).Language != "it" {
			b.Fatal("wrong")
		}
	}
}

// TestBaseOfUnknownKey checks that a base tag with an unknown key causes a panic.
func TestBaseOfUnknownKey(t *testing.T) {
	type odd struct {
		Mood string `toml:"mood" json:"-" base:"bot.colour" doc:"How the bot feels there."`
	}
	defer func() {
		if r := recover(); r == nil {
			t.Error("Base does not panic")
		}
	}()
	settings.Base[odd](new(configuration))
}

// TestSetLimits checks that admins cannot store endless or invisible values.
func TestSetLimits(t *testing.T) {
	store, _ := newItems(t)
	changes := open[settings.Settings](t, store)
	long := strings.Repeat("x", 1_000_000)
	for line, want := range map[string]string{
		"keywords " + long:                           "keywords is 1000000 characters; write 100 or less characters.",
		"keywords " + strings.Repeat("x,", 101):      "keywords has more than 100 entries; keep the best.",
		"keywords help,\u200b":                       "keywords has no visible character; write at least one, or take it out.",
		"actions_allow " + strings.Repeat("x ", 101): "actions_allow has more than 100 entries; keep the best.",
		"actions_deny " + long:                       `actions_deny is "` + strings.Repeat("x", 39) + `…"; write the name of an action, or a part of it with *.`,
		"language en" + strings.Repeat("-ab", 99):    `language is "en` + strings.Repeat("-ab", 12) + `-…"; write a language tag like en, it or pt-BR.`,
	} {
		name, value, _ := strings.Cut(line, " ")
		if err := changes.Set(t.Context(), core.Path{}, name, value); err == nil || err.Error() != "invalid: "+want {
			t.Errorf("%.30s: got %v, want %s", line, err, want)
		}
	}
	if err := changes.Set(t.Context(), core.Path{}, "keywords", strings.Repeat("x", 100)); err != nil {
		t.Error(err)
	}
}
