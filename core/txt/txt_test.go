package txt

import (
	"slices"
	"strings"
	"testing"
	"testing/quick"
	"unicode"
	"unicode/utf8"
)

func TestLine(t *testing.T) {
	for s, want := range map[string]string{
		"":                             "",
		"plain words":                  "plain words",
		" ":                            "",
		" two\nlines\t and\u2028more ": "two lines and more",
		"a\x00b\x1b[31m":               "a b [31m",
		"a\xffb":                       "a\uFFFDb",
		"exe.\u202ecod":                "exe.cod",
		"👩\u200d👧":                     "👩\u200d👧",
		"two  spaces":                  "two spaces",
	} {
		if got := Line(s); got != want {
			t.Errorf("Line(%q) = %q, want %q", s, got, want)
		}
	}
}

// TestLimits: a clipped text is valid, not too long, and begins like the original.
func TestLimits(t *testing.T) {
	check := func(s string, n uint8) bool {
		most := 3 + int(n)%40
		runes, bytes, line := Clip(s, most), ClipBytes(s, most), Line(s)
		for _, got := range []string{runes, bytes} {
			if begin, cut := strings.CutSuffix(got, "…"); !utf8.ValidString(got) || cut && !strings.HasPrefix(strings.ToValidUTF8(s, "\uFFFD"), begin) {
				return false
			}
		}
		return utf8.RuneCountInString(runes) <= most && len(bytes) <= most &&
			strings.IndexFunc(line, unicode.IsControl) < 0 && Line(line) == line
	}
	for _, s := range []string{"", "abc", "abcdef", "ää", "äääääää", "日本語テキスト", "a  bcdef", "\xff\xfe\xfd\xfc"} {
		for n := range uint8(40) {
			if !check(s, n) {
				t.Errorf("clipping %q with %d gives an invalid, too long or different text", s, n)
			}
		}
	}
	if err := quick.Check(check, nil); err != nil {
		t.Error(err)
	}
	if got := Clip("one two three", 5); got != "one…" {
		t.Errorf("Clip leaves a space before the end: %q", got)
	}
}

func TestFold(t *testing.T) {
	for s, want := range map[string]string{"Ærø": "æro", "STRAẞE": "strasse", "São Tomé": "sao tome", "e\u0301": "e", "ŪĒ ÿ 1º": "ue y 1o"} {
		if got := Fold(s); got != want {
			t.Errorf("Fold(%q) = %q, want %q", s, got, want)
		}
	}
}

func TestFileName(t *testing.T) {
	for name, want := range map[string]string{"Mira D.": "mira-d", "猫": "猫", "Мира": "мира", "Ёж и Мира": "ёж-и-мира", "प्रिया": "प्रिया", "../up": "up", "R2-D2": "r2-d2", "?!": "persona",
		strings.Repeat("я", 90): strings.Repeat("я", 50), "a" + strings.Repeat("я", 90): "a" + strings.Repeat("я", 49)} {
		if got := FileName(name, "persona"); got != want {
			t.Errorf("%q: got the file name %q, want %q", name, got, want)
		}
	}
}

// TestFields: digits stay together across a mark, and words keep their accents.
func TestFields(t *testing.T) {
	const text = "Alle 18:30, cafe\u0301. 3.5 o'clock: 1st:2"
	var got []string
	for start, end := range Fields(text, ":.") {
		got = append(got, text[start:end])
	}
	if want := []string{"Alle", "18:30", "cafe\u0301", "3.5", "o", "clock", "1st", "2"}; !slices.Equal(got, want) {
		t.Errorf("unexpected fields %q", got)
	}
	for range Fields(text, "") {
		break // stopping early is allowed
	}
}

func TestIsName(t *testing.T) {
	for name, want := range map[string]bool{
		"a": true, "a_9": true, "a-b": true, strings.Repeat("a", 40): true,
		"": false, "A": false, "a.b": false, "a b": false, "ä": false, "a\n": false, "a/b": false, strings.Repeat("a", 41): false,
	} {
		if IsName(name, 40, "-") != want {
			t.Errorf("%q is a name: got %t, want %t", name, !want, want)
		}
	}
}

func TestLabels(t *testing.T) {
	got := Labels([]string{"Tea ", "", "\n", "tea", "GREEN\ntea", "éééééé"}, 5)
	if want := []string{"tea", "gree…", "éééé…"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestHasVisible: a text of blank or invisible characters is empty.
func TestHasVisible(t *testing.T) {
	for text, want := range map[string]bool{
		"a": true, " . ": true, "👍": true, "": false, " \n\t": false, "\u00a0\u3000": false, "\u2060": false, "\u3164": false, "\u2800": false,
		"\u200b\u0000": false, "\u1160\uffa0": false, "\U0001fae9": true, // an emoji that is newer than Go's tables
	} {
		if got := HasVisible(text); got != want {
			t.Errorf("HasVisible(%q) = %v, want %v", text, got, want)
		}
	}
}
