// Package crowd tells who was seen in a place, and who of them is meant by a name
// that a model or a person gives. It knows no bios and no rights.
package crowd

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"synthbot/core"
)

// reach is how many entries of a place are looked at for its people.
const reach = 300

// Crowd are the people who were seen in a place, the latest first.
type Crowd struct {
	Place  core.Path
	People []core.Author // no bots, and nobody twice
}

// Seen reads who talks in a place.
func Seen(ctx context.Context, r core.Reader, place core.Path) (Crowd, error) {
	c := Crowd{Place: place}
	err := r.View(ctx, func(v core.View) error {
		entries, err := v.Last(place, reach)
		for _, e := range slices.Backward(entries) {
			if !e.Self {
				c.Add(e.Message.Author)
			}
		}
		return err
	})
	if err != nil {
		return c, fmt.Errorf("people of %s: %w", place, err)
	}
	return c, nil
}

// Add adds somebody, unless he is a bot or among them already.
func (c *Crowd) Add(a core.Author) {
	if a.ID == "" || a.Bot || slices.ContainsFunc(c.People, func(b core.Author) bool { return b.ID == a.ID }) {
		return
	}
	c.People = append(c.People, a)
}

// Find returns the person who is called so: by path or id, by tag, by name, or
// by the first word of a name. ok is false where nobody is; the error is for the
// model, and tells of several.
func (c *Crowd) Find(name string) (person core.Path, ok bool, err error) {
	name = strings.TrimSpace(name)
	for _, same := range []func(core.Author) bool{
		func(a core.Author) bool { return a.ID == name || c.Path(a).String() == name },
		func(a core.Author) bool { return a.Tag != "" && sameTag(a.Tag, name) },
		func(a core.Author) bool { return strings.EqualFold(a.Name, name) },
		func(a core.Author) bool {
			first, _, _ := strings.Cut(a.Name, " ")
			return strings.EqualFold(first, name)
		},
	} {
		var found []core.Author
		for _, a := range c.People {
			if same(a) {
				found = append(found, a)
			}
		}
		switch len(found) {
		case 0:
		case 1:
			return c.Path(found[0]), true, nil
		default:
			return core.Path{}, false, core.Errorf(core.Invalid, "Several people here are called %s: %s. Name one of these.", name, tags(found))
		}
	}
	return core.Path{}, false, nil
}

func sameTag(tag, name string) bool {
	return strings.EqualFold(strings.TrimPrefix(tag, "@"), strings.TrimPrefix(name, "@"))
}

func tags(people []core.Author) string {
	list := make([]string, len(people))
	for i, a := range people {
		if list[i] = a.Tag; a.Tag == "" {
			list[i] = a.ID
		}
	}
	return strings.Join(list, ", ")
}

// Path is the person's; the zero Path where there is none of that id.
func (c *Crowd) Path(a core.Author) core.Path {
	p, err := c.Place.Person(a.ID)
	if err != nil {
		return core.Path{}
	}
	return p
}

// Name is what the person is called; "" where he was not seen.
func (c *Crowd) Name(person core.Path) string {
	for _, a := range c.People {
		if c.Path(a) == person {
			return a.Name
		}
	}
	return ""
}
