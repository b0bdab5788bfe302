// Package synthbot_test checks rules of the whole repository: which package may import which, and what
// no file may contain. It reads the source and does not run it.
package synthbot_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const module = "synthbot"

// rooms lists, for each area of the source, the packages of this module that it may import, besides
// those below itself. A package outside all areas is a fault: a new one must be added here.
var rooms = []struct {
	room string
	may  []string
}{
	{"core", []string{"core/llm", "core/passage"}},
	{"core/llm", nil},
	{"core/passage", nil},
	{"core/lexicon", nil},
	{"core/sorting", nil},
	{"core/epochs", []string{"core"}},
	{"core/loop", nil},
	{"core/secret", nil},
	{"core/values", []string{"core"}},
	{"core/gate", []string{"core", "core/command"}},
	{"core/hint", []string{"core"}},
	{"core/lore", nil},
	{"core/timezone", []string{"core"}},
	{"core/watch", []string{"core", "core/llm"}},
	{"core/txt", nil},
	{"core/spoken", []string{"core/txt"}},
	{"core/draft", []string{"core", "core/driver"}},
	{"core/driver", []string{"core"}},
	{"core/turn", []string{"core", "core/recent", "core/action", "core/command", "core/gate", "core/hint", "core/llm", "core/plan", "core/prompt", "core/txt", "core/watch"}},
	{"core/prompt", []string{"core", "core/hint", "core/llm", "core/recent", "core/txt", "core/watch"}},
	{"core/plan", []string{"core", "core/llm", "core/txt"}},
	{"core/action", []string{"core", "core/llm", "core/plan", "core/recent", "core/schema", "core/txt"}},
	{"core/schema", []string{"core"}},
	{"core/engine", []string{"core", "core/llm", "core/spoken", "core/txt"}},
	{"core/recon", []string{"core", "core/hint", "core/llm", "core/recent", "core/txt"}},
	{"core/users", []string{"core"}},
	{"core/recent", nil},
	{"core/document", []string{"core", "core/llm", "core/txt"}},
	{"core/speech", []string{"core", "core/markdown", "core/outbound", "core/program", "core/recent", "core/txt"}},
	{"core/coretest", []string{"core", "core/gate", "core/hint", "core/llm", "core/txt", "core/watch"}},
	{"core/markdown", []string{"core", "core/txt"}},
	{"core/command", []string{"core", "core/txt"}},
	{"core/outbound", []string{"core"}},
	{"core/program", []string{"core"}},
	{"interfaces/*", []string{"core", "core/action", "core/command", "core/draft", "core/driver", "core/markdown", "core/recent", "core/txt", "core/watch"}},
	{"memory", []string{"core", "core/llm", "core/passage"}},
	{"persona", []string{"config", "core", "core/lore", "core/txt"}},
	{"plugins/plugintest", []string{"core", "core/*", "memory", "config"}},
	{"plugins/*", []string{"core", "core/action", "core/command", "core/document", "core/gate", "core/users", "core/hint", "core/lexicon", "core/llm", "core/lore", "core/markdown", "core/outbound", "core/passage", "core/program", "core/recent", "core/recon", "core/schema", "core/spoken", "core/timezone", "core/txt", "core/watch"}},
	{"plugins", nil},
	{"packaging/*", nil},
	{"scripts/*", nil},
	{"config", []string{"core", "core/txt"}},
	{"admin", []string{"admin", "core", "core/command", "core/llm", "core/txt", "core/watch"}},
	{"setup", []string{"core", "core/engine", "core/txt", "config", "daemon", "daemon/settings", "interfaces/console", "persona", "systemd"}},
	{"systemd", nil},
	{"daemon/logs", nil},
	{"daemon/settings", []string{"core", "core/txt", "config"}},
	{"daemon", []string{"core", "core/*", "interfaces/*", "memory", "persona", "plugins/*", "config", "admin", "admin/*", "systemd"}},
	{"cmd/*", []string{"core", "core/*", "daemon", "daemon/*", "interfaces/*", "memory", "persona", "plugins/*", "config", "admin", "admin/*", "setup", "systemd"}},
}

// vocabulary lists packages that every package that may import core may import, too.
var vocabulary = []string{"core/epochs", "core/loop", "core/secret", "core/values"}

// onlyForTests lists packages that only tests may import.
var onlyForTests = []string{"core/coretest", "plugins/plugintest"}

