package offline

import (
	"slices"
	"strings"

	"synthbot/core/engine/offline/phrases"
	"synthbot/core/engine/offline/places"
	"synthbot/core/engine/offline/sums"
	"synthbot/core/txt"
)

// following answers what goes on with what was said before.
type following struct{ *speaker }

// compute reads a sum or a conversion, or what goes on with the result before: "times 2", "and in ounces?".
func (s following) compute(text string, b *phrases.Book) (sums.Answer, bool) {
	wholes := append([]string{text}, s.completed(text, b)...)
	if percentage().FindString(text) == text { // of what was asked before
		slices.Reverse(wholes)
	}
	for _, whole := range wholes {
		answer, ok := sums.Compute(whole, sumsOf(b))
		if ok && !strings.HasSuffix(answer.From, " "+answer.Unit) {
			return answer, true
		}
	}
	return sums.Answer{}, false
}

var (
	resultNumber = txt.Pattern(`^(?:\S+ ){0,4}?(-?\d[\d.,]*?)[.!]?$`)
	resultUnit   = txt.Pattern(`^(-?\d[\d.,]*) (\S+) [=≈] -?\d[\d.,]* (\S+)$`)
	percentage   = txt.Pattern(`\d+(?:[.,]\d+)? ?%`)
)

// completed lists what a text may mean behind the bot's latest result.
func (s following) completed(text string, b *phrases.Book) (wholes []string) {
	before := strings.Join(s.own(1), "")
	for n := b.Phrase("conjunctions", b.Split(text)); n > 0; n = b.Phrase("conjunctions", b.Split(text)) {
		text = strings.TrimSpace(text[b.Split(text)[n-1].End:])
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
	said := strings.Join(s.theirs()[:min(len(s.theirs()), 1)], "")
	if isBare && percentage().MatchString(said) {
		return []string{withoutQuestion(percentage().ReplaceAllLiteralString(said, percent), b)}
	}
	if b.Lists["operators"][b.Split(text)[0].Fold] == "of" {
		return nil
	}
	return []string{m[1] + " " + text}
}

// withoutQuestion takes the words in front of a sum off: "what is 15% of 80?".
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

// lastPlace is the place that users named last, at the end of a message.
func (s following) lastPlace() string {
	for _, said := range s.theirs() {
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

// again does anew what is left to chance, and says anything else once more.
func (s following) again() plan {
	said := s.theirs()
	for len(said) > 0 && s.understand(said[0]).topic == "again" {
		said = said[1:]
	}
	if len(said) > 0 {
		m := s.understand(said[0])
		if slices.Contains([]string{"dice", "coin", "number", "choose", "joke"}, m.topic) {
			return s.reply(m)
		}
	}
	return s.speak("query", s.quote("yousaid", s.unquoted()))
}

// unquoted are the bot's lines that quote nothing, newest first.
func (s following) unquoted() []string {
	return slices.DeleteFunc(s.own(6), func(said string) bool { return s.saidBefore(said, "yousaid", "isaid") })
}
