// Package persona describes who the bot is. It reads persona files (TOML) and character
// cards (V1, V2 and V3, as JSON or in a PNG picture), and renders them for a prompt. It does
// not decide which persona speaks in a place, and it never decodes pixels.
//
// # Persona files
//
// A persona file is TOML; the tags of [Persona] list its keys. Only name is required. All
// problems of a file are reported at once, each as "FILE:LINE: key: problem and fix".
//
// # Character cards
//
// description and scenario become the profile; personality, system_prompt and post_history_instructions have labels of
// their own; first_mes is the greeting and mes_example the example dialogue; a nickname replaces {{char}}.
// character_book becomes Persona.Book. creator_notes are meant for users, and no model gets them. In a PNG, the card is
// the base64 text of a chunk (tEXt, zTXt or iTXt) with the keyword ccv3 or else chara.
//
// In all texts, {{char}}, <BOT> and <CHAR> are replaced by the persona's name, {{user}} and
// <USER> by the user's, in any case.
package persona

import (
	"cmp"
	_ "embed"
	"slices"
	"strings"
	"sync/atomic"

	"synthbot/core"
	"synthbot/core/lore"
	"synthbot/core/txt"
)

const (
	maxName     = 100        // characters of a name or alias
	maxField    = 16_000     // characters of a text
	maxUser     = 64         // characters of a user's name
	defaultUser = "friend"   // replaces {{user}} if the user has no name
	anyUser     = "{{user}}" // stands for the user's name in a text for anyone
)

// Persona is the content of a persona file. Texts may contain placeholders, which For
// replaces. Fields without a key are for character cards. It is immutable, and may not be copied.
type Persona struct {
	Name            string    `toml:"name" required:"true" max:"100" example:"Aria" doc:"The bot's name."`
	Nickname        string    // replaces {{char}}; "" for Name
	Aliases         []string  `toml:"aliases" max:"100" items:"100" visible:"true" example:"Ari" doc:"Other names that it answers to."`
	Profile         string    `toml:"profile" max:"16000" doc:"Who it is."`
	Personality     string    // as Profile
	Likes           []string  `toml:"likes" max:"500" items:"100" doc:"What it likes."`
	Dislikes        []string  `toml:"dislikes" max:"500" items:"100" doc:"What it dislikes."`
	Interests       []string  `toml:"interests" max:"500" items:"100" doc:"What it is interested in."`
	SpeakingStyle   string    `toml:"speaking_style" max:"16000" doc:"How it talks."`
	Guidance        string    // instructions for the model
	ExampleDialogue string    `toml:"example_dialogue" max:"16000" doc:"An example of a conversation."`
	Voice           string    `toml:"voice" max:"100" example:"nova" doc:"Its voice, as the provider of [speech.out] calls it."`
	Greeting        string    `toml:"greeting" max:"16000" doc:"Its first words to a user."`
	Book            lore.Book // without entries: none

	rendered atomic.Pointer[core.Persona] // what forAnyone returns; nil until then
}

// Check reports faults that the tags cannot express; config.Read calls it.
func (p *Persona) Check(fault func(text string, at ...any)) {
	if txt.Line(p.Name) == "" {
		fault("is empty; write how users call the bot", "name")
	}
}

//go:embed aria.toml
var aria []byte

// Embedded returns the built-in persona.
func Embedded() *Persona {
	p, err := Parse("aria.toml", aria)
	if err != nil {
		panic(err) // the file is part of the program, and tested
	}
	return p
}

// For returns the persona for a prompt, with the placeholders replaced. user is the name of the user it talks to; ""
// for any. Text is one line of labelled sentences, each label at most once:
//
//	You are NAME, also called A, B. Profile: … Likes: a; b. Dislikes: c; d. …
//
// Dialogue and Greeting keep their line breaks.
func (p *Persona) For(user string) core.Persona {
	user = cmp.Or(txt.Clip(txt.Line(user), maxUser), defaultUser)
	who, char := p.forAnyone(), p.char()
	if strings.Contains(who.Text, anyUser) {
		who.Text = p.text(who.Name, who.Aliases, char, user) // in whole: a name could complete a label
	}
	who.Dialogue, who.Greeting = replace(who.Dialogue, char, user), replace(who.Greeting, char, user)
	return who
}

// forAnyone returns the persona with the placeholders in Dialogue and Greeting, and with anyUser in Text. It renders
// them once.
func (p *Persona) forAnyone() core.Persona {
	who := p.rendered.Load()
	if who == nil {
		name := txt.Line(p.Name)
		aliases := slices.Clip(p.aliases(name))
		who = &core.Persona{
			Name:     name,
			Aliases:  aliases,
			Text:     p.text(name, aliases, p.char(), anyUser),
			Dialogue: examples(lines(p.ExampleDialogue)),
			Greeting: lines(p.Greeting),
			Voice:    txt.Line(p.Voice),
		}
		p.rendered.Store(who)
	}
	return *who
}

