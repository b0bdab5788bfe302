package command

import (
	"strings"
	"unicode/utf8"

	"synthbot/core"
	"synthbot/core/txt"
)

// similarMax is how many commands are named where somebody misses one.
const similarMax = 3

// maxName is how long a command's name can be, in characters. (In the pattern it would take a millisecond to compile.)
const maxName = 32

// commandWord is how a command is written, where the platform does not know it as one: its name, and whom it is for.
var commandWord = txt.Pattern(`^/([\pL\pM\pN_-]+)(@[a-zA-Z0-9_]+)?[!?.,]*$`)

// Unknown returns the answer to a command in a private chat that does not exist, or not for people of this rank; ""
// if the event calls none, or the registry is empty. In groups it may be meant for another bot, unless it names this
// one. The event becomes a command, so that it never becomes part of a prompt; /me is a message.
func (r *Registry) Unknown(e *core.Event) string {
	m, called := &e.Message, e.Command
	first, rest, _ := strings.Cut(strings.TrimSpace(m.Text), " ")
	word := commandWord().FindStringSubmatch(first)
	if word != nil && utf8.RuneCountInString(word[1]) > maxName {
		word = nil
	}
	if e.Kind == core.KindMessage && word != nil {
		called = &core.Command{Name: word[1]}
	}
	if called != nil && called.Name == "me" && rest != "" { // "/me waves" says what its author does
		e.Kind, e.Command = core.KindMessage, nil
		return ""
	}
	named := word != nil && word[2] != "" && m.Addressed == core.AddressedMention
	if r == nil || len(r.list) == 0 || called == nil || !m.Private && !named || m.Author.Bot || m.Author.ID == "" {
		return ""
	}
	known, ok := r.Find(called.Name)
	if ok && known.Rank <= m.Author.Rank {
		return ""
	}
	e.Kind, e.Command = core.KindCommand, called
	return r.missing(strings.ToLower(called.Name), m.Author.Rank)
}

// missing says that there is no command of that name, and names similar ones.
func (r *Registry) missing(name string, rank core.Rank) string {
	text := "I don't know the command /" + name + "."
	var similar []string
	for _, spec := range r.Specs(rank) {
		isNear := txt.Distance(spec.Name, name) <= 1+len(name)/4
		if len(similar) < similarMax && (isNear || len(name) > 2 && strings.HasPrefix(spec.Name, name)) {
			similar = append(similar, "/"+spec.Name)
		}
	}
	if len(similar) > 0 {
		text += " Did you mean " + strings.Join(similar, ", ") + "?"
	}
	_, helps := r.Find("help")
	if helps {
		text += " /help shows my commands."
	}
	return text
}
