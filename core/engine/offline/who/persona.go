// Package who reads back out of a request who the bot is, which language it is to speak, and whether a name can be
// said.
package who

import (
	"slices"
	"strings"

	"synthbot/core/txt"
)

// Persona is who the bot is, read back out of the labelled sentences at the front of the instructions.
type Persona struct {
	Name      string
	Aliases   []string
	Profile   string
	Likes     []string
	Dislikes  []string
	Interests []string
}

// labels introduce the sentences that a persona's text may hold, and those that follow it in the instructions.
var labels = txt.Pattern(`(?:^| )(Profile|Personality|Likes|Dislikes|Interests|Speaking style|Guidance|` +
	`Example dialogue, for the tone only|Conversation language): `)

// Read cuts the text at its labels. The last label's part runs into the rules that follow
// the persona, so that only its first sentence counts. Of a label that comes twice, the first part counts.
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

// firstSentences cuts after the first sentence, or after as many as fit into limit bytes.
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
