// Package review returns a reply to the model before it is carried out, if the reply promises
// something that none of its actions does, or breaks a place's limits of length and tone. It does
// so once; if the model insists, the reply is sent.
package review

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"synthbot/core"
	"synthbot/core/action"
	"synthbot/core/txt"
)

// Config is the table [plugins.review].
type Config struct {
	Promises bool    `toml:"promises" default:"true" doc:"Whether a reply is sent back that promises to remind or remember, or claims to have saved something, while no action does it."`
	Places   []Place `toml:"place" doc:"Limits of what is said in places."`
}

// Place is a table [[plugins.review.place]].
type Place struct {
	Path     core.Path `toml:"path" kind:"place" example:"discord/81384788765712384" doc:"The place, with all places below it; empty: everywhere. Of several, the longest path counts."`
	MaxChars int       `toml:"max_chars" default:"0" min:"0" max:"100000" doc:"The longest message, in characters; 0 for no limit."`
	Emoji    int       `toml:"emoji" default:"-1" min:"-1" max:"100" doc:"How many emoji a message has at most; -1 for no limit."`
	Shouting bool      `toml:"shouting" default:"true" doc:"Whether exclamation marks and words in capitals are allowed."`
	Avoid    []string  `toml:"avoid" example:"as an AI" doc:"Words and phrases that are not used."`
}

func (c *Config) Check(fault func(text string, at ...any)) {
	for i, p := range c.Places {
		for j, phrase := range p.Avoid {
			if strings.TrimSpace(phrase) == "" {
				fault("is empty: name a word or phrase, or take it out", "place", i, "avoid", j)
			}
		}
	}
}

// Plugin is the plugin. Safe for concurrent use.
type Plugin struct {
	name string
	c    Config
}

func New(h core.Host, c Config) (*Plugin, error) { return &Plugin{h.Name, c}, nil }

func (p *Plugin) Name() string { return p.name }

// Actions implements core.Plugin: there are none.
func (p *Plugin) Actions() []core.Action { return nil }

// Review implements action.Reviewer.
func (p *Plugin) Review(d action.Draft) (faults []core.Fault) {
	acts := slices.ContainsFunc(d.Done, isDeed)
	var texts []string
	for i := range d.Plan.Steps {
		s := &d.Plan.Steps[i]
		var said struct{ Text string }
		acts = acts || isDeed(s.Type)
		if strings.HasPrefix(s.Type, core.MessagePrefix) && json.Unmarshal(s.Payload, &said) == nil {
			texts = append(texts, said.Text)
		}
	}
	place := p.place(d.Who.Path)
	for _, text := range texts {
		promise := promises().FindString(text)
		if p.c.Promises && !acts && promise != "" {
			faults = append(faults, core.Fault{Field: "response", Text: fmt.Sprintf(
				"says %q, and no action does it: add the action that does, or do not say it",
				strings.TrimFunc(promise, notLetter))})
		}
		for _, fault := range place.faults(text) {
			faults = append(faults, core.Fault{Field: "response", Text: fault})
		}
	}
	return faults
}

// isDeed reports whether an action does more than send a message or control the turn.
func isDeed(name string) bool {
	_, control := action.Control(name)
	return !control && !strings.HasPrefix(name, core.MessagePrefix)
}

func (p *Plugin) place(path core.Path) Place {
	limits := Place{Emoji: -1, Shouting: true}
	for _, l := range p.c.Places {
		if path.Within(l.Path) && (limits.Path.IsZero() || path.Nearer(l.Path, limits.Path)) {
			limits = l
		}
	}
	return limits
}

// promises matches texts such as "I'll remind you" and "I have saved that", in English, German,
// French, Italian and Spanish.
var promises = txt.Pattern(`(?i)(?:^|[^\pL])(?:` + strings.Join([]string{
	`I(?:['’]ll| will)(?: gladly| be sure to| make sure to)? ` +
		`(?:remind you|remember (?:that|this|it)|save|note|keep a note|set a reminder)`,
	`I(?:['’]ve| have)(?: just)? (?:saved|noted|stored|set (?:a|the|your) (?:reminder|alarm)|made a note)`,
	`(?:reminder|alarm) (?:is )?set`,
	`ich (?:erinnere dich|werde dich erinnern|merke (?:mir das|es mir)|werde (?:mir das|es mir) merken)`,
	`ich habe (?:es|das|mir das|es mir)? ?(?:notiert|gespeichert|gemerkt)`,
	`je (?:te|vous|t['’]|le lui) (?:le )?rappellerai`, `je m['’]en souviendrai`, `j['’]ai (?:noté|enregistré)`,
	`(?:te|ve|glie)l?o? ?(?:lo )?ricorderò`, `me l[oa] (?:segno|ricorderò)`, `l['’]?ho (?:salvato|annotato|segnato)`,
	`te l?o? ?(?:lo )?recordaré`, `lo recordaré`, `me lo apunto`, `lo he (?:guardado|anotado)`,
}, "|") + `)(?:[^\pL]|$)`)

func (l *Place) faults(text string) (faults []string) {
	size := utf8.RuneCountInString(text)
	if l.MaxChars > 0 && size > l.MaxChars {
		faults = append(faults, fmt.Sprintf("has %d characters, at most %d are allowed here", size, l.MaxChars))
	}
	emoji := 0
	for _, r := range text {
		if unicode.Is(unicode.So, r) {
			emoji++
		}
	}
	if l.Emoji >= 0 && emoji > l.Emoji {
		faults = append(faults, fmt.Sprintf("has %d emoji, at most %d are allowed here", emoji, l.Emoji))
	}
	if !l.Shouting && (strings.ContainsAny(text, "!！¡") || slices.ContainsFunc(strings.Fields(text), isShouted)) {
		faults = append(faults, "has exclamation marks or words in capitals, which are not used here")
	}
	for _, phrase := range l.Avoid {
		if strings.TrimSpace(phrase) == "" {
			continue
		}
		for range txt.Words(strings.ToLower(text), strings.ToLower(phrase)) {
			faults = append(faults, fmt.Sprintf("uses %q, which is not said here", phrase))
			break
		}
	}
	return faults
}

// isShouted reports whether a word is written in capitals and too long for an abbreviation.
func isShouted(word string) bool {
	letters := strings.TrimFunc(word, notLetter)
	isUpper := letters == strings.ToUpper(letters) && letters != strings.ToLower(letters)
	return isUpper && utf8.RuneCountInString(letters) > 4
}

func notLetter(r rune) bool { return !unicode.IsLetter(r) }