// shared lists the modules that more than one package may import. Any other module has
// one importer, which hides the module's types.
var shared = map[string][]string{
	"github.com/bwmarrin/discordgo":  {"interfaces/discord/gateway", "interfaces/discord/rest"},
	"github.com/gorilla/websocket":   {"interfaces/discord/discordtest", "interfaces/discord/gateway"},
	"github.com/cenkalti/backoff/v5": {"core/action", "core/engine", "interfaces/telegram/botapi"},
	"go.uber.org/goleak":             {"core/coretest", "plugins/plugintest"},
	"golang.org/x/sync":              {"core/turn", "interfaces/discord", "interfaces/discord/gateway"},
	"golang.org/x/text":              {"core/action", "core/document", "core/turn", "core/prompt", "core/txt", "memory"},
}

// pack is a package as `go list` describes it.
type pack struct {
	ImportPath string
	Imports    []string
}

func (p pack) room() string { return strings.TrimPrefix(p.ImportPath, module+"/") }

func TestHouse(t *testing.T) {
	for _, fault := range imports(list(t), required(t)) {
		t.Error(fault)
	}
}

// imports checks the imports of packages against rooms. modules are those that go.mod requires.
func imports(packs []pack, modules []string) (faults []string) {
	importers := make(map[string][]string)
	for _, p := range packs {
		room, may := find(p.room())
		if room == "" && p.ImportPath != module {
			faults = append(faults, p.room()+" has no row in the table of rooms")
		}
		for _, path := range p.Imports {
			if inside, ok := strings.CutPrefix(path, module+"/"); ok {
				if !allowed(room, may, inside) {
					faults = append(faults, p.room()+" imports "+inside)
				}
			} else if m := moduleOf(path, modules); m != "" {
				importers[m] = append(importers[m], p.room())
			}
		}
	}
	for _, m := range modules {
		faults = append(faults, outside(m, importers[m])...)
	}
	return faults
}

// outside checks the importers of one module.
func outside(module string, rooms []string) (faults []string) {
	rooms = slices.Compact(slices.Sorted(slices.Values(rooms)))
	if slices.Contains(rooms, "core") {
		faults = append(faults, "core imports "+module+" and may import the standard library only")
	}
	may, listed := shared[module]
	for _, room := range rooms {
		if listed && !slices.Contains(may, room) {
			faults = append(faults, room+" imports "+module+", which is for "+strings.Join(may, ", "))
		}
	}
	if !listed && len(rooms) > 1 {
		faults = append(faults, module+" is imported by "+strings.Join(rooms, ", ")+"; one is allowed")
	}
	return faults
}

// allowed reports whether an area may import a package of this module.
func allowed(room string, may []string, inside string) bool {
	if slices.Contains(onlyForTests, inside) {
		return slices.Contains(onlyForTests, room)
	}
	if inside == "core/sorting" { // may be used like the standard library
		return true
	}
	if slices.Contains(vocabulary, inside) && slices.Contains(may, "core") {
		return true
	}
	if room != "" && room != "core" && strings.HasPrefix(inside, room+"/") {
		return true
	}
	return slices.ContainsFunc(may, func(pattern string) bool { return matches(pattern, inside) })
}

// find returns the area of a package, and what the area may import.
func find(path string) (room string, may []string) {
	for _, row := range rooms {
		parent, each := strings.CutSuffix(row.room, "/*")
		rest, below := strings.CutPrefix(path, parent+"/")
		switch {
		case each && below:
			name, _, _ := strings.Cut(rest, "/")
			return parent + "/" + name, row.may
		case !each && (path == row.room || below && row.room != "core"):
			return row.room, row.may
		}
	}
	return "", nil
}

// matches reports whether a path matches a pattern. "x/*" stands for every package below x.
func matches(pattern, path string) bool {
	if prefix, ok := strings.CutSuffix(pattern, "*"); ok {
		return strings.HasPrefix(path, prefix)
	}
	return pattern == path
}

func moduleOf(path string, modules []string) (longest string) {
	for _, m := range modules {
		if (path == m || strings.HasPrefix(path, m+"/")) && len(m) > len(longest) {
			longest = m
		}
	}
	return longest
}

