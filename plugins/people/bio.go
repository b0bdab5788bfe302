package people

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"synthbot/core"
	"synthbot/core/sorting"
	"synthbot/core/values"
)

// bio contains the values about a user that may be shown, the newest first.
type bio struct {
	fields map[field][]value
	others []hearsay
}

// hearsay is a value that another user said.
type hearsay struct {
	By    string `json:"by,omitempty"`
	Field field  `json:"field"`
	Says  string `json:"says"`

	value value
}

// visible returns the values about a user and their linked accounts that readers of these places may see.
func (p *Plugin) visible(ctx context.Context, person core.Path, see []core.Path) (*bio, error) {
	seen := func(v *value) bool { return v.seen(see) }
	return p.gather(ctx, person, seen, seen)
}

// gather collects the allowed values about a user; allowedLinked is for those of linked accounts.
func (p *Plugin) gather(ctx context.Context, person core.Path, allowed, allowedLinked func(*value) bool) (*bio, error) {
	records, err := p.records(ctx, person)
	if err != nil {
		return nil, err
	}
	b := &bio{fields: make(map[field][]value)}
	b.add(records, allowed)
	for _, other := range links(records) {
		theirs, err := p.records(ctx, other)
		if err != nil {
			return nil, err
		}
		if slices.Contains(links(theirs), person) {
			b.add(theirs, allowedLinked)
		}
	}
	b.normalize()
	return b, nil
}

func links(records []record) (people []core.Path) {
	for i := range records {
		if path, err := core.ParsePath(records[i].key); err == nil && records[i].Linked {
			people = append(people, path)
		}
	}
	return people
}

func (b *bio) add(records []record, allowed func(*value) bool) {
	for i := range records {
		r := &records[i]
		for f, values := range r.Fields {
			for _, v := range values {
				switch {
				case !allowed(&v):
				case r.key == ownKey || r.key == botKey && f == relationship:
					b.fields[f] = append(b.fields[f], v)
				default:
					b.others = append(b.others, hearsay{r.Name, f, v.Text, v})
				}
			}
		}
	}
}

func newest(a, b value) int {
	return cmp.Or(b.Time.Compare(a.Time), strings.Compare(a.Text, b.Text))
}

// normalize sorts the newest first, and drops duplicates and hearsay that contradicts the user's own words.
func (b *bio) normalize() {
	for f, values := range b.fields {
		sorting.Sort(values, newest)
		var once []value
		for _, v := range values {
			if !holds(once, v.Text) && (!f.single() || len(once) == 0) {
				once = append(once, v)
			}
		}
		b.fields[f] = once
	}
	b.others = slices.DeleteFunc(b.others, func(h hearsay) bool {
		return h.Field.single() && len(b.fields[h.Field]) > 0 ||
			holds(b.fields[h.Field], h.Says) || holds(b.fields[h.Field.opposite()], h.Says)
	})
	sorting.Sort(b.others,
		func(x, y hearsay) int { return cmp.Or(newest(x.value, y.value), strings.Compare(x.By, y.By)) })
}

func holds(values []value, text string) bool {
	return slices.ContainsFunc(values, func(v value) bool { return strings.EqualFold(v.Text, text) })
}

// brief returns the bio for a prompt, in at most limit bytes. It leaves out what does not fit, and
// returns nil if nothing is left.
func (b *bio) brief(limit int) json.RawMessage {
	members := ""
	add := func(name string, list []string, isList bool) {
		opening, closing := `,"`+name+`":`, ""
		if isList {
			opening, closing = opening+"[", "]"
		}
		kept := "" // each preceded by a comma
		for _, text := range list {
			next := kept + "," + string(core.JSON(text))
			if len(members)+len(opening)+len(next)+len(closing) <= limit {
				kept = next
			}
		}
		if kept != "" {
			members += opening + kept[1:] + closing
		}
	}
	for _, f := range order() {
		list := texts(b.fields[f])
		if f.single() {
			list = list[:min(len(list), 1)]
		}
		add(string(f), list, !f.single())
	}
	said := make([]string, len(b.others))
	for i, h := range b.others {
		said[i] = h.String()
	}
	add("others_say", said, true)
	if members == "" {
		return nil
	}
	return json.RawMessage("{" + members[1:] + "}")
}

