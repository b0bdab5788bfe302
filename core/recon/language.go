package recon

import (
	"cmp"
	"math"
	"strings"

	"synthbot/core"
	"synthbot/core/hint"
)

// Weights and conditions for a change of language. Evidence is measured in listed words.
const (
	messageMax  = 4.0  // most evidence of one message, so that a pasted page does not change the language
	fading      = 0.7  // factor for former evidence after a message of messageMax
	trustStart  = 2.0  // initial trust in the locale
	trustMin    = 1.5  // with less trust, the locale does not count
	strangePart = 0.5  // trust lost with each word of another or an unknown language
	firstMin    = 1.2  // evidence for a first language
	firstLead   = 1.3  // times the evidence of the next best
	firstPart   = 0.25 // evidence for each word said
	changeMin   = 3.0  // evidence for a change
	changeLead  = 1.7  // times the evidence of the language in force
	unknownMin  = 8.0  // evidence for a first language if the detector does not know the locale
)

// conversation follows the language of a place from message to message.
type conversation struct {
	at       int     // the current language; -1: unknown to the detector
	heard    bool    // whether it is from words of users, not from the locale
	first    float64 // the evidence that a first language needs
	trust    float64 // in the locale
	words    float64 // number of words, faded like the evidence
	strength evidence
}

func (c *conversation) add(said reading) {
	e, words, sum := said.evidence, said.words, said.evidence.sum()
	if words == 0 {
		return
	}
	scale := min(1, messageMax/max(sum, 1))
	fade := math.Pow(fading, min(sum, messageMax)/messageMax)
	for i, v := range e {
		c.strength[i] = c.strength[i]*fade + v*scale
	}
	c.words = c.words*fade + float64(words)*scale
	if !c.heard {
		known := 0.0
		if c.at >= 0 {
			known = e[c.at]
		}
		c.trust = max(0, c.trust-strangePart*max(0, float64(words)-known))
		at, sure := c.clearest()
		if sure && c.strength[at] >= c.first { // the first language that users speak
			c.at, c.heard = at, true
		}
		return
	}
	at, _ := c.strength.best()
	if c.strength[at] >= changeMin && c.strength[at] >= changeLead*c.strength[c.at] {
		c.at = at
	}
}

// clearest returns the strongest language, and whether it is clear enough to be the first one.
func (c *conversation) clearest() (at int, sure bool) {
	at, next := c.strength.best()
	if c.at >= 0 && at != c.at {
		next = max(next, c.strength[c.at]+c.trust)
	}
	best := c.strength[at]
	return at, best >= firstMin && best >= firstLead*next && best >= firstPart*c.words
}

// language returns the tag of the current language, and whether it is from words of users. The tag is
// hint.Undetermined if the language of the words is unknown.
func (d *detector) language(s core.Scene, read func(text string) reading) (tag string, heard bool) {
	locale := locale(s)
	c := conversation{
		at: d.at(base(locale)), first: firstMin, trust: trustStart,
		strength: make(evidence, len(d.tags)),
	}
	strange := c.at < 0 && locale != "" // its words look like those of other languages
	if strange {
		c.first = unknownMin
	}
	for i := range s.Recent {
		e := &s.Recent[i]
		if e.Spoken() && !e.Self {
			c.add(read(e.Message.Text))
		}
	}
	c.add(read(s.Text))
	at, sure := c.clearest()
	switch {
	case c.heard && d.tags[c.at] != base(locale):
		return d.tags[c.at], true
	case c.heard:
		return locale, true
	case strange && sure, !strange && c.trust < trustMin, locale == "" && c.strength[at] > 0:
		return hint.Undetermined, false
	}
	return locale, false
}

// locale returns the locale of the oldest recent message, so that the last author does not change a group's language.
func locale(s core.Scene) string {
	for i := range s.Recent {
		tag := clean(s.Recent[i].Message.Locale)
		if tag != "" && !s.Recent[i].Self {
			return tag
		}
	}
	return clean(s.Locale)
}

// otherTags maps older tags, and other tags of Norwegian, to those that the detector uses.
var otherTags = map[string]string{"no": "nb", "nn": "nb", "iw": "he", "in": "id"}

// clean normalises a platform's language tag ("pt_BR", "en-us"). It returns "" if it is invalid.
func clean(tag string) string {
	subtags := strings.FieldsFunc(tag, func(r rune) bool { return r == '-' || r == '_' })
	if len(subtags) == 0 || len(subtags) > 4 {
		return ""
	}
	isOther := func(c rune) bool { return (c|0x20 < 'a' || c|0x20 > 'z') && (c < '0' || c > '9') }
	for i, s := range subtags {
		if strings.ContainsFunc(s, isOther) || len(s) > 8 || i == 0 && (len(s) < 2 || len(s) > 3) {
			return ""
		}
		subtags[i] = strings.ToLower(s)
		switch {
		case i > 0 && len(s) == 2:
			subtags[i] = strings.ToUpper(s)
		case i > 0 && len(s) == 4:
			subtags[i] = strings.ToUpper(s[:1]) + strings.ToLower(s[1:])
		}
	}
	subtags[0] = cmp.Or(otherTags[subtags[0]], subtags[0])
	return strings.Join(subtags, "-")
}

// base returns the language of a tag, without region and script.
func base(tag string) string {
	first, _, _ := strings.Cut(tag, "-")
	return first
}
