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
	"synthbot/core/txt"
)

// Marks distinguish people in a prompt whose names look alike. A mark is a person's tag, or
// a number that is the same in every prompt.
type Marks map[person]string

// person is an author as an interface knows them; the zero value is the bot.
type person struct{ iface, id string }

// Of returns the mark of a person; "" if nobody else has a name like theirs.
func (m Marks) Of(place core.Path, a core.Author) string {
	if len(m) == 0 {
		return ""
	}
	return m[person{place.Interface(), a.ID}]
}

// tag returns what a prompt shows besides a person's name.
func (m Marks) tag(place core.Path, a core.Author) string { return cmp.Or(m.Of(place, a), a.Tag) }

// Marks compares the names of all people in the prompt.
func (p *Parts) Marks() Marks {
	n := make(names, 0, 4)
	for _, list := range [][]core.Entry{p.Recent, p.History, p.Messages} {
		for i := range list {
			m := &list[i].Message
			if list[i].Self {
				n.add("", &core.Author{Name: m.Author.Name})
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

// names holds each person in a prompt once for each of their names.
type names []called

// called is a person with one of their names, and with their latest tag.
type called struct {
	who       person
	tag, name string
}

func (n *names) add(iface string, a *core.Author) {
	if a.ID == "" && iface != "" {
		return
	}
	who, known := person{iface, a.ID}, false
	for i := range *n {
		c := &(*n)[i]
		if c.who == who {
			c.tag = a.Tag
			known = known || c.name == a.Name
		}
	}
	if !known {
		*n = append(*n, called{who, a.Tag, a.Name})
	}
}

// marks gives a mark to each person whose folded name another person has, too.
func (n names) marks() Marks {
	marks := make(Marks)
	for i := range n {
		n[i].name = folded(n[i].name)
	}
	sorting.SortStable(n, func(a, b called) int { return strings.Compare(a.name, b.name) })
	for from := 0; from < len(n); {
		alike, to := n[from:from:len(n)], from
		for ; to < len(n) && n[to].name == n[from].name; to++ {
			isSame := func(c called) bool { return c.who == n[to].who }
			if !slices.ContainsFunc(alike, isSame) {
				alike = append(alike, n[to]) // each person once
			}
		}
		if len(alike) > 1 {
			marks.mark(alike)
		}
		from = to
	}
	return marks
}

// mark marks people of one name: by their tags if no two are alike, else by numbers.
func (m Marks) mark(alike []called) {
	tags := make(map[string]bool)
	for _, c := range alike {
		tags[folded(c.tag)] = true
	}
	for _, c := range alike {
		switch {
		case c.who == person{}:
		case c.tag == "" || len(tags) < len(alike):
			sum := sha256.Sum256([]byte(c.who.iface + "/" + c.who.id)) // the same in every prompt
			m[c.who] = fmt.Sprintf("#%06d", binary.BigEndian.Uint32(sum[:])%1_000_000)
		case m[c.who] == "":
			m[c.who] = c.tag
		}
	}
}

// folded returns the form in which names are compared: without case, width and invisible
// characters, and with the same letter for all that look alike.
func folded(name string) string {
	return strings.Map(func(r rune) rune {
		r = unicode.ToLower(r)
		look := lookalikes[r]
		switch {
		case look != 0:
			return look
		case r > ' ' && r < unicode.MaxASCII:
			return r
		case unicode.In(r, unicode.Cf, unicode.Cc, unicode.M, unicode.Z) || strings.ContainsRune(txt.Blanks, r):
			return -1
		}
		return r
	}, norm.NFKC.String(name))
}

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
