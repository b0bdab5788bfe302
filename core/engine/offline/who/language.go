package who

import (
	"cmp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"synthbot/core/txt"
)

// LanguageCode reads a code ("it-IT") or a name ("Italian").
func LanguageCode(s string) string {
	s = txt.Fold(strings.TrimSpace(s))
	code, _, _ := strings.Cut(strings.ReplaceAll(s, "_", "-"), "-")
	names := map[string]string{
		"english": "en", "german": "de", "deutsch": "de", "italian": "it", "italiano": "it",
		"spanish": "es", "espanol": "es", "french": "fr", "francais": "fr",
	}
	return cmp.Or(names[s], code)
}

var (
	namedCode     = txt.Pattern(`\blanguage:? ?["']?(en|de|it|es|fr)(?:-[a-z]+)?["'.;, ]`)
	namedLanguage = txt.Pattern(`\b(?:answer|reply|respond|write|speak|language)[^.]{0,20}? ` +
		`(english|german|deutsch|italian|italiano|spanish|espanol|french|francais)[^a-z]`)
)

// Language finds "answer in Italian", "language: it" and the like in the instructions.
func Language(rules string) string {
	rules = txt.Fold(rules) + " "
	m := namedCode().FindStringSubmatch(rules)
	if m == nil {
		m = namedLanguage().FindStringSubmatch(rules)
	}
	if m == nil {
		return ""
	}
	return LanguageCode(m[1])
}

// logins are account names that do not name a person.
var logins = []string{"root", "admin", "administrator", "user"}

// Speakable returns the first word of a name if an answer may contain it, or else "". Names come
// from users and must not bring in messages or markup.
func Speakable(name string) string {
	fields := strings.Fields(name)
	if len(fields) == 0 {
		return ""
	}
	name = fields[0]
	letters := 0
	for _, r := range name {
		if unicode.IsLetter(r) {
			letters++
		} else if !unicode.IsDigit(r) && !strings.ContainsRune("-.'’", r) {
			return ""
		}
	}
	if letters < 2 || utf8.RuneCountInString(name) > 24 || slices.Contains(logins, strings.ToLower(name)) {
		return ""
	}
	return strings.TrimRight(name, ".-'’")
}
