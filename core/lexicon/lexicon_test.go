package lexicon

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestContent(t *testing.T) {
	l := New()
	for text, want := range map[string]string{
		"":                       "",
		"hello":                  "",
		"Hi! How are you today?": "",
		"Ciao, come stai?":       "stai",
		"Do you remember where I parked the car yesterday?": "parked car",
		"Wann fährt mein Zug nach München?":                 "fährt zug münchen",
		"Is there a TV in the UK? or so":                    "tv uk",
		"car CAR Car":                                       "car",
		"私は東京に住んでいます":                                       "私は は東 東京 京に に住 住ん んで でい いま ます",
		"猫":                                                 "猫",
	} {
		if got := strings.Join(l.Content(text), " "); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}

func TestAlike(t *testing.T) {
	for _, tc := range []struct {
		a, b string
		want bool
	}{
		{"parked", "parking", true}, {"car", "cars", true}, {"works", "work", true}, {"cat", "car", false},
		{"lavoro", "lavora", true}, {"interest", "internet", false}, {"running", "runs", false}, {"ab", "abc", false},
		{"東京", "東京", true}, {"東京", "東都", false}, {"spider", "spiders", true}, {"home", "homework", false},
	} {
		if got := sameWord(tc.a, tc.b); got != tc.want || sameWord(tc.b, tc.a) != tc.want {
			t.Errorf("%s, %s: got %v, want %v", tc.a, tc.b, got, tc.want)
		}
	}
}

func TestEnough(t *testing.T) {
	for words, want := range map[int]int{1: 1, 4: 1, 5: 2, 8: 2, 9: 3, 12: 3, 40: 3} {
		if got := Enough(words); got != want {
			t.Errorf("%d words: got %d, want %d", words, got, want)
		}
	}
}

func TestTelling(t *testing.T) {
	words := strings.Fields("aaa bbb ccc ddd eee fff ggg hhh iii jjj kkk lll longest longer")
	got := Telling(words)
	if len(got) != maxTelling || got[0] != "longest" || got[1] != "longer" || words[0] != "aaa" {
		t.Errorf("unexpected words %v", got)
	}
}

// FuzzContent: each content word is in the text and similar to itself.
func FuzzContent(f *testing.F) {
	f.Add("Do you remember where I parked the car?")
	f.Add("東京に TV \xff\xfe ǅungla İstanbul")
	l := New()
	f.Fuzz(func(t *testing.T, text string) {
		lower := strings.ToLower(text)
		for _, w := range l.Content(text) {
			if w == "" || l[w] || utf8.ValidString(text) && !strings.Contains(lower, w) {
				t.Errorf("%q is not in %q", w, text)
			}
			if !sameWord(w, w) {
				t.Errorf("%q is not similar to itself", w)
			}
		}
	})
}
