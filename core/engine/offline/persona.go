package offline

import "strings"

// persona is who the bot is, read back out of the labelled sentences at the front of
// the instructions.
type persona struct {
	name      string
	aliases   []string
	profile   string
	likes     []string
	dislikes  []string
	interests []string
}

// labels are the sentences that a persona's text may hold, and those that follow
// it in the instructions.
func labels() []string {
	return []string{
		"Profile", "Personality", "Likes", "Dislikes", "Interests", "Speaking style", "Guidance",
		"Example dialogue, for the tone only", "Conversation language",
	}
}

func readPersona(text string, lex *vocabulary) persona {
	parts := splitLabels(strings.Join(strings.Fields(text), " "), lex)
	p := persona{
		name: "synthbot", profile: firstSentences(parts["Profile"], 260), likes: readList(parts["Likes"]),
		dislikes: readList(parts["Dislikes"]), interests: readList(parts["Interests"]),
	}
	p.readNames(parts[""])
	return p
}

// splitLabels cuts the text at its labels; what is before the first is under "".
// The last label's part runs into the rules that follow the persona, so that only
// its first sentence counts. Of a label that comes twice, the first part counts.
func splitLabels(text string, lex *vocabulary) map[string]string {
	parts := make(map[string]string)
	keep := func(label, part string) {
		_, again := parts[label]
		if !again {
			parts[label] = strings.TrimSpace(part)
		}
	}
	begin, label := 0, ""
	for _, m := range lex.labels.FindAllStringSubmatchIndex(text, -1) {
		keep(label, text[begin:m[0]])
		begin, label = m[1], text[m[2]:m[3]]
	}
	last := text[begin:]
	if label != "" {
		last = firstSentences(last, 0)
	}
	keep(label, last)
	return parts
}

// readNames reads "You are NAME, also called A, B."
func (p *persona) readNames(text string) {
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
		p.name = name
	}
	p.aliases = items(firstSentences(aliases, 0), ",")
}

// firstSentences cuts after the first sentence, or after as many as fit into
// limit bytes.
func firstSentences(text string, limit int) string {
	end := 0
	for i := 0; i+1 < len(text); i++ {
		if strings.IndexByte(".!?", text[i]) < 0 || text[i+1] != ' ' {
			continue
		}
		if end > 0 && i+1 > limit {
			break
		}
		end = i + 1
		if end > limit {
			break
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
