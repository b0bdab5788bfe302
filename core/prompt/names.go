package prompt

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"

	"synthbot/core"
)

// Marks tell people apart whose names look alike in a prompt: each one's tag, or a
// number that is the same in every prompt.
type Marks map[known]string

// known is a person as an interface knows them.
type known struct{ iface, id string }

// Of returns the mark of somebody who was seen in a place; "" if their name is
// theirs alone.
func (m Marks) Of(place core.Path, a core.Author) string {
	if len(m) == 0 {
		return ""
	}
	return m[known{place.Interface(), a.ID}]
}

// tag is how a prompt tells of somebody besides their name.
func (m Marks) tag(place core.Path, a core.Author) string { return or(m.Of(place, a), a.Tag) }

// Marks looks at everybody whose name stands in the prompt.
func (p *Parts) Marks() Marks {
	c := crowd{people: make(map[known]string), names: make(map[string][]known), folds: make(map[string]string)}
	for _, list := range [][]core.Entry{p.Recent, p.History, p.Messages} {
		for i := range list {
			m := &list[i].Message
			if list[i].Self {
				c.put(m.Author.Name, known{})
				continue
			}
			c.add(m.Path, m.Author)
			if m.ReplyTo != nil {
				c.add(m.Path, m.ReplyTo.From)
			}
			for _, f := range m.Foreign {
				c.add(m.Path, f.From)
			}
		}
	}
	return c.marks()
}

// crowd is everybody of a prompt: their tags, and who has which name.
type crowd struct {
	people map[known]string
	names  map[string][]known // by what the name looks like
	folds  map[string]string
}

func (c *crowd) add(place core.Path, a core.Author) {
	if a.ID == "" {
		return
	}
	who := known{place.Interface(), a.ID}
	c.people[who] = a.Tag
	c.put(a.Name, who)
}

func (c *crowd) put(name string, who known) {
	look, ok := c.folds[name]
	if !ok {
		look = folded(name)
		c.folds[name] = look
	}
	if !slices.Contains(c.names[look], who) {
		c.names[look] = append(c.names[look], who)
	}
}

func (c *crowd) marks() Marks {
	marks := make(Marks)
	for _, alike := range c.names {
		if len(alike) < 2 {
			continue
		}
		tags := make(map[string]bool) // by which people of one name can be told apart
		for _, who := range alike {
			tags[folded(c.people[who])] = true
		}
		for _, who := range alike {
			switch {
			case who == known{}:
			case c.people[who] == "" || len(tags) < len(alike):
				marks[who] = who.number()
			case marks[who] == "":
				marks[who] = c.people[who]
			}
		}
	}
	return marks
}

// number is a person's own, in every prompt.
func (k known) number() string {
	sum := sha256.Sum256([]byte(k.iface + "/" + k.id))
	return fmt.Sprintf("#%06d", binary.BigEndian.Uint32(sum[:])%1_000_000)
}

// folded is a name as it looks: without case and width, without what cannot be seen,
// and with letters that look alike being one.
func folded(name string) string {
	return strings.Map(func(r rune) rune {
		if unicode.In(r, unicode.Cf, unicode.Cc, unicode.M, unicode.Z) || strings.ContainsRune(blanks, r) {
			return -1
		}
		if i := strings.IndexRune(alike, r); i >= 0 {
			return []rune(looks)[len([]rune(alike[:i]))]
		}
		return r
	}, strings.ToLower(norm.NFKC.String(name)))
}

// blanks are letters that show nothing. The letters of alike look like those of looks
// that stand below them.
const (
	blanks = "\u115f\u1160\u3164\uffa0\u2800"
	alike  = "аеорсухіјѕԁһѵԝкмнтвοαρνικτυχєl1|0"
	looks  = "aeopcyxijsdhvwkmhtboapviktuxeiiio"
)
