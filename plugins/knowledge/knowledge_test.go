package knowledge

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"synthbot/core"
	"synthbot/core/coretest"
	"synthbot/core/passage"
	"synthbot/plugins/plugintest"
)

// defaults fills in the configuration's defaults.
func defaults(c Config) Config {
	c.Passages, c.Chars, c.Every, c.Refresh, c.Timeout, c.Teach = 4, 2400, time.Hour, time.Hour, 10*time.Second, "moderators"
	return c
}

func made(t testing.TB, c Config) *Plugin {
	t.Helper()
	p, err := New(plugintest.NewHarness(t, "knowledge").Host, defaults(c))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestShortDocument: other forms of its words find a document that is too short to tell its language.
func TestShortDocument(t *testing.T) {
	dir := t.TempDir()
	p := made(t, Config{Sources: []Source{{Name: "s", Path: dir}}})
	write(t, dir, map[string]string{"fees.md": "Fees are refunded within 14 days."})
	synced(t, p)
	for _, words := range []string{"refund", "fee", "refunded"} {
		if found, err := p.find(t.Context(), []string{"s"}, words, "", 1); err != nil || len(found) != 1 {
			t.Errorf("%s: %+v, %v", words, found, err)
		}
	}
}

// write writes files by name.
func write(t testing.TB, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		name = filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func synced(t testing.TB, p *Plugin) Summary {
	t.Helper()
	sum, err := p.Sync(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	return sum
}

// TestSync checks that changed files are read again, removed ones are dropped, and unchanged ones are left
// alone.
func TestSync(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, map[string]string{"a.md": "# A\nKeys hang in the hall.", "sub/b.txt": "Ladders are in the shed.", ".hidden/c.md": "no", "d.bin": "no"})
	p := made(t, Config{Sources: []Source{{Name: "s", Path: dir}}})
	if sum := synced(t, p); sum.Documents != 2 || sum.Changed != 2 || sum.Passages != 2 || len(sum.Faults) != 0 {
		t.Errorf("first sync: %+v", sum)
	}
	if sum := synced(t, p); sum.Changed != 0 || sum.Removed != 0 {
		t.Errorf("unchanged files: %+v", sum)
	}
	write(t, dir, map[string]string{"a.md": "# A\nKeys hang in the kitchen now."})
	if err := os.Remove(filepath.Join(dir, "sub/b.txt")); err != nil {
		t.Fatal(err)
	}
	write(t, dir, map[string]string{"bad.md": "\x00\x01"})
	if sum := synced(t, p); sum.Changed != 2 || sum.Removed != 1 || len(sum.Faults) != 1 {
		t.Errorf("changed files: %+v", sum)
	}
	for text, want := range map[string]int{"keys kitchen": 1, "ladders": 0} {
		found, err := p.find(t.Context(), []string{"s"}, text, "", 5)
		if err != nil || len(found) != want {
			t.Errorf("%s: got %+v, %v", text, found, err)
		}
	}
	p.config.Sources[0].Name = "other"
	if sum := synced(t, p); sum.Removed != 2 {
		t.Errorf("renamed file: %+v", sum)
	}
}

// TestUnprintableNames checks that files with names that are not plain text are counted and named, and that their
// names cannot control a terminal.
func TestUnprintableNames(t *testing.T) {
	dir := t.TempDir()
	names := []string{"esc\x1b[31m.md", "new\nline.md", "rtl\u202egpj.md"}
	for _, name := range names {
		write(t, dir, map[string]string{name: "Keys hang in the hall."})
	}
	p := made(t, Config{Sources: []Source{{Name: "s", Path: dir}}})
	sum := synced(t, p)
	if len(sum.Faults) != len(names) || !strings.Contains(sum.String(), "3 not readable") {
		t.Fatalf("got %v, %q", sum, sum.Faults)
	}
	for i, want := range names {
		if got := sum.Faults[i]; !strings.HasPrefix(got, "s/"+strconv.QuoteToASCII(want)+": ") {
			t.Errorf("got %q, want the quoted name %q", got, want)
		}
	}
}

// TestFrames checks that text that many documents of a source share is kept in one of them.
func TestFrames(t *testing.T) {
	dir := t.TempDir()
	topics := []string{"keys", "ladders", "bicycles", "windows", "lamps"}
	page := func(i int, topic string) string {
		return fmt.Sprintf("Home | Shop | Imprint of the society\n\n# %s\n\nAll about %s is written here, in room %d.\n\nAsk the office first.\n\nPage %d of 5, printed on 3.%d.2026\n", topic, topic, i, i, i)
	}
	for i, topic := range topics {
		write(t, dir, map[string]string{topic + ".md": page(i, topic)})
	}
	p := made(t, Config{Sources: []Source{{Name: "s", Path: dir}, {Name: "two", Path: t.TempDir()}}})
	synced(t, p)
	finds := func(text string, want ...string) {
		t.Helper()
		found, err := p.find(t.Context(), []string{"s"}, text, passage.Words, 20)
		var names []string
		for _, m := range found {
			names = append(names, m.Document)
		}
		slices.Sort(names)
		if err != nil || !slices.Equal(names, want) {
			t.Errorf("%q: found %q, want %q: %v", text, names, want, err)
		}
	}
	finds("imprint shop", "bicycles.md")
	finds("printed page", "bicycles.md")
	finds("ask office", "bicycles.md")
	finds("ladders", "ladders.md")
	write(t, dir, map[string]string{"stairs.md": page(7, "stairs")}) // a later document
	synced(t, p)
	finds("stairs", "stairs.md")
	finds("imprint shop", "bicycles.md")
	if err := os.Remove(filepath.Join(dir, "bicycles.md")); err != nil {
		t.Fatal(err)
	}
	synced(t, p)
	finds("imprint shop", "keys.md")
	write(t, dir, map[string]string{"keys.md": "# keys\n\nAll about keys is written elsewhere.\n"})
	synced(t, p)
	finds("imprint shop", "ladders.md")
	finds("ask office", "ladders.md")
}

func TestConform(t *testing.T) {
	plugintest.Conform(t, plugintest.Case{Name: "knowledge", Make: func(t *testing.T, s *plugintest.Harness) core.Plugin {
		p, err := New(s.Host, defaults(Config{Sources: []Source{{Name: "handbook", Path: "testdata/handbook"}}}))
		if err != nil {
			t.Fatal(err)
		}
		return p
	}})
}

func TestScripts(t *testing.T) {
	schema := core.JSON(map[string]any{"type": "object", "properties": map[string]any{"to": map[string]string{"type": "string"}}})
	pay := core.Action{Name: "pay", Brief: "Pay somebody", Schema: schema, Effects: core.EffectChanges}
	plugintest.Run(t, "testdata/*.txtar", plugintest.Of(New), plugintest.With(coretest.NewPlugin("bank", pay)))
}
