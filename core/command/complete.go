package command

import (
	"slices"
	"strings"

	"synthbot/core"
)

// Complete returns the words that may be the last one of a line, if somebody of that rank writes it. known
// returns the usual values of an argument without choices, behind the arguments before it; nil for none.
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
