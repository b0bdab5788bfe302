package diary

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"synthbot/core"
)

// crowdReach is how many entries of a place are looked at for its people.
const crowdReach = 300

// crowd are the people who were seen in a place, the latest first.
type crowd struct {
	place  core.Path
	people []core.Author
}

// seen reads who talks in a place.
func seen(ctx context.Context, r core.Reader, place core.Path) (crowd, error) {
	c := crowd{place: place}
	err := r.View(ctx, func(v core.View) error {
		entries, err := v.Last(place, crowdReach)
		for _, e := range slices.Backward(entries) {
			if !e.Self {
				c.add(e.Message.Author)
			}
		}
		return err
	})
	if err != nil {
		return c, fmt.Errorf("people of %s: %w", place, err)
	}
	return c, nil
}

func (c *crowd) add(a core.Author) {
	if a.ID == "" || a.Bot || slices.ContainsFunc(c.people, func(b core.Author) bool { return b.ID == a.ID }) {
		return
	}
	c.people = append(c.people, a)
}

// find returns the person who is called so: by path or id, by tag, by name, or
// by the first word of a name. ok is false where nobody is; the error is for the
// model, and tells of several.
func (c *crowd) find(name string) (person core.Path, ok bool, err error) {
	name = strings.TrimSpace(name)
	for _, same := range []func(core.Author) bool{
		func(a core.Author) bool { return a.ID == name || c.path(a).String() == name },
		func(a core.Author) bool { return a.Tag != "" && sameTag(a.Tag, name) },
		func(a core.Author) bool { return strings.EqualFold(a.Name, name) },
		func(a core.Author) bool {
			first, _, _ := strings.Cut(a.Name, " ")
			return strings.EqualFold(first, name)
		},
	} {
		var found []core.Author
		for _, a := range c.people {
			if same(a) {
				found = append(found, a)
			}
		}
		switch len(found) {
		case 0:
		case 1:
			return c.path(found[0]), true, nil
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

// path is the person's; the zero Path where there is none of that id.
func (c *crowd) path(a core.Author) core.Path {
	p, err := c.place.Person(a.ID)
	if err != nil {
		return core.Path{}
	}
	return p
}
