package settings

import (
	"fmt"
	"reflect"
	"strings"

	"synthbot/config"
	"synthbot/core"
)

type field struct {
	name string // its TOML key or, without one, its JSON key
	each string // the tag each
	tag  reflect.StructTag
	at   []int
}

func fieldsOf(t reflect.Type) []field {
	var list []field
	for _, f := range reflect.VisibleFields(t) {
		if f.Anonymous || !f.IsExported() {
			continue
		}
		stored, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		name := f.Tag.Get("toml")
		if name == "-" {
			name = stored
		}
		list = append(list, field{name: name, each: f.Tag.Get("each"), tag: f.Tag, at: f.Index})
	}
	return list
}

func (f *field) of(s reflect.Value) reflect.Value { return s.FieldByIndex(f.at) }

func (f *field) isSet(s reflect.Value) bool {
	v := f.of(s)
	return !v.IsZero() && (v.Kind() != reflect.Slice || v.Len() > 0)
}

func (f *field) row(s reflect.Value, from string) Row {
	r := Row{Name: f.name, From: from}
	v := reflect.Indirect(f.of(s))
	switch {
	case v.Kind() == reflect.Slice:
		parts := make([]string, v.Len())
		for i := range parts {
			parts[i] = fmt.Sprint(v.Index(i).Interface())
		}
		r.Value = strings.Join(parts, ", ")
	case v.IsValid():
		r.Value = fmt.Sprint(v.Interface())
	}
	if v.IsValid() && !v.IsZero() {
		r.Set = r.Value
	} else if empty, ok := f.tag.Lookup("empty"); ok {
		r.Value = empty
	}
	return r
}

// add copies the fields that from sets to into. It appends to a list with the tag each.
func add(fields []field, into, from reflect.Value) {
	for i := range fields {
		f := &fields[i]
		if !f.isSet(from) {
			continue
		}
		old, value := f.of(into), f.of(from)
		if f.each != "" && old.Kind() == reflect.Slice {
			value = reflect.AppendSlice(old.Slice3(0, old.Len(), old.Len()), value)
		}
		old.Set(value)
	}
}

// Base returns the settings for all places. Each field with the tag base gets the value of that key in tables, a
// pointer to a struct. Base panics if there is no such key, or if its type differs.
func Base[T any](tables any) T {
	values := make(map[string]reflect.Value)
	config.Walk(nil, tables, func(s config.Setting) { values[s.Key.String()] = s.Value })
	var base T
	into := reflect.ValueOf(&base).Elem()
	for _, f := range fieldsOf(into.Type()) {
		key := f.tag.Get("base")
		if key == "" {
			continue
		}
		value, ok := values[key]
		if !ok {
			panic("settings: there is no key " + key)
		}
		dst := f.of(into)
		if dst.Kind() == reflect.Pointer {
			dst.Set(reflect.New(dst.Type().Elem()))
			dst = dst.Elem()
		}
		dst.Set(value)
	}
	return base
}

// Default is the value that undoes the change of a setting by command.
const Default = "default"

// Names returns the settings that /set changes.
func Names[T any]() (names []string) {
	for _, f := range fieldsOf(reflect.TypeFor[T]()) {
		if f.tag.Get("set") != "" {
			names = append(names, f.name)
		}
	}
	return names
}

// Values lists the values that /set takes for a setting; only Default if any text may be valid.
func Values[T any](name string) []string {
	f, err := find(reflect.TypeFor[T](), name)
	if err != nil {
		return nil
	}
	choices := strings.FieldsFunc(f.tag.Get("oneof"), func(r rune) bool { return r == '|' })
	return append(choices, Default)
}

// find returns the setting with a name, if commands can change it from text.
func find(t reflect.Type, name string) (f field, err error) {
	for _, f := range fieldsOf(t) {
		if f.name == name && f.tag.Get("json") != "-" && f.tag.Get("toml") != "-" {
			return f, nil
		}
	}
	return f, core.Errorf(core.Invalid, "There is no setting %q.", name)
}
