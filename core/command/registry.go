package command

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"synthbot/core"
	"synthbot/core/sorting"
	"synthbot/core/txt"
)

// Registry is an immutable set of commands. The zero value is empty.
type Registry struct{ list []Command } // by name

const maxName = 32 // characters, of a command or an argument

func isName(name string) bool { return txt.IsName(name, maxName, "") }

// New returns a registry of the valid commands. The error names all others.
func New(lists ...[]Command) (*Registry, error) {
	r := &Registry{}
	var faults []error
	for _, c := range slices.Concat(lists...) {
		err := c.check()
		_, twice := r.Find(c.Name)
		switch {
		case err != nil:
			faults = append(faults, fmt.Errorf("command %q: %w", c.Name, err))
		case twice:
			faults = append(faults, fmt.Errorf("command %q: there are two of that name", c.Name))
		default:
			r.list = append(r.list, c)
		}
	}
	sorting.Sort(r.list, func(a, b Command) int { return strings.Compare(a.Name, b.Name) })
	return r, errors.Join(faults...)
}

func (c *Command) check() error {
	switch {
	case !isName(c.Name):
		return fmt.Errorf("the name must consist of a-z, 0-9 and _, at most %d characters", maxName)
	case !isBrief(c.Brief):
		return errors.New("the brief must be one line under 100 characters")
	case c.Do == nil:
		return errors.New("there is no code to run")
	}
	optional := false
	for i, a := range c.Args {
		switch {
		case !isName(a.Name) || !isBrief(a.Brief):
			return fmt.Errorf("argument %q: the name or the brief is invalid", a.Name)
		case a.Rest && i+1 < len(c.Args):
			return fmt.Errorf("argument %q: only the last argument can take the rest", a.Name)
		case a.Required && optional:
			return fmt.Errorf("argument %q: a required argument follows an optional one", a.Name)
		}
		optional = optional || !a.Required
	}
	return nil
}

func isBrief(s string) bool {
	return s != "" && len([]rune(s)) < 100 && !strings.ContainsAny(s, "\r\n")
}

// Find returns the command of that name, in any case.
func (r *Registry) Find(name string) (Command, bool) {
	name = strings.ToLower(name)
	i := slices.IndexFunc(r.list, func(c Command) bool { return c.Name == name })
	if i < 0 {
		return Command{}, false
	}
	return r.list[i], true
}

// Specs lists the commands that users of a rank may call, by name.
func (r *Registry) Specs(rank core.Rank) []Spec {
	var specs []Spec
	for _, c := range r.list {
		if c.Rank <= rank {
			specs = append(specs, c.Spec)
		}
	}
	return specs
}

// Help lists the commands that the caller may use, except for those in without, as Markdown. It is in the
// caller's language if all briefs are translated, otherwise in English.
func (r *Registry) Help(c Call, without ...string) string {
	specs := slices.DeleteFunc(r.Specs(c.Author.Rank), func(s Spec) bool {
		return s.Private && !c.Private || slices.Contains(without, s.Name)
	})
	language, _, _ := strings.Cut(strings.ToLower(c.Locale), "-")
	text := map[string]string{
		"de": "Schreib mir einfach. Außerdem:\n", "es": "Escríbeme sin más. Además:\n",
		"fr": "Écris-moi, tout simplement. Sinon :\n", "it": "Scrivimi e basta. Inoltre:\n",
	}[language]
	if text == "" || slices.ContainsFunc(specs, func(s Spec) bool { return s.Briefs[language] == "" }) {
		language, text = "", "Just talk to me. Besides:\n"
	}
	for _, s := range specs {
		text += "\n- /" + s.Name + " – " + cmp.Or(s.Briefs[language], s.Brief)
	}
	return text
}

// HelpOn describes one command and its usage to the caller, as Markdown.
func (r *Registry) HelpOn(c Call, name string) string {
	name = strings.ToLower(strings.TrimPrefix(strings.TrimSpace(name), "/"))
	if !isName(name) {
		return "I don't know that command. /help shows my commands."
	}
	known, ok := r.Find(name)
	if !ok || known.Rank > c.Author.Rank {
		return r.missing(name, c.Author.Rank)
	}
	language, _, _ := strings.Cut(strings.ToLower(c.Locale), "-")
	text := "/" + name + " – " + cmp.Or(known.Briefs[language], known.Brief)
	if known.Private && !c.Private {
		text += " (in private only)"
	}
	text += "\n\n" + known.Usage()
	for _, a := range known.Args {
		text += "\n- " + a.Name + ": " + txt.Literal(a.Brief)
	}
	return text
}

