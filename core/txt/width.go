package txt

import (
	"iter"
	"unicode"
	"unicode/utf8"

	"github.com/clipperhouse/uax29/v2/graphemes"
)

// wide holds the ranges of characters that take two columns, first and last of
// each range in turn: East Asian wide ones and emoji.
const wide = "\u1100\u115f\u231a\u231b\u2329\u232a\u23e9\u23ec\u23f0\u23f0\u23f3\u23f3\u25fd\u25fe\u2614\u2615" +
	"\u2648\u2653\u267f\u267f\u2693\u2693\u26a1\u26a1\u26aa\u26ab\u26bd\u26be\u26c4\u26c5\u26ce\u26ce" +
	"\u26d4\u26d4\u26ea\u26ea\u26f2\u26f3\u26f5\u26f5\u26fa\u26fa\u26fd\u26fd\u2705\u2705\u270a\u270b" +
	"\u2728\u2728\u274c\u274c\u274e\u274e\u2753\u2755\u2757\u2757\u2795\u2797\u27b0\u27b0\u27bf\u27bf" +
	"\u2b1b\u2b1c\u2b50\u2b50\u2b55\u2b55\u2e80\u303e\u3041\ua4cf\ua960\ua97f\uac00\ud7a3\uf900\ufaff" +
	"\ufe10\ufe19\ufe30\ufe6f\uff01\uff60\uffe0\uffe6\U00016fe0\U00018cff\U0001aff0\U0001b2ff" +
	"\U0001f004\U0001f004\U0001f0cf\U0001f0cf\U0001f18e\U0001f18e\U0001f191\U0001f19a\U0001f1e6\U0001f1ff" +
	"\U0001f200\U0001f320\U0001f32d\U0001f335\U0001f337\U0001f37c\U0001f37e\U0001f393\U0001f3a0\U0001f3ca" +
	"\U0001f3cf\U0001f3d3\U0001f3e0\U0001f3f0\U0001f3f4\U0001f3f4\U0001f3f8\U0001f43e\U0001f440\U0001f440" +
	"\U0001f442\U0001f4fc\U0001f4ff\U0001f53d\U0001f54b\U0001f54e\U0001f550\U0001f567\U0001f57a\U0001f57a" +
	"\U0001f595\U0001f596\U0001f5a4\U0001f5a4\U0001f5fb\U0001f64f\U0001f680\U0001f6c5\U0001f6cc\U0001f6cc" +
	"\U0001f6d0\U0001f6d2\U0001f6d5\U0001f6d7\U0001f6dc\U0001f6df\U0001f6eb\U0001f6ec\U0001f6f4\U0001f6fc" +
	"\U0001f7e0\U0001f7eb\U0001f7f0\U0001f7f0\U0001f90c\U0001f93a\U0001f93c\U0001f945\U0001f947\U0001f9ff" +
	"\U0001fa70\U0001faff\U00020000\U0003fffd"

// emojiStyle asks for the picture of a character that has a plain form too.
const emojiStyle = '\ufe0f'

// Columns returns how many columns a grapheme takes: 0, 1 or 2.
func Columns(grapheme string) int {
	if len(grapheme) == 1 {
		if grapheme[0] < ' ' || grapheme[0] == 0x7f {
			return 0
		}
		return 1
	}
	first, size := utf8.DecodeRuneInString(grapheme)
	if isWide(first) {
		return 2
	}
	for _, r := range grapheme[size:] {
		if r == emojiStyle {
			return 2
		}
	}
	if unicode.In(first, unicode.Mn, unicode.Me, unicode.Cf, unicode.Cc) {
		return 0
	}
	return 1
}

func isWide(r rune) bool {
	if r < 0x1100 {
		return false
	}
	for s := wide; s != ""; {
		first, a := utf8.DecodeRuneInString(s)
		last, b := utf8.DecodeRuneInString(s[a:])
		if r <= last {
			return r >= first
		}
		s = s[a+b:]
	}
	return false
}

// Width returns how many columns a text takes on one line of a terminal, or in a font
// whose characters are all as wide.
func Width(s string) int {
	n := 0
	for g := range Graphemes(s) {
		n += Columns(g)
	}
	return n
}

// Graphemes yields what a reader takes for single characters, in order: letters
// with their accents, families of emoji.
func Graphemes(s string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for g := graphemes.FromString(s); g.Next(); {
			if !yield(g.Value()) {
				return
			}
		}
	}
}
