package memory

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"synthbot/core"
)

// TestTerms: the terms of texts are stored in the file, so they must not change.
func TestTerms(t *testing.T) {
	for _, tc := range []struct{ language, text, terms string }{
		{"", "The dogs, the DOGS: 2 dogs!", "the dogs 2"},
		{"en", "running dogs ran", "run dog ran"},
		{"EN-gb", "running", "run"},
		{"de", "Die Häuser gehören", "die haus gehor"},
		{"nl", "de lichamelijkheden", "de licham"},
		{"fr", "les continuations", "le continu"},
		{"it", "abbandonata", "abbandon"},
		{"es", "chicharrones", "chicharron"},
		{"pt-BR", "quilométricas", "quilométr"},
		{"ru", "собаками", "собак"},
		{"sv", "jaktkarlarne", "jaktkarl"},
		{"da", "indtagelserne", "indtag"},
		{"no", "havnedistriktene", "havnedistrikt"},
		{"nb", "havnedistriktene", "havnedistrikt"},
		{"nn", "havnedistriktene", "havnedistrikt"},
		{"fi", "edeltäneeseen", "edeltän"},
		{"xx", "running", "running"},
		{"", "Cafe\u0301 CAFÉ", "café"},
		{"", "猫が好き neko", "猫が が好 好き neko 猫 好"},
		{"", "猫", "猫"},
		{"", "я猫я", "я 猫"},
		{"", "iPhone15を買った", "iphone15 を買 買っ った 買"},
		{"", "コーヒーx", "コー ーヒ ヒー x"},
		{"", "xー", "xー"},
		{"", "あ\u0301い", "あ\u0301 \u0301い"},
		{"", "a\u0301\u0302b", "á\u0302b"},
		{"", "ก ข", "ก ข"},
		{"", "—…!", ""},
	} {
		if got := strings.Join(terms(tc.text, tc.language), " "); got != tc.terms {
			t.Errorf("%s %q: got %q, want %q", tc.language, tc.text, got, tc.terms)
		}
	}
}

// TestTermsAreBounded: only a part of long words and texts is used.
func TestTermsAreBounded(t *testing.T) {
	for text, length := range map[string]int{
		strings.Repeat("x", maxWord): maxWord, strings.Repeat("x", maxWord+1): maxWord,
		"x" + strings.Repeat("é", maxWord/2-1): maxWord - 1, "x" + strings.Repeat("é", maxWord/2): maxWord - 1,
	} {
		got := terms(text, "")
		if len(got) != 1 || len(got[0]) != length || !utf8.ValidString(got[0]) {
			t.Errorf("%q of %d bytes: unexpected terms %q", text, len(text), got)
		}
	}
	var words, signs strings.Builder
	for i := range 2 * maxWords {
		fmt.Fprintf(&words, "w%d ", i)
		signs.WriteRune(rune(0x4e00 + i))
	}
	for _, text := range []string{words.String(), signs.String(), signs.String()[:900]} {
		all := terms(text, "")
		want(t, "terms", len(all), maxWords)
		want(t, "different ones", len(slices.Compact(slices.Sorted(slices.Values(all)))), maxWords)
	}
}

// TestTermsOfAFact: the terms of a fact are stored in the file, so they must not change; new ones
// may be added.
func TestTermsOfAFact(t *testing.T) {
	f := core.Fact{
		Text: "Jay's dogs run", Language: "en", Topic: " Pets ", Tags: []string{" Animals ", "dogs"}, About: []core.Path{jay, ann},
	}
	got := strings.Join(factTerms(&f), "\n")
	want(t, "terms", got, strings.Join([]string{
		"*", "a84de363a7f0e561c1d522596", "ade78c9a97ed0270b36aa4ccd", "kc209a460ddfd86c1f7387535", "s4a07dc2dfb5f265d02c72e9d",
		"t23bcd2d83d4c0f270640ec65", "t3be1d422a46085e17f4a19d3", "tee9c1331c074457bded9b9bd", "wanim", "wdog", "wjay", "wrun", "ws",
	}, "\n"))
	same := f
	same.Text, same.About = "run dog, s jay", []core.Path{ann, jay}
	want(t, "what says the same", sameTerm(same), sameTerm(f))
	want(t, "the same topic", topicTerm(same), topicTerm(f))
	same.About = same.About[:1]
	if sameTerm(same) == sameTerm(f) || topicTerm(same) == topicTerm(f) {
		t.Error("a fact about another user has the same terms")
	}
	plain := factTerms(&core.Fact{Text: "tea"})
	want(t, "terms of a fact without a topic", len(plain), 3)
}

// TestQueryWords: a query is split by the words of its language, or of all known languages, and its
// length is limited.
func TestQueryWords(t *testing.T) {
	for _, tc := range []struct{ language, text, words, asked string }{
		{"en", "running dogs", "run dog running dogs", "[0 1 0 1]"},
		{"", "tea", "tea te", "[0 0]"},
		{"", "dogs häuser", "dogs häuser dog haus häus hauser", "[0 1 0 1 1 1]"},
	} {
		s := &search{text: tc.text, languages: languages()}
		if tc.language != "" {
			s.languages = []string{tc.language, ""}
		}
		s.queryWords()
		want(t, tc.text, strings.Join(s.words, " ")+" "+fmt.Sprint(s.wordOf), tc.words+" "+tc.asked)
	}
	var text strings.Builder
	for i := range 2 * maxQuery {
		fmt.Fprintf(&text, "w%d ", i)
	}
	for _, forms := range [][]string{languages(), {"en", ""}} {
		s := &search{text: text.String(), languages: forms}
		s.queryWords()
		want(t, "words of a long question", len(s.words), maxQuery)
	}
}