func texts(values []value) []string {
	list := make([]string, len(values))
	for i := range values {
		list[i] = values[i].Text
	}
	return list
}

func (h hearsay) String() string {
	text := h.Says
	if h.Field != facts {
		text = string(h.Field) + " " + text
	}
	if h.By == "" {
		return text
	}
	return h.By + ": " + text
}

// whole returns all fields of the bio.
func (b *bio) whole() map[string]any {
	all := make(map[string]any)
	for f, values := range b.fields {
		if f.single() {
			all[string(f)] = values[0].Text
		} else {
			all[string(f)] = texts(values)
		}
	}
	return all
}

// Bios implements core.BioSource.
func (p *Plugin) Bios(ctx context.Context, s core.Scene, people []core.Author) (map[string]json.RawMessage, error) {
	bios := make(map[string]json.RawMessage)
	for _, a := range people {
		if a.ID == "" || a.Bot {
			continue
		}
		person, err := s.Path.Person(a.ID)
		if err != nil {
			return nil, fmt.Errorf("person: %w", err)
		}
		b, err := p.visible(ctx, person, s.Sees)
		if err != nil {
			return nil, err
		}
		raw := b.brief(p.config.Bytes)
		if raw != nil {
			bios[a.ID] = raw
		}
	}
	return bios, nil
}

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

// opposite returns the field that must not contain the same value as f.
func (f field) opposite() field {
	switch f {
	case likes:
		return dislikes
	case dislikes:
		return likes
	}
	return ""
}

// order returns the fields from the most to the least important.
func order() []field {
	return []field{nicknames, pronouns, relationship, birthday, likes, dislikes, facts}
}

// Limits of a bio.
const (
	valueMax   = 120 // characters of one value
	perField   = 12  // values of a field in one record
	perPayload = 8   // values of a field in one update
	sourcesMax = 16  // records about one user
)

// Keys of records that do not belong to another user.
const (
	ownKey = "own"
	botKey = "bot"
)

type value struct {
	Text    string    `json:"text"`
	Origin  core.Path `json:"origin"`
	Private bool      `json:"private,omitempty"` // whether the origin is
	Time    time.Time `json:"time"`
}

// seen reports whether the value may be shown to readers of these places.
func (v *value) seen(see []core.Path) bool {
	return slices.ContainsFunc(see, func(p core.Path) bool { return p.Within(v.Origin) })
}

// record is the item with the values from one source.
type record struct {
	Fields map[field][]value `json:"fields,omitempty"`
	Name   string            `json:"name,omitempty"`   // of the source
	Linked bool              `json:"linked,omitempty"` // the source is another account of the user

	key string
}

// add adds a value to a field. It replaces an equal one from the same place.
func (r *record) add(f field, v value) {
	if r.Fields == nil {
		r.Fields = make(map[field][]value)
	}
	same := func(old *value) bool { return strings.EqualFold(old.Text, v.Text) }
	r.drop(f.opposite(), same)
	r.drop(f, func(old *value) bool { return (f.single() || same(old)) && old.Origin == v.Origin })
	all := append(r.Fields[f], v)
	r.Fields[f] = slices.Clone(all[max(0, len(all)-perField):])
}

// drop removes values from a field, and reports whether there were any.
func (r *record) drop(f field, which func(*value) bool) bool {
	before := len(r.Fields[f])
	rest := slices.DeleteFunc(r.Fields[f], func(v value) bool { return which(&v) })
	if len(rest) == 0 {
		delete(r.Fields, f)
	} else {
		r.Fields[f] = rest
	}
	return len(rest) < before
}

// dropAll removes values from all fields, and reports whether there were any.
func (r *record) dropAll(which func(*value) bool) (found bool) {
	for f := range r.Fields {
		found = r.drop(f, which) || found
	}
	return found
}

func isRecord(key string) bool {
	path, err := core.ParsePath(key)
	return key == ownKey || key == botKey || err == nil && path.IsPerson()
}

// records returns all records about a user.
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

// edit changes a record, which need not exist. If it is empty afterwards, it is removed.
func (p *Plugin) edit(ctx context.Context, person core.Path, key string, change func(*record)) error {
	return values.Edit(ctx, p.host.Items, person, key, func(r *record) (keep bool, err error) {
		r.key = key
		change(r)
		return r.Linked || len(r.Fields) > 0, nil
	})
}