func TestHouseCanFall(t *testing.T) {
	modules := []string{"example.org/a", "example.org/a/b", "github.com/pelletier/go-toml/v2", "golang.org/x/text"}
	for name, tc := range map[string]struct {
		packs []pack
		want  string
	}{
		"as it should be": {[]pack{
			{"synthbot", nil}, {"synthbot/core", []string{"context", "encoding/json"}},
			{"synthbot/core/turn", []string{"synthbot/core", "synthbot/core/plan"}},
			{"synthbot/interfaces/x", []string{"synthbot/core/markdown", "example.org/a/sub"}},
			{"synthbot/interfaces/y", []string{"synthbot/core", "example.org/a/b"}},
			{"synthbot/plugins/z", []string{"synthbot/plugins/z/deep"}},
			{"synthbot/plugins/z/deep", []string{"synthbot/core/action", "os"}},
			{"synthbot/core/engine", []string{"synthbot/core/engine/sub"}}, {"synthbot/core/engine/sub", []string{"synthbot/core"}},
			{"synthbot/cmd/synthbot", []string{"synthbot/interfaces/x", "synthbot/config", "synthbot/core/turn"}},
			{"synthbot/memory", []string{"golang.org/x/text/width"}},
			{"synthbot/config", []string{"github.com/pelletier/go-toml/v2", "github.com/pelletier/go-toml/v2/unstable"}},
		}, ""},
		"a neighbour":           {[]pack{{"synthbot/memory", []string{"synthbot/persona"}}}, "memory imports persona"},
		"core looks up":         {[]pack{{"synthbot/core", []string{"synthbot/core/plan"}}}, "core imports core/plan"},
		"core has a dependency": {[]pack{{"synthbot/core", []string{"example.org/a"}}}, "core imports example.org/a and may import the standard library only"},
		"the turn knows engines": {[]pack{{"synthbot/core/turn", []string{"synthbot/core", "synthbot/core/engine"}}},
			"core/turn imports core/engine"},
		"interfaces meet":    {[]pack{{"synthbot/interfaces/x", []string{"synthbot/interfaces/y"}}}, "interfaces/x imports interfaces/y"},
		"cmd is imported":    {[]pack{{"synthbot/plugins/x", []string{"synthbot/cmd/synthbot"}}}, "plugins/x imports cmd/synthbot"},
		"cmd imports cmd":    {[]pack{{"synthbot/cmd/x", []string{"synthbot/cmd/y"}}}, "cmd/x imports cmd/y"},
		"a test in a room":   {[]pack{{"synthbot/cmd/x", []string{"synthbot/core/coretest"}}}, "cmd/x imports core/coretest"},
		"plugins meet":       {[]pack{{"synthbot/plugins/x", []string{"synthbot/plugins/xy/deep"}}}, "plugins/x imports plugins/xy/deep"},
		"a new room":         {[]pack{{"synthbot/util", nil}}, "util has no row in the table of rooms"},
		"a new room in core": {[]pack{{"synthbot/core/util", nil}}, "core/util has no row in the table of rooms"},
		"config by all":      {[]pack{{"synthbot/memory", []string{"synthbot/config"}}}, "memory imports config"},
		"a module twice": {[]pack{{"synthbot/memory", []string{"example.org/a"}}, {"synthbot/admin", []string{"example.org/a/x"}}},
			"example.org/a is imported by admin, memory; one is allowed"},
		"a shared module": {[]pack{{"synthbot/persona", []string{"golang.org/x/text"}}},
			"persona imports golang.org/x/text, which is for core/action, core/document, core/turn, core/prompt, core/txt, memory"},
	} {
		if got := strings.Join(imports(tc.packs, modules), "\n"); got != tc.want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
}

// list asks the go command for the packages of this module.
func list(t *testing.T) (packs []pack) {
	t.Helper()
	out := command(t, "go", "list", "-e", "-json=ImportPath,Imports", "./...")
	for d := json.NewDecoder(strings.NewReader(out)); ; {
		var p pack
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			return packs
		} else if err != nil {
			t.Fatal(err)
		}
		packs = append(packs, p)
	}
}

// required lists the modules in go.mod.
func required(t *testing.T) (modules []string) {
	t.Helper()
	var mod struct{ Require []struct{ Path string } }
	if err := json.Unmarshal([]byte(command(t, "go", "mod", "edit", "-json")), &mod); err != nil {
		t.Fatal(err)
	}
	for _, r := range mod.Require {
		modules = append(modules, r.Path)
	}
	return modules
}

func command(t *testing.T, name string, args ...string) string {
	t.Helper()
	out, err := exec.Command(name, args...).Output()
	if err != nil {
		t.Fatalf("%s %s: %v", name, strings.Join(args, " "), err)
	}
	return string(out)
}

// longestFunction limits the lines from "func" to "}".
const longestFunction = 100

func TestSource(t *testing.T) {
	for _, file := range files(t) {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		faults := words(string(text))
		if strings.HasSuffix(file, ".go") {
			faults = append(faults, source(t, file, text)...)
		}
		for _, fault := range faults {
			t.Errorf("%s: %s", file, fault)
		}
	}
}

