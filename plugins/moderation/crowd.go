package moderation

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"synthbot/core"
	"synthbot/core/txt"
)

// crowdReach is how many entries are looked at for people, of a place and of its
// group.
const crowdReach = 300

// target is a person whom something is done to.
type target struct {
	path core.Path
	core.Author
}

// crowd are the people who were seen in a place, the latest first.
type crowd struct {
	place  core.Path
	people []core.Author
}

// seen reads who talks in a place, then in its group.
func seen(ctx context.Context, r core.Reader, place core.Path, private bool) (crowd, error) {
	c := crowd{place: place}
	err := r.View(ctx, func(v core.View) error {
		entries, err := v.Last(place, crowdReach)
		if err != nil {
			return err
		}
		c.addAll(entries)
		if private {
			return nil
		}
		if entries, err = v.Recent(root(place), crowdReach, nil); err == nil {
			c.addAll(entries)
		}
		return err
	})
	if err != nil {
		return c, fmt.Errorf("people of %s: %w", place, err)
	}
	return c, nil
}

func (c *crowd) addAll(entries []core.Entry) {
	for i := range slices.Backward(entries) {
		a := entries[i].Message.Author
		if entries[i].Self || entries[i].Message.Private && entries[i].Message.Path != c.place || a.ID == "" {
			continue
		}
		if !slices.ContainsFunc(c.people, func(b core.Author) bool { return b.ID == a.ID }) {
			c.people = append(c.people, a)
		}
	}
}

// find returns the person who is called so: by path or id, by tag, by name, or
// by the first word of a name. ok is false where nobody is; the error tells of
// several.
func (c *crowd) find(name string) (t target, ok bool, err error) {
	plain := strings.TrimPrefix(name, "@")
	for _, same := range []func(core.Author) bool{
		func(a core.Author) bool { return a.ID == plain || c.path(a).String() == name },
		func(a core.Author) bool { return sameTag(a.Tag, name) },
		func(a core.Author) bool { return strings.EqualFold(a.Name, plain) },
		func(a core.Author) bool {
			first, _, _ := strings.Cut(a.Name, " ")
			return strings.EqualFold(first, plain)
		},
	} {
		var found []core.Author
		for _, a := range c.people {
			if same(a) && !c.path(a).IsZero() {
				found = append(found, a)
			}
		}
		switch len(found) {
		case 0:
		case 1:
			return target{c.path(found[0]), found[0]}, true, nil
		default:
			return t, false, several(name, found)
		}
	}
	return t, false, nil
}

// several refuses a name that is not one person's alone.
func several(name string, people []core.Author) error {
	list := make([]string, len(people))
	for i, a := range people {
		if list[i] = txt.Clip(txt.Line(a.Tag), maxName); list[i] == "" {
			list[i] = a.ID
		}
	}
	return core.Errorf(core.Invalid, "Several people are called %s: %s. Name one of these.", txt.Clip(txt.Line(name), maxName), strings.Join(list, ", "))
}

func sameTag(tag, name string) bool {
	tag = strings.TrimPrefix(tag, "@")
	return tag != "" && strings.EqualFold(tag, strings.TrimPrefix(name, "@"))
}

// path is the person's; the zero Path where there is none of that id.
func (c *crowd) path(a core.Author) core.Path {
	p, err := c.place.Person(a.ID)
	if err != nil {
		return core.Path{}
	}
	return p
}

// bare takes off what people write around a name or an id.
func bare(name string) string {
	name = strings.Trim(strings.TrimSpace(name), "`")
	if id, ok := strings.CutPrefix(name, "<@"); ok {
		name = strings.TrimPrefix(strings.TrimSuffix(id, ">"), "!")
	}
	return name
}

// person finds whom an actor names: among those seen here, and for an admin also
// whoever is named by a whole path.
func (p *Plugin) person(ctx context.Context, a *actor, name string) (target, error) {
	name = bare(name)
	if name == "" {
		return target{}, core.Errorf(core.Invalid, "It is not said who.")
	}
	c, err := seen(ctx, p.host.Reader, a.place, a.private)
	if err != nil {
		return target{}, err
	}
	t, ok, err := c.find(name)
	if ok || err != nil {
		return t, err
	}
	path, err := core.ParsePath(name)
	if err == nil && path.IsPerson() && a.admin() {
		return p.anybody(ctx, path)
	}
	return t, p.stranger(a, name)
}

// anybody is the person of that path, with the name that he was last seen by.
func (p *Plugin) anybody(ctx context.Context, path core.Path) (target, error) {
	t := target{path: path, Author: core.Author{ID: whoIs(path).id}}
	err := p.host.Reader.View(ctx, func(v core.View) error {
		entries, err := v.Recent(path.Parent().Parent(), crowdReach, nil)
		for i := range entries {
			if a := entries[i].Message.Author; !entries[i].Self && a.ID == t.ID {
				t.Author = a
			}
		}
		return err
	})
	if err != nil {
		return t, fmt.Errorf("name of %s: %w", path, err)
	}
	return t, nil
}

func (p *Plugin) stranger(a *actor, name string) error {
	text := fmt.Sprintf("I have seen nobody here who is called %s.", txt.Clip(txt.Line(name), maxName))
	if a.admin() {
		text += fmt.Sprintf(" You may name anybody by a path, like %s/@user/1000.", a.place.Interface())
	}
	return core.Errorf(core.Invalid, "%s", text)
}
