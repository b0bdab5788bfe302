package settings

import (
	"cmp"
	"reflect"
	"slices"

	"synthbot/core"
	"synthbot/core/sorting"
)

// Resolver returns the settings that apply in a place, and where each comes from. Safe for concurrent use.
type Resolver[T any] struct {
	fields  []field
	base    T
	layers  map[core.Path][]*Layer[T] // of the configuration
	changes *Changes[T]
	scopes  func(place core.Path) []core.Path
}

// New makes a resolver. base applies to all places. Of two layers for one path, the later one wins. scopes returns
// further paths that a place belongs to, as a channel belongs to a category; it may be nil.
func New[T any](base T, layers []Layer[T], changes *Changes[T], scopes func(core.Path) []core.Path) *Resolver[T] {
	r := &Resolver[T]{fields: fieldsOf(reflect.TypeFor[T]()), base: base, changes: changes, scopes: scopes}
	r.layers = make(map[core.Path][]*Layer[T])
	for i := range layers {
		at := layers[i].Path
		r.layers[at] = append(r.layers[at], &layers[i])
	}
	return r
}

// At returns the settings that apply in a place. The caller must not change what they point to.
func (r *Resolver[T]) At(place core.Path) *T {
	layers := r.Layers(place)
	if len(layers) == 0 {
		return &r.base
	}
	values := r.base
	for _, l := range layers {
		add(r.fields, reflect.ValueOf(&values).Elem(), reflect.ValueOf(&l.Values).Elem())
	}
	return &values
}

// Layers returns the layers that apply in a place; the last one that sets a value wins.
func (r *Resolver[T]) Layers(place core.Path) (layers []*Layer[T]) {
	changes := r.changes.now()
	if len(r.layers) == 0 && len(changes) == 0 {
		return nil
	}
	for _, at := range r.paths(place) {
		layers = append(layers, r.layers[at]...)
		if change, ok := changes[at]; ok {
			layers = append(layers, change)
		}
	}
	return layers
}

// paths returns the paths that contain a place, the nearest last.
func (r *Resolver[T]) paths(place core.Path) (list []core.Path) {
	from := []core.Path{place}
	if r.scopes != nil {
		from = append(from, r.scopes(place)...)
	}
	for _, p := range from {
		for ; !slices.Contains(list, p); p = p.Parent() {
			list = append(list, p)
		}
	}
	// The place's own paths come first, and win over equally long ones of a category once reversed.
	sorting.SortStable(list, func(a, b core.Path) int { return depth(b) - depth(a) })
	slices.Reverse(list)
	return list
}

// All returns all layers, shorter paths first; of one path, those of the configuration first.
func (r *Resolver[T]) All() []*Layer[T] {
	var list []*Layer[T]
	for _, layers := range r.layers {
		list = append(list, layers...)
	}
	return sorted(append(list, r.changes.All()...))
}

// Row is a setting that applies in a place, as users read it.
type Row struct {
	Name, Value, From string
	Set               string // the value as /set takes it; "" if nothing sets it
}

// Rows returns the settings that apply in a place, in the order of the fields. The tag each makes a row for each layer.
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
			rows = append(rows, f.row(reflect.ValueOf(&l.Values).Elem(), l.From))
		}
		if len(rows) == before {
			rows = append(rows, f.row(base, cmp.Or(f.tag.Get("base"), f.tag.Get("origin"), "-")))
		}
	}
	return rows
}

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