func TestSourceCanFail(t *testing.T) {
	long := "package x\nfunc f() {\n" + strings.Repeat("\t_ = 0\n", longestFunction-1) + "}\n"
	for name, tc := range map[string]struct{ file, text, want string }{
		"short":              {"x.go", "package x\nfunc f() {}\n", ""},
		"a method":           {"x.go", strings.Replace(long, "func f", "func (T) f", 1), "f has 101 lines"},
		"just short enough":  {"x.go", strings.Replace(long, "\t_ = 0\n", "", 1), ""},
		"a platform in core": {"core/x.go", "package core\nconst a = \"a telegram_bot\"\n", `core knows a platform: "a telegram_bot"`},
		"a platform's name":  {"core/x.go", "package core\nvar isDiscord bool\n", "core knows a platform: isDiscord"},
		"only an example":    {"core/x.go", "package core\n\n// like telegram/1\nvar a bool\n", ""},
		"in a test":          {"core/x_test.go", "package core\nconst a = \"telegram/1\"\n", ""},
		"outside of core":    {"cmd/x.go", "package cmd\nconst a = \"telegram\"\n", ""},
	} {
		if got := strings.Join(source(t, tc.file, []byte(tc.text)), "\n"); got != tc.want {
			t.Errorf("%s: got %q, want %q", name, got, tc.want)
		}
	}
	for text, want := range map[string]bool{
		"all is done": false, "a framework/main part": false,
		"// TO" + "DO: later": true, "FIX" + "ME": true, "see /wor" + "k/main/x": true, "../shar" + "ed/design": true, "as contra" + "ct.md says": true,
	} {
		if got := len(words(text)) > 0; got != want {
			t.Errorf("faults of %q: got %v", text, got)
		}
	}
}

// forbidden matches what no file may contain: notes about unfinished work, and paths of the place
// where it was written.
var forbidden = regexp.MustCompile(`\b(TO` + `DO|FIX` + `ME|X` + `XX)\b|/wor` + `k/(main|shared)|\bshar` + `ed/(design|seeds|trials|hooks)\b` +
	`|\b(contra` + `ct|tur` + `ns|hou` + `se|hab` + `its|librar` + `ies|fie` + `ld|builders-no` + `tes)\.md\b`)

func words(text string) (faults []string) {
	for i, line := range strings.Split(text, "\n") {
		if word := forbidden.FindString(line); word != "" {
			faults = append(faults, fmt.Sprintf("line %d says %q", i+1, word))
		}
	}
	return faults
}

// source checks one Go file against the rules for its syntax tree.
func source(t *testing.T, file string, text []byte) (faults []string) {
	t.Helper()
	set := token.NewFileSet()
	tree, err := parser.ParseFile(set, file, text, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range tree.Decls {
		if f, ok := d.(*ast.FuncDecl); ok {
			if n := set.Position(f.End()).Line - set.Position(f.Pos()).Line + 1; n > longestFunction {
				faults = append(faults, fmt.Sprintf("%s has %d lines", f.Name.Name, n))
			}
		}
	}
	if strings.HasPrefix(file, "core/") && !strings.HasSuffix(file, "_test.go") {
		faults = append(faults, platforms(tree)...)
	}
	return faults
}

// platforms finds names of platforms in code. Comments may have them as examples.
func platforms(tree *ast.File) (faults []string) {
	platform := regexp.MustCompile(`(?i)telegram|discord`)
	ast.Inspect(tree, func(n ast.Node) bool {
		said := ""
		switch n := n.(type) {
		case *ast.Ident:
			said = n.Name
		case *ast.BasicLit:
			said = n.Value
		}
		if platform.MatchString(said) {
			faults = append(faults, "core knows a platform: "+said)
		}
		return true
	})
	return faults
}

// files returns the texts that people maintain, by path.
func files(t *testing.T) (list []string) {
	t.Helper()
	kinds := []string{".go", ".md", ".toml", ".service", ".conf", ".sh", ".mod", "run", "Makefile"}
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == ".git" || d.Name() == "dist"):
			return fs.SkipDir
		case !d.Type().IsRegular():
		case slices.ContainsFunc(kinds, func(end string) bool { return strings.HasSuffix(path, end) }):
			list = append(list, filepath.ToSlash(path))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(list) < 10 {
		t.Fatalf("found %d files, too few", len(list))
	}
	return list
}

func TestArchitectureIsShort(t *testing.T) {
	const most = 80
	text, err := os.ReadFile("ARCHITECTURE.md")
	if errors.Is(err, fs.ErrNotExist) {
		t.Skip("there is none")
	}
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(text), "\n"); n > most {
		t.Errorf("ARCHITECTURE.md has %d lines, want at most %d", n, most)
	}
}
