package recon

import (
	"math"
	"strings"

	"synthbot/core"
)

// How languages take turns.
const (
	messageMax  = 4.0 // what one message can say at most: a pasted page does not change the language
	fading      = 0.7 // what is left of former evidence behind a message that says all it can
	localeStart = 2.0 // the platform's word, in telling words
	firstMin    = 1.2 // evidence for a first language
	firstLead   = 1.2 // times the evidence of the next best
	changeMin   = 3.0 // evidence for a change
	changeLead  = 1.6 // times the evidence of the language in force
	unknownMin  = 8.0 // evidence against a locale whose words the detector does not know
)

// conversation follows the language of a place from entry to entry.
type conversation struct {
	*detector
	at       int     // the language in force; -1: none that the detector knows
	first    float64 // the evidence that a first one needs
	strength evidence
	heard    bool // the words confirmed or changed it
}

// hear takes what a person said into account.
func (c *conversation) hear(text string) {
	e := c.weigh(text)
	sum := 0.0
	for _, v := range e {
		sum += v
	}
	if sum == 0 {
		return
	}
	scale := min(1, messageMax/sum)
	fade := math.Pow(fading, min(sum, messageMax)/messageMax)
	for i, v := range e {
		c.strength[i] = c.strength[i]*fade + v*scale
	}
	at, next := c.strength.best()
	best := c.strength[at]
	switch {
	case at == c.at:
		c.heard = c.heard || best >= firstMin
	case c.at < 0 && best >= c.first && best >= firstLead*next,
		c.at >= 0 && best >= changeMin && best >= changeLead*c.strength[c.at]:
		c.at, c.heard = at, true
	}
}

// language is the tag in force, and whether people's words or only the platform
// said so.
func (d *detector) language(s core.Scene) (tag string, heard bool) {
	locale := locale(s)
	c := conversation{detector: d, at: d.at(base(locale)), first: firstMin, strength: make(evidence, len(d.tags))}
	switch {
	case c.at >= 0:
		c.strength[c.at] = localeStart
	case locale != "": // a language that is taken for others, word by word
		c.first = unknownMin
	}
	for i := range s.Recent {
		e := &s.Recent[i]
		if e.Spoken() && !e.Self {
			c.hear(e.Message.Text)
		}
	}
	c.hear(s.Text)
	if c.at < 0 || d.tags[c.at] == base(locale) {
		return locale, c.heard
	}
	return d.tags[c.at], c.heard
}

// locale is what the platform said first in this window: who speaks last must
// not change a group's language.
func locale(s core.Scene) string {
	for i := range s.Recent {
		e := &s.Recent[i]
		if !e.Self {
			tag := clean(e.Message.Locale)
			if tag != "" {
				return tag
			}
		}
	}
	return clean(s.Locale)
}

// clean normalises a language tag as platforms write it ("pt_BR", "en-us");
// what is none becomes "".
func clean(tag string) string {
	subtags := strings.FieldsFunc(tag, func(r rune) bool { return r == '-' || r == '_' })
	if len(subtags) == 0 || len(subtags) > 4 {
		return ""
	}
	for i, s := range subtags {
		if !letters(s) || len(s) > 8 || i == 0 && (len(s) < 2 || len(s) > 3) {
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
	switch subtags[0] {
	case "no", "nn": // one detector serves both
		subtags[0] = "nb"
	case "iw":
		subtags[0] = "he"
	case "in":
		subtags[0] = "id"
	}
	return strings.Join(subtags, "-")
}

func letters(s string) bool {
	for _, c := range []byte(s) {
		if (c|0x20 < 'a' || c|0x20 > 'z') && (c < '0' || c > '9') {
			return false
		}
	}
	return true
}

// base is the language of a tag, without region and script.
func base(tag string) string {
	first, _, _ := strings.Cut(tag, "-")
	return first
}
