package persona

import (
	_ "embed"
	"strings"

	"synthbot/core"
	"synthbot/core/txt"
)

// Persona is who the bot is, as a file tells it. Texts may hold placeholders;
// For replaces them. It is not changed after it was made.
type Persona struct {
	Name            string
	Nickname        string // what {{char}} stands for; empty: Name
	Aliases         []string
	Profile         string
	Personality     string
	Likes           []string
	Dislikes        []string
	Interests       []string
	SpeakingStyle   string
	Guidance        string // a card's own instructions
	ExampleDialogue string
	Greeting        string
	Book            *Book // a card's lore; nil: none
}

//go:embed aria.toml
var aria []byte

// Embedded returns the persona that is used where no file is named.
func Embedded() *Persona {
	p, err := parseTOML("aria.toml", aria)
	if err != nil {
		panic(err) // the file is part of the program, and tested
	}
	return p
}

// stranger stands for {{user}} where nobody's name is known.
const stranger = "friend"

// maxUser is the longest name that a placeholder is replaced by, in characters.
const maxUser = 64

// For returns the persona as it is told to a model, with the placeholders
// replaced; user is the name of the person it talks to, empty where that may be
// anybody. Text is one line of labelled sentences, each label at most once:
//
//	You are NAME, also called A, B. Profile: … Likes: a; b. Dislikes: c; d. …
//
// Dialogue and Greeting keep their line breaks.
func (p *Persona) For(user string) core.Persona {
	user = txt.Clip(oneLine(user), maxUser)
	if user == "" {
		user = stranger
	}
	char := oneLine(p.Nickname)
	if char == "" {
		char = oneLine(p.Name)
	}
	return core.Persona{
		Name:     oneLine(p.Name),
		Aliases:  p.aliases(),
		Text:     p.text(char, user),
		Dialogue: replace(examples(lines(p.ExampleDialogue)), char, user),
		Greeting: replace(lines(p.Greeting), char, user),
	}
}

// aliases lists the further names once each, without the name itself.
func (p *Persona) aliases() []string {
	seen := map[string]bool{strings.ToLower(oneLine(p.Name)): true, "": true}
	var names []string
	for _, a := range append([]string{p.Nickname}, p.Aliases...) {
		a = oneLine(a)
		if key := strings.ToLower(a); !seen[key] {
			seen[key] = true
			names = append(names, a)
		}
	}
	return names
}

func (p *Persona) text(char, user string) string {
	s := sheet{char: char, user: user}
	s.b.WriteString("You are " + unlabel(oneLine(p.Name)))
	if names := p.aliases(); len(names) > 0 {
		s.b.WriteString(", also called " + unlabel(strings.Join(names, ", ")))
	}
	s.b.WriteByte('.')
	s.label("Profile", p.Profile)
	s.label("Personality", p.Personality)
	s.list("Likes", p.Likes)
	s.list("Dislikes", p.Dislikes)
	s.list("Interests", p.Interests)
	s.label("Speaking style", p.SpeakingStyle)
	s.label("Guidance", p.Guidance)
	return s.b.String()
}

// sheet is the text of a persona as it is written.
type sheet struct {
	b          strings.Builder
	char, user string
}

// value is one text on one line, with nothing in it that reads as a label.
func (s *sheet) value(text string) string {
	return unlabel(oneLine(replace(text, s.char, s.user)))
}

func (s *sheet) label(name, text string) { s.write(name, s.value(text)) }

func (s *sheet) write(name, text string) {
	if text == "" {
		return
	}
	s.b.WriteString(" " + name + ": " + text)
	if !strings.HasSuffix(text, "…") && !strings.ContainsAny(text[len(text)-1:], ".!?") {
		s.b.WriteByte('.')
	}
}

func (s *sheet) list(name string, texts []string) {
	var items []string
	for _, t := range texts {
		if t = strings.ReplaceAll(strings.TrimRight(s.value(t), ".;"), ";", ","); t != "" {
			items = append(items, t)
		}
	}
	s.write(name, strings.Join(items, "; "))
}
