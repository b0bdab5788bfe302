package synthbot_test

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// Limits of readable code. A tab counts as four columns.
const (
	maxColumns      = 120
	maxMethods      = 40
	maxFields       = 15
	maxPackageLines = 2500
)

// maxFieldsByType lists the types with more fields, by file: an action is described by
// one value, with a field for each fact.
var maxFieldsByType = map[string]int{"core/action.go Action": 24}

// maxBigPackageLines lists the folders that are larger than maxPackageLines for a
// reason that their package comment states.
var maxBigPackageLines = map[string]int{
	"daemon":              6588,
	"interfaces/discord":  5062,
	"core/engine":         3507,
	"core/engine/offline": 3130,
	"core/turn":           5327,
	"core/action":         3787,
	"interfaces/telegram": 4080,
	"memory":              8828,
}

// stiff matches wording in comments that plain English avoids.
var stiff = regexp.MustCompile(`(?i)\b(is|are) no \w|to be had\b|\bwhoever\b|\bstands?\b|\btold\b|\bmend(s|ed)?\b|\b(he|him|his|her|hers)\b`)

// fine matches wording that only looks like stiff.
var fine = regexp.MustCompile(`(?i)\bthere (is|are) no\b|\bstands? for\b|\bis no longer\b|\bare no longer\b|\b(is|are) no (more|less|larger|longer|smaller|shorter) than\b`)

func TestPlain(t *testing.T) {
	for _, room := range goFolders(t) {
		faults, err := plainFaults(room)
		if err != nil {
			t.Fatal(err)
		}
		for _, fault := range faults {
			t.Error(fault)
		}
	}
}

// TestFunctionsAreShort: no function has more than 100 lines, and 95 of 100 have at most 30.
func TestFunctionsAreShort(t *testing.T) {
	var lengths []int
	for _, dir := range goFolders(t) {
		names, err := filepath.Glob(filepath.Join(dir, "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			if strings.HasSuffix(name, "_test.go") || strings.HasSuffix(dir, "test") {
				continue
			}
			set := token.NewFileSet()
			file, err := parser.ParseFile(set, name, nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			for _, d := range file.Decls {
				f, ok := d.(*ast.FuncDecl)
				if ok {
					lengths = append(lengths, set.Position(f.End()).Line-set.Position(f.Pos()).Line+1)
				}
			}
		}
	}
	slices.Sort(lengths)
	if most := lengths[len(lengths)-1]; most > 100 {
		t.Errorf("the longest function has %d lines", most)
	}
	if usual := lengths[len(lengths)*95/100]; usual > 30 {
		t.Errorf("95 of 100 functions have up to %d lines", usual)
	}
}

// goFolders returns the folders below the root that hold Go files.
func goFolders(t *testing.T) []string {
	t.Helper()
	folders := make(map[string]bool)
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		switch name := d.Name(); {
		case err != nil:
			return err
		case d.IsDir() && path != "." && (name == "testdata" || strings.HasPrefix(name, ".")):
			return filepath.SkipDir
		case strings.HasSuffix(name, ".go"):
			folders[filepath.ToSlash(filepath.Dir(path))] = true
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return slices.Sorted(maps.Keys(folders))
}

// TestPlainNotices checks that each limit is enforced.
func TestPlainNotices(t *testing.T) {
	dir := t.TempDir()
	fields := strings.Repeat("\tX%d int\n", maxFields+1)
	for i := range maxFields + 1 {
		fields = strings.Replace(fields, "%d", fmt.Sprint(i), 1)
	}
	var methods strings.Builder
	for i := range maxMethods + 1 {
		fmt.Fprintf(&methods, "func (t T) m%d() {}\n", i)
	}
	source := "package p\n\n// T is no type that he told us of.\ntype T struct {\n" + fields + "}\n" + methods.String() +
		"func hidden() { if a := 1; a > 0 { panic(a) } }\n" +
		"// " + strings.Repeat("x", maxColumns) + "\n"
	file := filepath.Join(dir, "p.go")
	if err := os.WriteFile(file, []byte(source), 0o600); err != nil {
		t.Fatal(err)
	}
	faults, err := plainFaults(dir)
	if err != nil {
		t.Fatal(err)
	}
	all := strings.Join(faults, "\n")
	for _, want := range []string{`"is no t"`, `"he"`, `"told"`, "41 methods", "16 fields", "hidden in an if", "columns"} {
		if !strings.Contains(all, want) {
			t.Errorf("no fault mentions %q:\n%s", want, all)
		}
	}
}

// plainFaults returns the faults in the Go files of one folder.
func plainFaults(dir string) (faults []string, err error) {
	names, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		return nil, err
	}
	methods := make(map[string]int)
	lines := 0
	for _, name := range names {
		source, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, name, source, parser.ParseComments)
		if err != nil {
			return nil, err
		}
		test := strings.HasSuffix(name, "_test.go") || strings.HasSuffix(dir, "test") // or a test double
		faults = append(faults, longLines(name, string(source), test)...)
		p := &plainReader{set: set, methods: methods}
		if !test {
			lines += strings.Count(string(source), "\n")
			ast.Walk(p, file)
		}
		p.words(file)
		faults = append(faults, p.faults...)
	}
	for _, name := range slices.Sorted(maps.Keys(methods)) {
		if n := methods[name]; n > maxMethods {
			faults = append(faults, fmt.Sprintf("%s: %s has %d methods, at most %d", dir, name, n, maxMethods))
		}
	}
	if limit := max(maxPackageLines, maxBigPackageLines[dir]); lines > limit {
		faults = append(faults, fmt.Sprintf("%s: %d lines, at most %d", dir, lines, limit))
	}
	return faults, nil
}

