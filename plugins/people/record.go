package people

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"synthbot/core"
)

// field is a part of a bio.
type field string

const (
	nicknames    field = "names"
	pronouns     field = "pronouns"
	birthday     field = "birthday"
	likes        field = "likes"
	dislikes     field = "dislikes"
	facts        field = "facts"
	relationship field = "relationship"
)

// single reports whether a field has one value, which a newer one replaces.
func (f field) single() bool { return f == pronouns || f == birthday || f == relationship }

// opposite is the field that a value leaves when it enters f.
func (f field) opposite() field {
	switch f {
	case likes:
		return dislikes
	case dislikes:
		return likes
	}
	return ""
}

// order returns the fields in the order in which they are shown and find room.
func order() []field {
	return []field{nicknames, pronouns, relationship, birthday, likes, dislikes, facts}
}

// Limits of a bio.
const (
	valueMax   = 120 // characters of one value
	perField   = 12  // values of a field, of one source
	perPayload = 8   // values of a field that one update brings
	sourcesMax = 16  // users who said something about one user, or are linked with them
)

// Keys of records that do not belong to another user.
const (
	ownKey = "own"
	botKey = "bot"
)

// value is one thing that was said.
type value struct {
	Text    string    `json:"text"`
	Origin  core.Path `json:"origin"`
	Private bool      `json:"private,omitempty"` // the origin is
	Time    time.Time `json:"time"`
}

// seen reports whether the value may be shown to readers of these places.
func (v *value) seen(see []core.Path) bool {
	return slices.ContainsFunc(see, func(p core.Path) bool { return p.Within(v.Origin) })
}

// record is what one source said about a user.
type record struct {
	Fields map[field][]value `json:"fields,omitempty"`
	Name   string            `json:"name,omitempty"`   // of who said it
	Linked bool              `json:"linked,omitempty"` // who said it is the same person

	key string
}

// add adds values to a field. The same words again replace what was said there before.
func (r *record) add(f field, values ...value) {
	if r.Fields == nil {
		r.Fields = make(map[field][]value)
	}
	for _, v := range values {
		o := f.opposite()
		if o != "" {
			r.drop(o, func(old *value) bool { return strings.EqualFold(old.Text, v.Text) })
		}
		r.drop(f, func(old *value) bool {
			return (f.single() || strings.EqualFold(old.Text, v.Text)) && old.Origin == v.Origin
		})
		r.Fields[f] = append(r.Fields[f], v)
	}
	n := len(r.Fields[f])
	if n > perField {
		r.Fields[f] = slices.Clone(r.Fields[f][n-perField:])
	}
}

// drop removes values from a field.
func (r *record) drop(f field, which func(*value) bool) {
	rest := slices.DeleteFunc(r.Fields[f], func(v value) bool { return which(&v) })
	if len(rest) == 0 {
		delete(r.Fields, f)
		return
	}
	r.Fields[f] = rest
}

// dropAll removes values from all fields, and reports whether there were any.
func (r *record) dropAll(which func(*value) bool) (found bool) {
	for _, f := range order() {
		before := len(r.Fields[f])
		r.drop(f, which)
		found = found || len(r.Fields[f]) < before
	}
	return found
}

// isRecord reports whether an item's key is that of a record.
func isRecord(key string) bool {
	if key == ownKey || key == botKey {
		return true
	}
	path, err := core.ParsePath(key)
	return err == nil && path.IsPerson()
}

// records returns everything that is kept about a user.
func (p *Plugin) records(ctx context.Context, person core.Path) ([]record, error) {
	items, err := p.host.Items.List(ctx, person)
	if err != nil {
		return nil, fmt.Errorf("bio: %w", err)
	}
	var all []record
	for i := range items {
		if items[i].Path != person || !isRecord(items[i].Key) {
			continue
		}
		r := record{key: items[i].Key}
		if err := items[i].Decode(&r); err != nil {
			return nil, err
		}
		all = append(all, r)
	}
	return all, nil
}

// edit changes a record, which may be missing before. One that is empty afterwards is
// removed.
func (p *Plugin) edit(ctx context.Context, person core.Path, key string, change func(*record)) error {
	return core.EditItem(ctx, p.host.Items, person, key, func(r *record) (keep bool, err error) {
		r.key = key
		change(r)
		return r.Linked || len(r.Fields) > 0, nil
	})
}
