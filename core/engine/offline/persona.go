package offline

import "strings"

// persona is who the bot is, read back out of the labelled sentences that stand
// in front of the instructions.
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

func readPersona(text string, lex *lexicon) persona {
	text = strings.Join(strings.Fields(text), " ")
	p := persona{name: "synthbot"}
	parts := splitLabels(text, lex)
	p.readNames(parts[""])
	p.profile = firstSentences(parts["Profile"], 260)
	p.likes = readList(parts["Likes"])
	p.dislikes = readList(parts["Dislikes"])
	p.interests = readList(parts["Interests"])
	return p
}

// splitLabels cuts the text at its labels; what stands before the first is
// under "". The last label's part runs into the rules that follow the persona,
// so that only its first sentence counts.
func splitLabels(text string, lex *lexicon) map[string]string {
	found := lex.labels.FindAllStringSubmatchIndex(text, -1)
	parts := make(map[string]string)
	begin, label := 0, ""
	for _, m := range found {
		keepFirst(parts, label, text[begin:m[0]])
		begin, label = m[1], text[m[2]:m[3]]
	}
	last := text[begin:]
	if label != "" {
		last = firstSentences(last, 0)
	}
	keepFirst(parts, label, last)
	return parts
}

func keepFirst(parts map[string]string, label, text string) {
	if _, again := parts[label]; !again {
		parts[label] = strings.TrimSpace(text)
	}
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
	if name = strings.TrimRight(strings.TrimSpace(name), "."); name != "" && len(name) < 80 {
		p.name = name
	}
	for alias := range strings.SplitSeq(firstSentences(aliases, 0), ",") {
		if alias = strings.Trim(alias, " ."); alias != "" {
			p.aliases = append(p.aliases, alias)
		}
	}
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
		if end = i + 1; end > limit {
			break
		}
	}
	if end == 0 || len(text) <= limit {
		return strings.TrimSpace(text)
	}
	return text[:end]
}

func readList(text string) []string {
	var list []string
	for item := range strings.SplitSeq(strings.TrimRight(firstSentences(text, 0), ". "), ";") {
		if item = strings.TrimSpace(item); item != "" && len(list) < 24 {
			list = append(list, item)
		}
	}
	return list
}