// longLines finds lines over the limit. In tests, lines with a string are exempt as data. So are fields with a
// tag, which have one line.
func longLines(name, source string, test bool) (faults []string) {
	raw := false
	for i, line := range strings.Split(source, "\n") {
		data := test && (raw || strings.ContainsAny(line, "\"`")) || strings.Contains(line, "`toml:\"") || strings.Contains(line, "`json:\"")
		if strings.Count(line, "`")%2 == 1 {
			raw = !raw
		}
		columns := utf8.RuneCountInString(line) + 3*strings.Count(line, "\t")
		if columns > maxColumns && !data {
			faults = append(faults, fmt.Sprintf("%s:%d: %d columns, at most %d", name, i+1, columns, maxColumns))
		}
	}
	return faults
}

// plainReader collects the faults of one file.
type plainReader struct {
	set     *token.FileSet
	methods map[string]int // by receiver type
	faults  []string
}

func (p *plainReader) fault(at token.Pos, format string, args ...any) {
	where := p.set.Position(at)
	p.faults = append(p.faults, fmt.Sprintf("%s:%d: ", where.Filename, where.Line)+fmt.Sprintf(format, args...))
}

// Visit implements ast.Visitor.
func (p *plainReader) Visit(n ast.Node) ast.Visitor {
	switch n := n.(type) {
	case *ast.FuncDecl:
		if n.Recv != nil {
			p.methods[receiver(n.Recv.List[0].Type)]++
		}
	case *ast.TypeSpec:
		s, ok := n.Type.(*ast.StructType)
		limit := cmp.Or(maxFieldsByType[p.set.Position(n.Pos()).Filename+" "+n.Name.Name], maxFields)
		if ok && s.Fields.NumFields() > limit && !tagged(s) {
			p.fault(n.Pos(), "%s has %d fields, at most %d", n.Name.Name, s.Fields.NumFields(), limit)
		}
	case *ast.IfStmt:
		assign, ok := n.Init.(*ast.AssignStmt)
		if ok && !forErrorOrOK(assign) {
			p.fault(n.Pos(), "an assignment is hidden in an if: only err and ok belong there")
		}
	}
	return p
}

// receiver is the name of a method's receiver type.
func receiver(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return receiver(e.X)
	case *ast.IndexExpr:
		return receiver(e.X)
	case *ast.Ident:
		return e.Name
	}
	return "?"
}

// tagged reports whether a struct is a format: each field has a tag.
func tagged(s *ast.StructType) bool {
	return !slices.ContainsFunc(s.Fields.List, func(f *ast.Field) bool { return f.Tag == nil })
}

// forErrorOrOK reports whether the last name that is assigned is err or ok.
func forErrorOrOK(a *ast.AssignStmt) bool {
	name, ok := a.Lhs[len(a.Lhs)-1].(*ast.Ident)
	return ok && (strings.HasPrefix(name.Name, "err") || strings.HasPrefix(name.Name, "ok"))
}

// words looks for stiff wording in the comments.
func (p *plainReader) words(file *ast.File) {
	for _, group := range file.Comments {
		for _, c := range group.List {
			text := fine.ReplaceAllString(c.Text, "")
			for _, word := range stiff.FindAllString(text, -1) {
				p.fault(c.Pos(), "stiff wording %q: see CONTRIBUTING", word)
			}
		}
	}
}
