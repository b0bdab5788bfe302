package moderation

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"synthbot/core"
	"synthbot/core/txt"
	"synthbot/core/users"
)

// recentEntries is how many entries of a place, and of its group, are searched for users.
const recentEntries = 300

// candidate is a user who may be meant by a name.
type candidate struct {
	user      core.Path // zero: forgotten
	mark      string    // names a user who was forgotten
	name, tag string
	rank      core.Rank
	digest    digest // of a user who is blocked or muted
}

// recentWriters returns who wrote lately in a place and then in its group, the latest first.
func recentWriters(ctx context.Context, r core.Reader, place core.Path, private bool) (list []candidate, err error) {
	add := func(entries []core.Entry) {
		for i := range slices.Backward(entries) {
			e := &entries[i]
			user, err := place.Person(e.Message.Author.ID)
			elsewhere := e.Message.Private && e.Message.Path != place
			known := slices.ContainsFunc(list, func(c candidate) bool { return c.user == user })
			if err == nil && !e.Self && !elsewhere && !known {
				list = append(list, candidateOf(user, &e.Message.Author))
			}
		}
	}
	err = r.View(ctx, func(v core.View) error {
		entries, err := v.Last(place, recentEntries)
		add(entries)
		if err != nil || private {
			return err
		}
		entries, err = v.Recent(groupOf(place), recentEntries, nil)
		add(entries)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("people of %s: %w", place, err)
	}
	return list, nil
}

func candidateOf(user core.Path, a *core.Author) candidate {
	return candidate{user: user, name: a.Name, tag: a.Tag, rank: a.Rank}
}

// match returns the candidates that are called name: see users.Match. A mark is an id, too.
func match(list []candidate, name string, firstWord bool) []candidate {
	return users.Match(list, name, firstWord, func(c *candidate) users.Names {
		n := users.Names{IDs: []string{c.mark}, Tag: c.tag, Name: c.name}
		if !c.user.IsZero() {
			n.IDs = append(n.IDs, c.user.String(), userID(c.user))
		}
		return n
	})
}

// errSeveral refuses a name that several users have.
func errSeveral(name string, found []candidate) error {
	list := make([]string, len(found))
	for i, c := range found {
		list[i] = txt.ClipLine(c.tag, maxName)
		switch {
		case list[i] != "":
		case c.user.IsZero():
			list[i] = c.mark
		default:
			list[i] = userID(c.user)
		}
	}
	return core.Errorf(core.Invalid, "Several people are called %s: %s. Name one of these.",
		txt.ClipLine(name, maxName), strings.Join(list, ", "))
}

// findUser finds whom a moderator names: somebody who wrote here lately, or for an admin
// anybody by a whole path.
func (p *Plugin) findUser(ctx context.Context, a *actor, name string) (c candidate, err error) {
	name = bare(name)
	if name == "" {
		return c, core.Errorf(core.Invalid, "It is not said who.")
	}
	list, err := recentWriters(ctx, p.host.Reader, a.place, a.private)
	if err != nil {
		return c, err
	}
	found := match(list, name, true)
	path, pathErr := core.ParsePath(name)
	switch {
	case len(found) == 1:
		return found[0], nil
	case len(found) > 1:
		return c, errSeveral(name, found)
	case pathErr == nil && path.IsPerson() && a.isAdmin():
		return userAt(ctx, p.host.Reader, path)
	}
	text := fmt.Sprintf("I have seen nobody here who is called %s.", txt.ClipLine(name, maxName))
	if a.isAdmin() {
		text += fmt.Sprintf(" You may name anybody by a path, like %s/@user/1000.", a.place.Interface())
	}
	return c, core.Errorf(core.Invalid, "%s", text)
}

// userAt returns the user of a path, with the name that they used last.
func userAt(ctx context.Context, r core.Reader, path core.Path) (candidate, error) {
	c := candidate{user: path}
	err := r.View(ctx, func(v core.View) error {
		entries, err := v.Recent(path.Parent().Parent(), recentEntries, nil)
		for i := range entries {
			a := &entries[i].Message.Author
			if !entries[i].Self && a.ID == userID(path) {
				c = candidateOf(path, a)
			}
		}
		return err
	})
	if err != nil {
		return c, fmt.Errorf("name of %s: %w", path, err)
	}
	return c, nil
}

// findHeld finds whom a moderator names among the users who are blocked or muted, and then
// among those who wrote here lately. Who was forgotten is found only by their id, or by the
// mark that /blocked shows. The caller holds change.
func (p *Plugin) findHeld(ctx context.Context, a *actor, kind, name string) (digest, error) {
	name = bare(name)
	var list []candidate
	for _, h := range p.records.active(kind, a.reaches) {
		c := candidate{user: h.user, mark: h.mark(), name: h.name, tag: h.tag, digest: h.digest}
		if !slices.ContainsFunc(list, func(d candidate) bool { return d.user == c.user && d.digest == c.digest }) {
			list = append(list, c)
		}
	}
	found := match(list, name, false)
	switch {
	case len(found) == 1:
		return found[0].digest, nil
	case len(found) > 1:
		return digest{}, errSeveral(name, found)
	case !p.records.hasKey():
		return digest{}, core.Errorf(core.Invalid, "Nobody is.")
	}
	c, err := p.findUser(ctx, a, name)
	if err != nil {
		c.user, _ = a.place.Person(name)
		if c.user.IsZero() || strings.ContainsAny(name, " /") {
			return digest{}, err
		}
	}
	return p.records.digest(c.user), nil
}
