package users

import (
	"slices"

	"synthbot/core"
)

// Depths of the search for names.
const (
	placeDepth = 20  // entries of a place
	allDepth   = 300 // entries of an interface
)

// NamesOf returns what places and users are called, for admins: by what interfaces know of them,
// else by what was written lately. known returns "" if it knows no name, and may be nil. Those
// without a name are left out.
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
	for p := range wanted {
		if !p.IsPerson() || !wanted[p] {
			continue
		}
		root, err := core.MakePath(p.Interface())
		if err != nil {
			continue
		}
		entries, err := v.Recent(root, allDepth, nil)
		if err != nil {
			return nil, err
		}
		collect(names, wanted, entries)
		for q := range wanted { // they were not seen there either
			if q.Interface() == p.Interface() {
				delete(wanted, q)
			}
		}
	}
	return names, nil
}

// collect moves those from wanted to names who wrote one of the entries, and the private places
// of those who did.
func collect(names map[core.Path]string, wanted map[core.Path]bool, entries []core.Entry) {
	for _, e := range slices.Backward(entries) {
		m := &e.Message
		if e.Self || m.Author.Name == "" {
			continue
		}
		found := []core.Path{}
		person, err := m.Path.Person(m.Author.ID)
		if err == nil {
			found = append(found, person)
		}
		if m.Private {
			found = append(found, m.Path)
		}
		for _, p := range found {
			if wanted[p] {
				names[p] = m.Author.Name
				delete(wanted, p)
			}
		}
	}
}