// Parse returns the arguments of a call by name. The error is for the user, with the command's usage.
func (s *Spec) Parse(given []string) (map[string]string, error) {
	args := make(map[string]string)
	for i, a := range s.Args {
		words := given[min(i, len(given)):]
		if !a.Rest {
			words = words[:min(1, len(words))]
		}
		value := strings.TrimSpace(strings.Join(words, " "))
		choice := slices.IndexFunc(a.Choices, func(c string) bool { return strings.EqualFold(c, value) })
		if choice >= 0 {
			value = a.Choices[choice]
		}
		if i < len(given) && a.Implied != "" && choice < 0 {
			if value != "" { // else the user left it empty
				given = slices.Insert(slices.Clone(given), i, a.Implied)
			}
			value = a.Implied
		}
		choices := strings.Join(a.Choices, ", ")
		switch {
		case value == "" && a.Required:
			return nil, core.Errorf(core.Invalid, "%s is missing. %s", a.Name, s.Usage())
		case value == "":
		case choices != "" && choice < 0 && value != a.Implied:
			return nil, core.Errorf(core.Invalid, "%s must be one of %s. %s", a.Name, choices, s.Usage())
		default:
			args[a.Name] = value
		}
	}
	n := len(s.Args)
	if len(given) > n && (n == 0 || !s.Args[n-1].Rest) {
		return nil, core.Errorf(core.Invalid, "There are too many arguments. %s", s.Usage())
	}
	return args, nil
}

// Usage shows how to call the command.
func (s *Spec) Usage() string {
	if s.Form != "" {
		return "Usage: `/" + s.Name + " " + s.Form + "`"
	}
	text := "Usage: `/" + s.Name
	for _, a := range s.Args {
		name := a.Name
		if len(a.Choices) > 0 {
			name = strings.Join(a.Choices, "|")
		}
		if !a.Required {
			name = "[" + name + "]"
		}
		text += " " + name
	}
	return text + "`"
}

// Called returns the name of the command that a text calls, in lower case; "" if it
// calls none. There may be no command with that name.
func Called(text string) string {
	name, ok := strings.CutPrefix(text, "/")
	if !ok {
		return ""
	}
	return strings.ToLower(name[:strings.IndexAny(name+" ", "@ \n\t")])
}

// Complete returns the words that complete the last word of a line, for a user of a rank. known returns the
// usual values of an argument without choices, given the words of the arguments before it; nil for none.
func (r *Registry) Complete(
	line string, rank core.Rank, known func(s *Spec, a *Arg, before []string) []string,
) []string {
	words := strings.Split(line, " ")
	last := words[len(words)-1]
	var all []string
	if len(words) == 1 {
		for _, s := range r.Specs(rank) {
			all = append(all, "/"+s.Name)
		}
	} else {
		c, ok := r.Find(strings.TrimPrefix(words[0], "/"))
		at := len(words) - 2
		if !ok || c.Rank > rank || at >= len(c.Args) {
			return nil
		}
		all = c.Args[at].Choices
		if all == nil {
			all = known(&c.Spec, &c.Args[at], words[1:at+1])
		}
	}
	return slices.DeleteFunc(slices.Clone(all), func(word string) bool { return !strings.HasPrefix(word, last) })
}

const maxSimilar = 3 // commands that are suggested for an unknown one

// commandWord matches a command in a text: its name, and the bot that it is for.
var commandWord = txt.Pattern(`^/([\pL\pM\pN_-]+)(@[a-zA-Z0-9_]+)?[!?.,]*$`)

// Unknown returns the answer if an event calls a command that does not exist, or not for the author's rank; otherwise,
// or if the registry is empty, "". In groups, a command must name this bot, because it may be for another one. The
// event becomes a KindCommand, so that it never becomes part of a prompt. "/me waves" becomes a message.
func (r *Registry) Unknown(e *core.Event) string {
	m, called := &e.Message, e.Command
	first, rest, _ := strings.Cut(strings.TrimSpace(m.Text), " ")
	var word []string
	if strings.HasPrefix(first, "/") { // else the pattern need not be compiled
		word = commandWord().FindStringSubmatch(first)
	}
	if word != nil && utf8.RuneCountInString(word[1]) > maxName { // in the pattern, this would be slow to compile
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

// missing tells the user that there is no such command, and suggests similar ones.
func (r *Registry) missing(name string, rank core.Rank) string {
	text := "I don't know the command /" + name + "."
	var similar []string
	for _, spec := range r.Specs(rank) {
		isNear := txt.Distance(spec.Name, name) <= 1+len(name)/4
		if len(similar) < maxSimilar && (isNear || len(name) > 2 && strings.HasPrefix(spec.Name, name)) {
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
