package offline

import (
	"cmp"
	"slices"
	"strings"

	"synthbot/core/engine/offline/phrases"
	"synthbot/core/engine/offline/places"
	"synthbot/core/engine/offline/sums"
	"synthbot/core/txt"
)

// followUpReplies answers messages that refer to earlier ones.
type followUpReplies struct{ *speaker }

// sum computes a sum or a conversion, or one that continues the last result: "times 2", "and in ounces?".
func (s followUpReplies) sum(m understood) string {
	text := m.rest()
	wholes := append([]string{text}, s.completions(text, s.book)...)
	if percentage().FindString(text) == text { // it may replace the one in the last question
		slices.Reverse(wholes)
	}
	for _, whole := range wholes {
		answer, ok := sums.Compute(whole, sumsOf(s.book))
		if ok && !strings.HasSuffix(answer.From, " "+answer.Unit) {
			return s.result(answer)
		}
	}
	return ""
}

var (
	resultNumber = txt.Pattern(`^(?:\S+ ){0,4}?(-?\d[\d.,]*?)[.!]?$`)
	resultUnit   = txt.Pattern(`^(-?\d[\d.,]*) (\S+) [=≈] -?\d[\d.,]* (\S+)$`)
	percentage   = txt.Pattern(`\d+(?:[.,]\d+)? ?%`)
)

// completions lists the sums that a text may mean after the bot's last result.
func (s followUpReplies) completions(text string, b *phrases.Book) (wholes []string) {
	before := strings.Join(s.botLines(1), "")
	t := b.Read(text)
	n := len(t.Words) - len(t.After("conjunctions").Words)
	if n > 0 {
		text = strings.TrimSpace(text[t.Words[n-1].End:])
	}
	m := resultUnit().FindStringSubmatch(before)
	if m != nil {
		to := " " + b.Says["into"][0] + " "
		amount := m[1] + " " + m[2]
		return []string{
			amount + " " + text, amount + to + text, text + " " + m[2] + to + m[3], text + to + m[3], text + to + m[2],
		}
	}
	m = resultNumber().FindStringSubmatch(before)
	if m == nil || len(b.Split(text)) == 0 {
		return nil
	}
	percent := percentage().FindString(text)
	isBare := percent != "" && len(b.Split(strings.Replace(text, percent, "", 1))) <= 1
	said := strings.Join(s.userLines()[:min(len(s.userLines()), 1)], "")
	if isBare && percentage().MatchString(said) {
		return []string{withoutQuestion(percentage().ReplaceAllLiteralString(said, percent), b)}
	}
	if b.Lists["operators"][b.Split(text)[0].Fold] == "of" {
		return nil
	}
	return []string{m[1] + " " + text}
}

// withoutQuestion removes the words in front of a sum: "what is 15% of 80?".
func withoutQuestion(text string, b *phrases.Book) string {
	text = strings.Trim(text, " ?!.¿")
	for _, w := range b.Split(text) {
		_, ok := sums.Compute(text[w.Start:], sumsOf(b))
		if ok {
			return text[w.Start:]
		}
	}
	return text
}

// lastPlace returns the place that the user named last, at the end of a message.
func (s followUpReplies) lastPlace() string {
	for _, said := range s.userLines() {
		words := phrases.Split(said)
		for n := min(len(words)-1, 3); n > 0; n-- {
			name := said[words[len(words)-n].Start:words[len(words)-1].End]
			if len(places.Zones(name)) > 0 {
				return name
			}
		}
	}
	return ""
}

// again rolls or picks again if the last request was about chance or jokes, and else quotes the last answer.
func (s followUpReplies) again(understood) plan {
	said := s.userLines()
	for len(said) > 0 && s.understand(said[0]).topic == "again" {
		said = said[1:]
	}
	if len(said) > 0 {
		m := s.understand(said[0])
		if slices.Contains([]string{"dice", "coin", "number", "choose", "joke"}, m.topic) {
			return s.reply(m)
		}
	}
	return s.speak("query", s.quoteBot(understood{}))
}

func (s followUpReplies) quoteUser(understood) string { return s.quote("isaid", s.userLines()) }

// quoteBot quotes the bot's last line that quotes nothing.
func (s followUpReplies) quoteBot(understood) string {
	isQuote := func(said string) bool { return s.saidBefore(said, "yousaid", "isaid") }
	return s.quote("yousaid", slices.DeleteFunc(s.botLines(6), isQuote))
}

func (s followUpReplies) quote(topic string, lines []string) string {
	first := strings.Join(lines[:min(len(lines), 1)], "")
	quoted := txt.Clip(strings.ReplaceAll(txt.Line(first), `"`, "'"), 240)
	return cmp.Or(s.say(topic, "quote", quoted), s.say("isaidnone"))
}
