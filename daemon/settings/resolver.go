package settings

import (
	"reflect"
	"slices"
	"sync"

	"synthbot/core"
)

// Resolver returns the settings that apply in a place, and where each comes from.
// Safe for concurrent use.
//
// Equal combinations of layers are merged once: the merged settings form a tree,
// in which each step down adds one layer. A change by command drops the tree.
type Resolver[T any] struct {
	fields  []field
	layers  map[core.Path][]*Layer[T] // of the configuration
	changes *Changes[T]
	scopes  func(place core.Path) []core.Path

	mu      sync.Mutex
	base    T
	root    *merged[T]
	version int // of the changes that the tree holds
}

// merged is the result of a combination of layers.
type merged[T any] struct {
	values T
	next   map[*Layer[T]]*merged[T] // with one more layer
}

// New makes a resolver. base holds for all places. Of two layers for one path, the
// later wins. scopes returns further paths that a place belongs to, as a channel
// belongs to a category; it may be nil.
func New[T any](base T, layers []Layer[T], changes *Changes[T], scopes func(core.Path) []core.Path) *Resolver[T] {
	r := &Resolver[T]{fields: fieldsOf(reflect.TypeFor[T]()), changes: changes, scopes: scopes, base: base}
	r.layers = make(map[core.Path][]*Layer[T])
	for i := range layers {
		at := layers[i].Path
		r.layers[at] = append(r.layers[at], &layers[i])
	}
	r.root = &merged[T]{values: base}
	return r
}

// At returns the settings that apply in a place. The caller must not change them.
func (r *Resolver[T]) At(place core.Path) *T {
	paths, version := r.changes.state()
	var layers []*Layer[T]
	if len(r.layers) > 0 || paths > 0 {
		layers = r.Layers(place)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if version != r.version {
		r.root, r.version = &merged[T]{values: r.base}, version
	}
	m := r.root
	for _, l := range layers {
		m = r.step(m, l)
	}
	return &m.values
}

// step returns what results from m and one more layer. The caller holds mu.
func (r *Resolver[T]) step(m *merged[T], l *Layer[T]) *merged[T] {
	next := m.next[l]
	if next == nil {
		next = &merged[T]{values: m.values}
		add(r.fields, reflect.ValueOf(&next.values).Elem(), reflect.ValueOf(&l.Values).Elem())
		if m.next == nil {
			m.next = make(map[*Layer[T]]*merged[T])
		}
		m.next[l] = next
	}
	return next
}

// Layers returns the layers that apply in a place; the last one that sets a value wins.
func (r *Resolver[T]) Layers(place core.Path) (layers []*Layer[T]) {
	for _, at := range r.paths(place) {
		layers = append(layers, r.layers[at]...)
		layers = append(layers, r.changes.at(at)...)
	}
	return layers
}

// paths returns the paths that hold a place, the nearest last.
func (r *Resolver[T]) paths(place core.Path) []core.Path {
	list := above(nil, place)
	if r.scopes != nil {
		for _, scope := range r.scopes(place) {
			list = above(list, scope)
		}
	}
	// The place's own paths come first in the list, so that they win over equally
	// long ones of a category once the list is reversed.
	slices.SortStableFunc(list, func(a, b core.Path) int { return depth(b) - depth(a) })
	slices.Reverse(list)
	return list
}

// above appends a path and those above it that the list lacks.
func above(list []core.Path, p core.Path) []core.Path {
	for ; ; p = p.Parent() {
		if !slices.Contains(list, p) {
			list = append(list, p)
		}
		if p.IsZero() {
			return list
		}
	}
}

// All returns all layers, shorter paths first; of one path, those of the
// configuration first.
func (r *Resolver[T]) All() []*Layer[T] {
	var list []*Layer[T]
	for _, layers := range r.layers {
		list = append(list, layers...)
	}
	list = append(list, r.changes.All()...)
	slices.SortStableFunc(list, func(a, b *Layer[T]) int { return compare(a.Path, b.Path) })
	return list
}

// Row is a setting that applies in a place, as users read it.
type Row struct{ Name, Value, From string }

// Rows returns the settings that apply in a place, in the order of the fields.
// Those with the tag each have a row for each layer.
func (r *Resolver[T]) Rows(place core.Path) (rows []Row) {
	layers := r.Layers(place)
	base := reflect.ValueOf(&r.base).Elem()
	for i := range r.fields {
		f := &r.fields[i]
		if f.tag.Get("doc") == "" {
			continue
		}
		before := len(rows)
		for _, l := range r.holding(f, layers, place) {
			rows = append(rows, Row{f.name, f.text(reflect.ValueOf(&l.Values).Elem()), l.From})
		}
		if len(rows) == before {
			rows = append(rows, Row{f.name, f.text(base), f.source()})
		}
	}
	return rows
}

// holding returns the layers whose value of a field counts in a place.
func (r *Resolver[T]) holding(f *field, layers []*Layer[T], place core.Path) (list []*Layer[T]) {
	for _, l := range layers {
		if !f.isSet(reflect.ValueOf(&l.Values).Elem()) {
			continue
		}
		switch {
		case f.each == "":
			list = list[:0]
		case f.each == "path" && !place.Within(l.Path):
			continue
		case f.each == "path" && len(list) > 0 && list[len(list)-1].Path == l.Path:
			list = list[:len(list)-1]
		}
		list = append(list, l)
	}
	return list
}
