// Package who reads from a request who the bot is and which language it should speak, and which names may be used
// in answers.
package who

import (
	"cmp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"synthbot/core/txt"
)

// Persona is read from the labelled sentences at the start of the instructions.
type Persona struct {
	Name      string
	Aliases   []string
	Profile   string
	Likes     []string
	Dislikes  []string
	Interests []string
}

// labels matches the labels of the persona's sentences, and of those that follow them in the instructions.
var labels = txt.Pattern(`(?:^| )(Profile|Personality|Likes|Dislikes|Interests|Speaking style|Guidance|` +
	`Example dialogue, for the tone only|Conversation language): `)

// Read cuts the text at its labels. Only the first sentence of the last part counts, because the rules follow it.
// If a label occurs twice, its first part counts.
func Read(text string) Persona {
	text = strings.Join(strings.Fields(text), " ")
	parts := make(map[string]string)
	end := len(text)
	for _, m := range slices.Backward(labels().FindAllStringSubmatchIndex(text, -1)) {
		part := strings.TrimSpace(text[m[1]:end])
		if end == len(text) {
			part = firstSentences(part, 0)
		}
		parts[text[m[2]:m[3]]] = part
		end = m[0]
	}
	p := Persona{
		Name: "synthbot", Profile: firstSentences(parts["Profile"], 260), Likes: readList(parts["Likes"]),
		Dislikes: readList(parts["Dislikes"]), Interests: readList(parts["Interests"]),
	}
	p.readNames(strings.TrimSpace(text[:end]))
	return p
}

// readNames reads "You are NAME, also called A, B."
func (p *Persona) readNames(text string) {
	_, text, ok := strings.Cut(text, "You are ")
	if !ok {
		return
	}
	name, aliases, named := strings.Cut(text, ", also called ")
	if !named {
		name = firstSentences(name, 0)
	}
	name = strings.TrimRight(strings.TrimSpace(name), ".")
	if name != "" && len(name) < 80 {
		p.Name = name
	}
	p.Aliases = items(firstSentences(aliases, 0), ",")
}

// firstSentences returns the first sentence, and the following ones that fit into limit bytes.
func firstSentences(text string, limit int) string {
	end := 0
	for i := 0; i+1 < len(text); i++ {
		ends := strings.IndexByte(".!?", text[i]) >= 0 && text[i+1] == ' '
		if ends && (end == 0 || i+1 <= limit) {
			end = i + 1
		}
	}
	if end == 0 || len(text) <= limit {
		return strings.TrimSpace(text)
	}
	return text[:end]
}

func readList(text string) []string {
	list := items(firstSentences(text, 0), ";")
	return list[:min(len(list), 24)]
}

func items(text, separator string) (list []string) {
	for item := range strings.SplitSeq(text, separator) {
		item = strings.Trim(item, " .")
		if item != "" {
			list = append(list, item)
		}
	}
	return list
}

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

// Speakable returns the first word of a name if an answer may contain it, or else "". Names come
// from users and must not bring in messages or markup.
func Speakable(name string) string {
	fields := strings.Fields(name)
	if len(fields) == 0 {
		return ""
	}
	name = fields[0]
	letters, logins := 0, []string{"root", "admin", "administrator", "user"}
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
