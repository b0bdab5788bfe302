package moderation

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"synthbot/core"
	"synthbot/core/txt"
	"synthbot/core/users"
)

const recentEntries = 300 // how many entries of a place, and of its group, are searched for users

// user is a user whom a moderator names.
type user struct {
	core.Author
	path core.Path
}

// recentWriters returns the users, and other bots, who wrote lately in a place, and then those who
// wrote below another one, each the latest first.
func (p *Plugin) recentWriters(ctx context.Context, place, below core.Path) (list []user, err error) {
	add := func(entries []core.Entry) {
		for _, e := range slices.Backward(entries) {
			path, err := place.Person(e.Message.Author.ID)
			known := slices.ContainsFunc(list, func(u user) bool { return u.path == path })
			if err == nil && !e.Self && !known {
				list = append(list, user{e.Message.Author, path})
			}
		}
	}
	err = p.host.Reader.View(ctx, func(v core.View) error {
		entries, err := v.Last(place, recentEntries)
		add(entries)
		if err != nil || below.IsZero() {
			return err
		}
		entries, err = v.Recent(below, recentEntries, nil)
		add(entries)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("people of %s: %w", place, err)
	}
	return list, nil
}

func errSeveral(name, labels string) error {
	const text = "Several people are called %s: %s. Name one of these."
	return core.Errorf(core.Invalid, text, txt.ClipLine(name, maxName), labels)
}

// findUser finds the user whom a moderator names: somebody who wrote here lately, or for an admin
// anybody by their full path.
func (p *Plugin) findUser(ctx context.Context, a *actor, name string) (u user, err error) {
	name = trimName(name)
	if name == "" {
		return u, core.Errorf(core.Invalid, "Say who is meant.")
	}
	group := a.Path.Group()
	if a.Private {
		group = core.Path{}
	}
	list, err := p.recentWriters(ctx, a.Path, group)
	if err != nil {
		return u, err
	}
	found := users.Match(list, name, true, func(u *user) users.Names {
		return users.Names{IDs: []string{u.path.String(), u.ID}, Tag: u.Tag, Name: u.Name}
	})
	path, pathErr := core.ParsePath(name)
	switch {
	case len(found) == 1:
		return found[0], nil
	case len(found) > 1:
		label := func(u user) string { return cmp.Or(txt.ClipLine(u.Tag, maxName), u.ID) }
		return u, errSeveral(name, txt.JoinFunc(found, ", ", label))
	case pathErr == nil && path.IsPerson() && a.isAdmin():
		return p.userAt(ctx, path)
	}
	text := fmt.Sprintf("I have not seen anybody here who is called %s.", txt.ClipLine(name, maxName))
	if a.isAdmin() {
		text += fmt.Sprintf(" You may name anybody by a path, like %s/@user/1000.", a.Path.Interface())
	}
	return u, core.Errorf(core.Invalid, "%s", text)
}

// userAt returns the user of a path, with the name that they used last.
func (p *Plugin) userAt(ctx context.Context, path core.Path) (user, error) {
	list, err := p.recentWriters(ctx, path, path.Parent().Parent())
	i := slices.IndexFunc(list, func(u user) bool { return u.path == path })
	if i >= 0 {
		return list[i], nil
	}
	return user{path: path}, err
}

// findHeld finds the user whom a moderator names among those who are blocked or muted, and then
// among those who wrote here lately. A user who was forgotten is found only by their id, or by the
// mark that /blocked shows. It returns their digest. The caller holds change.
func (p *Plugin) findHeld(ctx context.Context, a *actor, kind, name string) (digest string, err error) {
	name = trimName(name)
	found := users.Match(p.records.active(kind, a.mayLift), name, false, func(h *hold) users.Names {
		n := users.Names{IDs: []string{h.mark()}, Tag: h.tag, Name: h.name}
		if !h.user.IsZero() {
			n.IDs = append(n.IDs, h.user.String(), userID(h.user))
		}
		return n
	})
	labels := make(map[string]string) // by digest
	for _, h := range found {
		labels[h.digest] = h.shortLabel()
	}
	switch {
	case len(labels) == 1:
		return found[0].digest, nil
	case len(labels) > 1:
		return "", errSeveral(name, strings.Join(slices.Sorted(maps.Values(labels)), ", "))
	case p.records.hashKey == nil:
		return "", core.Errorf(core.Invalid, "Nobody is %s.", participle(kind))
	}
	u, err := p.findUser(ctx, a, name)
	if err != nil {
		u.path, _ = a.Path.Person(name)
		if u.path.IsZero() || strings.ContainsAny(name, " /") {
			return "", err
		}
	}
	return p.records.digest(u.path), nil
}