// char returns what replaces {{char}}.
func (p *Persona) char() string { return cmp.Or(txt.Line(p.Nickname), txt.Line(p.Name)) }

func (p *Persona) aliases(name string) (names []string) {
	for _, a := range append([]string{p.Nickname}, p.Aliases...) {
		a = txt.Line(a)
		isSame := func(other string) bool { return strings.EqualFold(a, other) }
		if a != "" && !isSame(name) && !slices.ContainsFunc(names, isSame) {
			names = append(names, a)
		}
	}
	return names
}

func (p *Persona) text(name string, aliases []string, char, user string) string {
	s := renderer{char: char, user: user}
	s.b.Grow(1024)
	s.b.WriteString("You are " + unlabel(name))
	if len(aliases) > 0 {
		s.b.WriteString(", also called " + unlabel(strings.Join(aliases, ", ")))
	}
	s.b.WriteByte('.')
	s.write("Profile", s.value(p.Profile))
	s.write("Personality", s.value(p.Personality))
	s.list("Likes", p.Likes)
	s.list("Dislikes", p.Dislikes)
	s.list("Interests", p.Interests)
	s.write("Speaking style", s.value(p.SpeakingStyle))
	s.write("Guidance", s.value(p.Guidance))
	return s.b.String()
}

type renderer struct {
	b          strings.Builder
	char, user string
}

// value returns a text on one line, without anything that looks like a label.
func (s *renderer) value(text string) string {
	return unlabel(txt.Line(replace(text, s.char, s.user)))
}

func (s *renderer) write(name, text string) {
	if text == "" {
		return
	}
	for _, part := range []string{" ", name, ": ", text} {
		s.b.WriteString(part)
	}
	if !strings.HasSuffix(text, "…") && !strings.ContainsAny(text[len(text)-1:], ".!?") {
		s.b.WriteByte('.')
	}
}

func (s *renderer) list(name string, texts []string) {
	var items []string
	for _, t := range texts {
		item := strings.ReplaceAll(strings.TrimRight(s.value(t), ".;"), ";", ",")
		if item != "" {
			items = append(items, item)
		}
	}
	s.write(name, strings.Join(items, "; "))
}

// lines returns a text of several lines without control characters and the white space around it.
func lines(s string) string { return strings.TrimSpace(txt.Lines(s)) }

// startPattern matches what begins each example in the dialogues of cards.
var startPattern = txt.Pattern(`(?i)\s*<START>\s*`)

// examples separates examples of dialogue by empty lines.
func examples(s string) string {
	if !strings.Contains(s, "<") {
		return s
	}
	return strings.TrimSpace(startPattern().ReplaceAllString(s, "\n\n"))
}

// unlabel removes the colon after words that are labels of the rendered text, so that a value cannot look like one.
func unlabel(s string) string {
	if !strings.Contains(s, ":") {
		return s
	}
	for word := range strings.SplitSeq(labels, ",") {
		s = strings.ReplaceAll(s, word+":", word+" –")
	}
	return s
}

// labels lists the labels of a rendered text. "ikes" is the end of two of them.
const labels = "Profile,Personality,ikes,Interests,Speaking style,Guidance"

// replace replaces the placeholders in one pass: a name that looks like a placeholder stays as it is.
func replace(s, char, user string) string {
	if !strings.ContainsAny(s, "{<") {
		return s
	}
	var b strings.Builder
	b.Grow(len(s) + len(char) + len(user))
	for s != "" {
		i := strings.IndexAny(s, "{<")
		if i < 0 {
			break
		}
		b.WriteString(s[:i])
		s = s[i:]
		name, size := placeholder(s)
		switch name {
		case "char", "bot":
			b.WriteString(char)
		case "user":
			b.WriteString(user)
		case "original": // stands for a default prompt, which does not exist
		default:
			size = 1
			b.WriteByte(s[0])
		}
		s = s[size:]
	}
	return b.String() + s
}

const maxPlaceholder = 24 // bytes

// placeholder reads "{{name}}" or "<NAME>" at the start of s.
func placeholder(s string) (name string, size int) {
	s = s[:min(len(s), maxPlaceholder)]
	opening, closing := "<", ">"
	if s[0] == '{' {
		opening, closing = "{{", "}}"
	}
	rest, ok := strings.CutPrefix(s, opening)
	inner, _, closed := strings.Cut(rest, closing)
	if !ok || !closed {
		return "", 0
	}
	name = strings.ToLower(strings.TrimSpace(inner))
	if opening == "<" && name == "original" || opening == "{{" && name == "bot" {
		return "", 0
	}
	return name, len(opening) + len(inner) + len(closing)
}
