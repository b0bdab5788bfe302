// Package slips compares words with different endings and corrects typing errors, in any language.
package slips

import (
	"cmp"
	"slices"
	"strings"

	"synthbot/core/txt"
)

// Correct returns the known word that a folded word probably means, or the word itself.
func Correct(fold string, known map[string]bool) string {
	if known[fold] {
		return fold
	}
	plain := strings.NewReplacer("ae", "a", "oe", "o", "ue", "u").Replace(fold) // typed without the umlauts' keys
	n := len(fold)
	if known[plain] {
		return plain
	}
	if n < 4 || fold[0] <= '9' {
		return fold
	}
	meant := ""
	for word := range known {
		d := len(word) - n
		isNear := d*d <= 1 && (len(word) >= 5 || d == 0) && (n > 4 || sameLetters(fold, word))
		if isNear && (meant == "" || word < meant) && txt.Distance(fold, word) == 1 {
			meant = word
		}
	}
	return cmp.Or(meant, fold)
}

func sameLetters(a, b string) bool {
	x, y := []byte(a), []byte(b)
	slices.Sort(x)
	slices.Sort(y)
	return slices.Equal(x, y)
}

// SameWord reports whether two folded words are probably forms of one: equal except for a short ending.
func SameWord(a, b string) bool {
	if len(a) > len(b) {
		a, b = b, a
	}
	switch {
	case a == b:
		return true
	case len(a) < 4 || len(b)-len(a) > 2:
		return false
	}
	return strings.HasPrefix(b, a) || len(a) > 4 && len(a) == len(b) && a[:len(a)-1] == b[:len(b)-1]
}
