package prompt

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"

	"synthbot/core"
	"synthbot/core/sorting"
)

// Marks tell people apart whose names look alike in a prompt: each one's tag, or a
// number that is the same in every prompt.
type Marks map[person]string

// person is an author as an interface knows them; the zero value is the bot.
type person struct{ iface, id string }

// Of returns the mark of somebody who was seen in a place; "" if nobody else has a
// name like theirs.
func (m Marks) Of(place core.Path, a core.Author) string {
	if len(m) == 0 {
		return ""
	}
	return m[person{place.Interface(), a.ID}]
}

// tag is what a prompt shows of somebody beside their name.
func (m Marks) tag(place core.Path, a core.Author) string { return cmp.Or(m.Of(place, a), a.Tag) }

// Marks compares the names of everybody in the prompt.
func (p *Parts) Marks() Marks {
	n := names{tags: make(map[person]string), seen: make(map[called]bool)}
	for _, list := range [][]core.Entry{p.Recent, p.History, p.Messages} {
		for i := range list {
			m := &list[i].Message
			if list[i].Self {
				n.note(person{}, m.Author.Name)
				continue
			}
			iface := m.Path.Interface()
			n.add(iface, &m.Author)
			if m.ReplyTo != nil {
				n.add(iface, &m.ReplyTo.From)
			}
			for i := range m.Foreign {
				n.add(iface, &m.Foreign[i].From)
			}
		}
	}
	return n.marks()
}

// names are those of everybody in a prompt.
type names struct {
	tags map[person]string
	seen map[called]bool
	list []called // each person once for each of their names, folded
}

// called is a person with one of their names.
type called struct {
	who  person
	name string
}

func (n *names) add(iface string, a *core.Author) {
	if a.ID == "" {
		return
	}
	who := person{iface, a.ID}
	n.tags[who] = a.Tag
	n.note(who, a.Name)
}

func (n *names) note(who person, name string) {
	c := called{who, name}
	if !n.seen[c] {
		n.seen[c] = true
		n.list = append(n.list, called{who, folded(name)})
	}
}

// marks gives one to everybody whose folded name is another person's, too.
func (n *names) marks() Marks {
	sorting.SortStable(n.list, func(a, b called) int { return strings.Compare(a.name, b.name) })
	var marks Marks
	for from := 0; from < len(n.list); {
		to := from + 1
		for to < len(n.list) && n.list[to].name == n.list[from].name {
			to++
		}
		alike := n.people(n.list[from:to])
		if len(alike) > 1 {
			if marks == nil {
				marks = make(Marks)
			}
			n.mark(alike, marks)
		}
		from = to
	}
	return marks
}

// people lists who has the names, each person once.
func (n *names) people(list []called) []person {
	if len(list) == 1 {
		return nil
	}
	people := make([]person, 0, len(list))
	for i := range list {
		if !slices.Contains(people, list[i].who) {
			people = append(people, list[i].who)
		}
	}
	return people
}

// mark marks people of one name: by their tags if no two are alike, else by numbers.
func (n *names) mark(alike []person, marks Marks) {
	tags := make(map[string]bool)
	for _, who := range alike {
		tags[folded(n.tags[who])] = true
	}
	for _, who := range alike {
		switch {
		case who == person{}:
		case n.tags[who] == "" || len(tags) < len(alike):
			sum := sha256.Sum256([]byte(who.iface + "/" + who.id)) // the same in every prompt
			marks[who] = fmt.Sprintf("#%06d", binary.BigEndian.Uint32(sum[:])%1_000_000)
		case marks[who] == "":
			marks[who] = n.tags[who]
		}
	}
}

// folded is a name as it looks: without case and width, without what cannot be seen,
// and with letters that look alike being one.
func folded(name string) string {
	return strings.Map(func(r rune) rune {
		r = unicode.ToLower(r)
		look := lookalikes[r]
		switch {
		case look != 0:
			return look
		case r > ' ' && r < unicode.MaxASCII:
			return r
		case unicode.In(r, unicode.Cf, unicode.Cc, unicode.M, unicode.Z) || strings.ContainsRune(blanks, r):
			return -1
		}
		return r
	}, norm.NFKC.String(name))
}

// blanks are letters that show nothing.
const blanks = "\u115f\u1160\u3164\uffa0\u2800"

// lookalikes are letters that look like another one.
var lookalikes = func() map[rune]rune {
	const (
		from = "аеорсухіјѕԁһѵԝкмнтвοαρνικτυχєl1|0"
		to   = "aeopcyxijsdhvwkmhtboapviktuxeiiio"
	)
	m, look := make(map[rune]rune), []rune(to)
	for i, r := range []rune(from) {
		m[r] = look[i]
	}
	return m
}()
