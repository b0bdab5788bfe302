// Package users lists the users who wrote in a place, and finds the one with a name. It knows nothing else about them.
package users

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"synthbot/core"
)

const depth = 300 // entries of a place that Recent reads

// List holds the users who wrote in a place, the latest first.
type List struct {
	Place core.Path
	Users []core.Author // without bots and duplicates
	me    core.Author   // whom Find returns for "me"; zero: nobody
}

// Recent returns the users who wrote in a place lately, and then me, the user who speaks, whom Find
// also finds as "me". Without a user, me is zero.
func Recent(ctx context.Context, r core.Reader, place core.Path, me core.Author) (List, error) {
	l := List{Place: place, me: me}
	entries, err := core.Read(ctx, r, func(v core.View) ([]core.Entry, error) { return v.Last(place, depth) })
	if err != nil {
		return l, fmt.Errorf("users of %s: %w", place, err)
	}
	for _, e := range slices.Backward(entries) {
		if !e.Self {
			l.Add(e.Message.Author)
		}
	}
	l.Add(me)
	return l, nil
}

// Add adds a user, except bots and those whom the list holds already.
func (l *List) Add(a core.Author) {
	if a.ID != "" && !a.Bot && !slices.ContainsFunc(l.Users, func(b core.Author) bool { return b.ID == a.ID }) {
		l.Users = append(l.Users, a)
	}
}

// Find returns the user with a name. ok is false if there is none. It returns an error, which is
// for the model, if several users have the name.
func (l *List) Find(name string) (user core.Path, ok bool, err error) {
	name = strings.TrimSpace(name)
	if strings.EqualFold(name, "me") && l.me.ID != "" {
		name = l.me.ID
	}
	found := Match(l.Users, name, true, func(a *core.Author) Names {
		return Names{IDs: []string{a.ID, l.Path(*a).String()}, Tag: a.Tag, Name: a.Name}
	})
	switch len(found) {
	case 0:
		return core.Path{}, false, nil
	case 1:
		return l.Path(found[0]), true, nil
	}
	tags := make([]string, len(found))
	for i, a := range found {
		tags[i] = cmp.Or(a.Tag, a.ID)
	}
	return core.Path{}, false, core.Errorf(core.Invalid,
		"Several people here are called %s: %s. Name one of these.", name, strings.Join(tags, ", "))
}

// Writer returns the id of the author of a message in a place; "" if it is the bot, the channel of the place, or
// unknown. If the message is not stored, it is that of named, the author according to the platform.
func Writer(ctx context.Context, r core.Reader, place core.Path, id string, named core.Author) (string, error) {
	if id == "" {
		return "", nil
	}
	e, ok, err := core.ReadEntry(ctx, r, place, id)
	if ok {
		named = e.Message.Author
	}
	if err != nil || e.Self || named.Channel == core.ChannelLinked {
		return "", err
	}
	return named.ID, nil
}

// Path returns a user's path; the zero Path if the id is not valid.
func (l *List) Path(a core.Author) core.Path {
	p, _ := l.Place.Person(a.ID)
	return p
}

// Author returns the user with a path; zero if the list does not have them.
func (l *List) Author(user core.Path) core.Author {
	for _, a := range l.Users {
		if l.Path(a) == user {
			return a
		}
	}
	return core.Author{}
}

// Names are the names by which a user can be found.
type Names struct {
	IDs       []string // compared exactly
	Tag, Name string
}

// Match returns the elements of list with a name, which may begin with "@". It compares ids;
// if none matches, tags; then names; and then, with firstWord, the first words of names.
func Match[T any](list []T, name string, firstWord bool, names func(*T) Names) []T {
	plain := strings.TrimPrefix(name, "@")
	if plain == "" {
		return nil
	}
	same := func(s string) bool { return strings.EqualFold(s, plain) }
	for _, matches := range []func(Names) bool{
		func(n Names) bool { return slices.Contains(n.IDs, name) || slices.Contains(n.IDs, plain) },
		func(n Names) bool { return same(strings.TrimPrefix(n.Tag, "@")) },
		func(n Names) bool { return same(n.Name) },
		func(n Names) bool {
			first, _, _ := strings.Cut(n.Name, " ")
			return firstWord && same(first)
		},
	} {
		var found []T
		for i := range list {
			if matches(names(&list[i])) {
				found = append(found, list[i])
			}
		}
		if len(found) > 0 {
			return found
		}
	}
	return nil
}

// How many of the newest entries NamesOf searches.
const (
	placeDepth = 20  // of a place
	allDepth   = 300 // of an interface
)

// NamesOf returns the names of places and users, for admins. It calls known, which returns "" for an unknown name and
// may be nil, and then searches the newest entries. Paths without a name are left out.
func NamesOf(v core.View, known func(core.Path) string, paths ...core.Path) (map[core.Path]string, error) {
	names, wanted := make(map[core.Path]string), make(map[core.Path]bool)
	for _, p := range paths {
		name := ""
		if known != nil {
			name = known(p)
		}
		if name == "" {
			wanted[p] = true
		} else {
			names[p] = name
		}
	}
	for _, p := range paths {
		if p.IsPerson() || p.IsZero() || len(wanted) == 0 {
			continue
		}
		entries, err := v.Last(p, placeDepth)
		if err != nil {
			return nil, err
		}
		collect(names, wanted, entries)
	}
	searched := make(map[core.Path]bool) // interfaces
	for p := range wanted {
		root, err := core.MakePath(p.Interface())
		if !p.IsPerson() || err != nil || searched[root] {
			continue
		}
		searched[root] = true
		entries, err := v.Recent(root, allDepth, nil)
		if err != nil {
			return nil, err
		}
		collect(names, wanted, entries)
	}
	return names, nil
}

// collect moves the authors of entries from wanted to names, and also their private places, which
// get the author's name.
func collect(names map[core.Path]string, wanted map[core.Path]bool, entries []core.Entry) {
	for _, e := range slices.Backward(entries) {
		m := &e.Message
		if e.Self || m.Author.Name == "" {
			continue
		}
		person, _ := m.Path.Person(m.Author.ID) // zero without an id
		found := []core.Path{person}
		if m.Private {
			found = append(found, m.Path)
		}
		for _, p := range found {
			if wanted[p] && !p.IsZero() {
				names[p] = m.Author.Name
				delete(wanted, p)
			}
		}
	}
}
