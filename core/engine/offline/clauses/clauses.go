// Package clauses cuts texts into sentences, and turns subordinate clauses into sentences.
package clauses

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"synthbot/core/txt"
)

// Sentences cuts a text after the marks that end a sentence, but not after the full stop of a number or a
// single letter ("am 21. Mai", "9 a.m. sharp").
func Sentences(text string) (list []string) {
	start := 0
	for i, r := range text {
		after, _ := utf8.DecodeRuneInString(text[min(i+utf8.RuneLen(r), len(text)):])
		begins := unicode.IsSpace(after) || after == '¿' || after == '¡'
		ends := r == '\n' || begins && strings.ContainsRune(".!?…;", r)
		if !ends || r == '.' && isAbbreviation(text[start:i]) {
			continue
		}
		list = append(list, text[start:i+utf8.RuneLen(r)])
		start = i + utf8.RuneLen(r)
	}
	return append(list, text[start:])
}

// isAbbreviation reports whether a full stop after the text does not end a sentence.
func isAbbreviation(text string) bool {
	last := text[strings.LastIndexAny(text, " .\n")+1:]
	first, size := utf8.DecodeRuneInString(last)
	return size > 0 && (size == len(last) || unicode.IsDigit(first)) && !unicode.IsPunct(first)
}

// Main moves the verb from the end of a clause to its subject: "ich in Berlin wohne" becomes "ich wohne in Berlin".
// verbs, determiners and functions hold folded words of the language. A function word, such as "in", ends the
// subject before it. Main returns other texts, and those with several clauses, unchanged.
func Main(text string, verbs, determiners, functions map[string]string) string {
	words := strings.Fields(text)
	last := len(words) - 1
	if last < 2 || !has(verbs, words[last]) || strings.Contains(text, ",") {
		return text
	}
	subject := 1 // number of words
	if !has(determiners, words[0]) && !has(functions, words[0]) {
		for subject < last && isCapital(words[subject]) && isCapital(words[0]) { // Tante Maria
			subject++
		}
		if !has(functions, words[subject]) && !isCapital(words[0]) {
			return text
		}
	}
	if has(determiners, words[0]) {
		subject = 2
		noun := slices.IndexFunc(words[1:last], isCapital) + 1
		isName := noun == 2 && noun == last-1 && !isInflected(words[1]) // meine schwester Lena heißt
		if noun > 0 && !isName {
			subject = noun + 1
		} else if noun <= 0 && (has(determiners, words[1]) || isInflected(words[1])) {
			return text
		}
	}
	if subject == last {
		return text
	}
	return strings.Join(slices.Concat(words[:subject], words[last:], words[subject:last]), " ")
}

func has(list map[string]string, word string) bool {
	_, ok := list[txt.Fold(word)]
	return ok
}

func isCapital(word string) bool {
	first, _ := utf8.DecodeRuneInString(word)
	return unicode.IsUpper(first)
}

// isInflected reports whether a word may be an adjective before a noun, as in "neues auto".
func isInflected(word string) bool {
	return strings.HasSuffix(word, "es") || strings.HasSuffix(word, "en") || strings.HasSuffix(word, "em")
}
