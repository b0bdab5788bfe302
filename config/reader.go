package config

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"synthbot/core/txt"
)

// reader converts a document into Go values and collects faults.
type reader struct {
	doc        *Document
	references bool // secrets stay unresolved
	partial    bool // another reader decodes the rest of the table
}

// Defaults fills the structs that into points to as an empty file would. Only
// fields with a default change.
func Defaults(into ...any) {
	d := &Document{broken: true}
	d.root = cursor{doc: d}
	reader{doc: d, partial: true}.table(&d.root, structs(into))
}

// table reads one table into structs that share it.
func (r reader) table(at *cursor, into []reflect.Value) {
	before := r.doc.findings.found
	var known []string
	for _, s := range into {
		for _, f := range fieldsOf(s.Type()) {
			known = append(known, f.name)
			r.field(at.key(f.name), &f, s.FieldByIndex(f.index))
		}
	}
	if r.partial {
		return
	}
	moved := make(map[string]string)
	for _, s := range into {
		if m, ok := s.Addr().Interface().(interface{ Moved() map[string]string }); ok {
			maps.Copy(moved, m.Moved())
		}
	}
	r.unknown(at, "", known, moved)
	if r.doc.findings.found > before || r.doc.broken {
		return
	}
	for _, s := range into {
		checker, ok := s.Addr().Interface().(interface {
			Check(fault func(text string, at ...any))
		})
		if ok {
			checker.Check(func(text string, steps ...any) { at.walk(steps).fault(text) })
		}
	}
}

// unknown adds a fault for each key that no struct has. moved has former keys of the table, with dots
// for those of tables in it, and where they are set now; within is what its keys begin with here.
func (r reader) unknown(at *cursor, within string, known []string, moved map[string]string) {
	table, _ := at.value.(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(table)) {
		if slices.Contains(known, name) {
			continue
		}
		next, to := at.key(name), moved[within+name]
		inner, _ := next.value.(map[string]any)
		switch {
		case r.doc.findings.found >= maxFaults: // further ones are only counted
			next.fault("")
		case to != "" && len(inner) > 0:
			r.unknown(next, within+name+".", nil, moved)
		case to != "":
			next.add(Fault{Text: "has moved to " + to, MovedTo: to})
		default:
			next.fault(unknownKey(name, known))
		}
	}
}

func unknownKey(name string, known []string) string {
	near := Nearest(name, known)
	if near != "" {
		return fmt.Sprintf("is unknown; did you mean %q?", near)
	}
	if len(known) == 0 {
		return "is unknown; nothing can be set here"
	}
	known = slices.Compact(slices.Sorted(slices.Values(known)))
	return "is unknown; known here are " + strings.Join(known, ", ")
}

// field reads one key of a table, which may be missing.
func (r reader) field(at *cursor, f *field, dst reflect.Value) {
	if f.initial != nil {
		f.setText(dst, *f.initial)
	}
	before := r.doc.findings.found
	switch {
	case at.value != nil:
		r.value(at, f, dst)
	case formOf(dst.Type()) == formTable:
		r.table(at, []reflect.Value{dst})
	}
	absent := r.references && formOf(dst.Type()) == formSecret
	if !f.required || absent || r.doc.broken || before < r.doc.findings.found {
		return
	}
	switch {
	case at.value == nil && f.initial == nil:
		at.fault("is missing; write " + f.sample())
	case empty(dst):
		at.fault("is empty; write " + f.sample())
	}
}

// empty reports whether a value is empty, of a type that can be.
func empty(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.String, reflect.Slice, reflect.Map:
		return v.Len() == 0
	case reflect.Struct:
		return formOf(v.Type()) != formTable && v.IsZero()
	case reflect.Pointer:
		return v.IsNil() || empty(v.Elem())
	}
	return false
}

func (r reader) value(at *cursor, f *field, dst reflect.Value) {
	switch formOf(dst.Type()) {
	case formPointer:
		dst.Set(reflect.New(dst.Type().Elem()))
		r.value(at, f, dst.Elem())
	case formSecret:
		r.secret(at, dst)
	case formRaw:
		if at.isTable() {
			dst.Set(reflect.ValueOf(Table{at, r.references}))
		}
	case formTable:
		if at.isTable() {
			r.table(at, []reflect.Value{dst})
		}
	case formList:
		r.list(at, f, dst)
	case formMap:
		r.named(at, f, dst)
	default:
		wrong := scalar(dst, at.value, f)
		if wrong != "" {
			at.fault(wrong)
		}
	}
}

// isTable reports whether the value is a table; if not, it adds a fault.
func (s *cursor) isTable() bool {
	if _, ok := s.value.(map[string]any); ok {
		return true
	}
	s.fault("is " + typeOf(s.value) + "; write it as a table of keys")
	return false
}

func (r reader) list(at *cursor, f *field, dst reflect.Value) {
	items, ok := at.value.([]any)
	if !ok {
		write := "write a list, in brackets: [ … ]"
		if formOf(f.leaf()) == formTable {
			key := txt.Clip(at.String(), 120)
			write = fmt.Sprintf("there may be several: write the header with two brackets, [[%s]]", key)
		}
		at.fault("is " + typeOf(at.value) + "; " + write)
		return
	}
	list := reflect.MakeSlice(dst.Type(), len(items), len(items))
	for i := range items {
		r.value(at.item(i), f, list.Index(i))
	}
	dst.Set(list)
}

func (r reader) named(at *cursor, f *field, dst reflect.Value) {
	if !at.isTable() {
		return
	}
	table := at.value.(map[string]any)
	m := reflect.MakeMapWithSize(dst.Type(), len(table))
	for _, name := range slices.Sorted(maps.Keys(table)) {
		item := reflect.New(dst.Type().Elem()).Elem()
		r.value(at.key(name), f, item)
		m.SetMapIndex(reflect.ValueOf(name).Convert(dst.Type().Key()), item)
	}
	dst.Set(m)
}
