package display

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"image/png"
	"os"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/rogpeppe/go-internal/txtar"

	"synthbot/core/markdown"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// TestShow shows the contents of a file. Each is called NAME or NAME: FORMAT, and is followed by its output.
func TestShow(t *testing.T) {
	const file = "testdata/show.txtar"
	archive, err := txtar.ParseFile(file)
	if err != nil {
		t.Fatal(err)
	}
	fresh := &txtar.Archive{Comment: archive.Comment}
	for i := 0; i+1 < len(archive.Files); i += 2 {
		in, want := archive.Files[i], archive.Files[i+1]
		_, format, _ := strings.Cut(in.Name, ": ")
		s := Show(in.Data, Options{Format: format})
		got := fmt.Sprintf("%s\n%s\n", s.Format, s.Text)
		if s.Picture != nil {
			got = fmt.Sprintf("%s\n%s of %s\n%s\n", s.Format, s.Picture.Name, s.Picture.MIME, s.Text)
			checkPicture(t, in.Name, s.Picture.Data)
		}
		if got != string(want.Data) && !*update {
			t.Errorf("%s:\n%swant:\n%s", in.Name, got, want.Data)
		}
		fresh.Files = append(fresh.Files, in, txtar.File{Name: "want", Data: []byte(got)})
	}
	if len(fresh.Files) < 60 {
		t.Errorf("got %d contents and outputs", len(fresh.Files))
	}
	if *update {
		if err := os.WriteFile(file, txtar.Format(fresh), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// checkPicture fails the test unless data is a PNG of the right size that is not empty.
func checkPicture(t *testing.T, name string, data []byte) {
	t.Helper()
	img, err := png.Decode(bytes.NewReader(data))
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	if b := img.Bounds(); b.Dx() != width || b.Dy() != height {
		t.Errorf("%s: got %v", name, b)
	}
	colours := make(map[any]bool)
	for x := 0; x < width; x += 3 {
		for y := 0; y < height; y += 3 {
			colours[img.At(x, y)] = true
		}
	}
	if len(colours) < 5 {
		t.Errorf("%s: the picture is empty", name)
	}
}

func TestLargeContentIsCutVisibly(t *testing.T) {
	var rows, wide []string
	for i := range 500 {
		rows = append(rows, fmt.Sprintf(`{"n":%d,"text":%q}`, i, strings.Repeat("ä", 200)))
		wide = append(wide, fmt.Sprintf(`"c%d":%d`, i, i))
	}
	list := "[" + strings.Join(rows, ",") + "]"
	object := "{" + strings.Join(wide, ",") + "}"
	for _, tc := range []struct{ content, format, want string }{
		{list, "table", "more rows"},
		{"[" + object + "," + object + "]", "table", "more columns"},
		{list, "list", "more"},
		{list, "card", "more"},
		{object, "card", "more"},
		{`{"items":` + list + `}`, "balance_card", "more"},
		{`"` + strings.Repeat("x", 20_000) + `"`, "markdown", "…"},
		{`[` + strings.Repeat("[", 100) + strings.Repeat("]", 101), "", "cannot be shown"},
		{`"` + strings.Repeat("x", maxContent) + `"`, "", "cannot be shown"},
		{`[` + strings.Repeat("1,", maxNodes) + `1]`, "", "cannot be shown"},
	} {
		s := Show(json.RawMessage(tc.content), Options{Format: tc.format})
		if n := len(s.Text); n > 2*maxMarkdown || !strings.Contains(s.Text, tc.want) {
			t.Errorf("%s of %.40s: got %d bytes, %.200s", tc.format, tc.content, n, s.Text)
		}
	}
}

func TestFieldsComeFirst(t *testing.T) {
	got := Show(json.RawMessage(`{"n":[{"a":1,"b":2,"c":3},{"c":4,"b":5}]}`), Options{Fields: []string{"c", "x", "b"}}).Text
	if want := "| C | B | A |\n|---:|---:|---:|\n| 3 | 2 | 1 |\n| 4 | 5 |   |"; got != want {
		t.Errorf("got %s", got)
	}
}

func TestHugeNumbersAreDrawn(t *testing.T) {
	for _, kind := range []string{"line", "bar"} {
		s := Show(json.RawMessage(`{"labels":["a","b"],"series":[{"data":[1e15,-1e15]},{"data":[0,5e-324]}]}`), Options{Format: kind})
		if s.Picture == nil {
			t.Fatalf("%s: %s", kind, s.Text)
		}
		checkPicture(t, kind, s.Picture.Data)
	}
}

// TestTicksEncloseTheValues: with different labels, and even if the values are so close that the step between two
// ticks could be 0.
func TestTicksEncloseTheValues(t *testing.T) {
	for _, span := range [][2]float64{{0, 5e-324}, {-5e-324, 5e-324}, {0, 1e-9}, {1, 1}, {-1e15, 1e15}} {
		ticks := roundTicks(span[0], span[1])
		first, last := ticks[0].value, ticks[len(ticks)-1].value
		if !(first <= span[0] && last >= span[1] && first < last) || ticks[0].label == ticks[1].label {
			t.Errorf("%v: %v", span, ticks)
		}
	}
}

func TestManyPointsAreDrawn(t *testing.T) {
	var points []string
	for i := range 5000 {
		points = append(points, fmt.Sprintf("[%d,%d]", i, i*i%997))
	}
	s := Show(json.RawMessage(`{"series":[{"data":[`+strings.Join(points, ",")+`]}]}`), Options{Format: "chart", Title: "Noise"})
	if s.Picture == nil || !strings.Contains(s.Text, "4000 more left out") || s.Picture.Alt == "" {
		t.Errorf("got %+v", s)
	}
}

func TestDataIsNoMarkup(t *testing.T) {
	for _, s := range []string{
		"*bold* _it_ ~no~", "[x](http://evil.example)", "![x](y)", "<b>x</b>", "`code`", "# head", "- item", "1. one", "12) x", "> quote", "a | b", "&amp; &lt;", "snake_case_name", "_x_", "\\*", "+ x", "=====", "~~~", "||x||", "a\nb\n\n# c", "@everyone",
	} {
		blocks := markdown.Parse(escape(s))
		if got, want := markdown.Plain(blocks), strings.Join(strings.Fields(s), " "); got != want || len(blocks) != 1 || blocks[0].Kind != markdown.Paragraph {
			t.Errorf("%q: shown as %q", s, got)
		}
		for _, content := range []string{`{"k":%s}`, `[{"k":%s}]`, `[%s,1]`, `{"value":%s}`} {
			quoted, _ := json.Marshal(s)
			text := Show(json.RawMessage(fmt.Sprintf(content, quoted)), Options{}).Text
			if strings.Contains(strings.ReplaceAll(text, `\]`, ""), "](") || strings.Contains(text, "<b>") && !strings.Contains(text, `\<b`) {
				t.Errorf("%q in %s: %s", s, content, text)
			}
		}
	}
}

func FuzzShow(f *testing.F) {
	for _, format := range []string{"", "chart", "table", "x"} {
		f.Add([]byte(`{"labels":["a"],"series":[{"data":[1,[2,3],{"x":1,"y":2}]}]}`), format, "t")
		f.Add([]byte(`[{"a":1,"b":"x|y"},{"c":null}]`), format, "")
		f.Add([]byte(`{"type":"table","data":{"columns":["a",{"key":"b"}],"rows":[[1],{"b":2}]}}`), format, "*")
		f.Add([]byte(`{"value":1e400,"unit":"_","change":-0.0}`), format, "")
	}
	f.Fuzz(func(t *testing.T, content []byte, format, title string) {
		s := Show(content, Options{format, title, []string{"b", "x"}})
		if s.Text == "" || !utf8.ValidString(s.Text) && utf8.Valid(content) && utf8.ValidString(title) || len(s.Text) > 4*maxMarkdown+4*maxText {
			t.Errorf("%q as %q: %q", content, format, s.Text)
		}
		if s.Picture != nil && len(s.Picture.Data) == 0 {
			t.Error("got an empty picture")
		}
	})
}

// FuzzEscape checks that data never becomes markup.
func FuzzEscape(f *testing.F) {
	f.Add("*a* [b](c) 1. x")
	f.Add("1) `_~")
	f.Fuzz(func(t *testing.T, s string) {
		want := strings.Join(strings.Fields(s), " ")
		if len(s) > 200 || !utf8.ValidString(s) || want == "" || strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r >= 0x7f && r < 0xa0 || r == utf8.RuneError }) {
			return
		}
		if got := markdown.Plain(markdown.Parse(escape(s))); got != want && !strings.Contains(s, "://") && !strings.Contains(s, "www.") && !strings.Contains(s, "@") {
			t.Errorf("%q: shown as %q", want, got)
		}
	})
}

func BenchmarkChart(b *testing.B) {
	content := json.RawMessage(`{"labels":["Mon","Tue","Wed"],"series":[{"data":[1,2,3]},{"data":[3,2,1]}]}`)
	for b.Loop() {
		if Show(content, Options{Format: "chart"}).Picture == nil {
			b.Fatal("no picture")
		}
	}
}
