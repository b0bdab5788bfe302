package config

import (
	"cmp"
	"encoding"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"synthbot/core/secret"
	"synthbot/core/txt"
)

type field struct {
	name     string
	tag      reflect.StructTag
	index    []int
	typ      reflect.Type
	required bool
	initial  *string // the default, as text
	rules    rules
	items    int          // how many elements a list may have; 0: any number
	owner    reflect.Type // the struct, for messages
}

type form int

const (
	formScalar form = iota // text, number, …
	formSecret
	formTable       // a struct
	formRaw         // a Table
	formList        // a slice
	formMap         // a map
	formPointer     // a pointer
	formUnsupported // not supported
)

var (
	typeSecret   = reflect.TypeFor[secret.Secret]()
	typeDuration = reflect.TypeFor[time.Duration]()
	typeLevel    = reflect.TypeFor[slog.Level]()
	typeTable    = reflect.TypeFor[Table]()
	typeText     = reflect.TypeFor[encoding.TextUnmarshaler]()
)

func formOf(t reflect.Type) form {
	switch t {
	case typeSecret:
		return formSecret
	case typeTable:
		return formRaw
	}
	if readsText(t) {
		return formScalar
	}
	switch t.Kind() {
	case reflect.String, reflect.Bool, reflect.Float64,
		reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return formScalar
	case reflect.Struct:
		return formTable
	case reflect.Slice:
		return formList
	case reflect.Pointer:
		return formPointer
	case reflect.Map:
		if t.Key().Kind() == reflect.String {
			return formMap
		}
	}
	return formUnsupported
}

// readsText reports whether values of t read their own text; types without a name have no methods.
func readsText(t reflect.Type) bool {
	return t.PkgPath() != "" && reflect.PointerTo(t).Implements(typeText)
}

var fieldsByType sync.Map // []field by reflect.Type

// fieldsOf returns the fields of a struct. It panics if a tag is invalid, but does not check defaults and examples.
func fieldsOf(t reflect.Type) []field {
	list, ok := fieldsByType.Load(t)
	if !ok {
		list, _ = fieldsByType.LoadOrStore(t, readTags(t))
	}
	return list.([]field)
}

func readTags(t reflect.Type) []field {
	var list []field
	for i := range t.NumField() {
		sf := t.Field(i)
		name, tagged := sf.Tag.Lookup("toml")
		switch {
		case sf.Anonymous && !tagged && sf.Type.Kind() == reflect.Struct:
			for _, f := range fieldsOf(sf.Type) {
				f.index = append([]int{i}, f.index...)
				list = append(list, f)
			}
		case tagged && name != "-":
			list = append(list, newField(t, sf, name))
		}
	}
	seen := make(map[string]bool, len(list))
	for _, f := range list {
		if seen[f.name] {
			panic(fmt.Sprintf("config: %s has two fields for the key %q", t, f.name))
		}
		seen[f.name] = true
	}
	return list
}

// Key is the path of a key from the root: names (string) and indices (int).
type Key []any

// String returns the key as in a file ("engine[0].timeout").
func (k Key) String() string { return (&node{}).walk(k).String() }

func (k Key) then(steps ...any) Key { return append(slices.Clip(k), steps...) }

// Setting is one field of a configuration.
type Setting struct {
	Key   Key
	Kind  string // the tag kind
	Value reflect.Value
	field *field
}

// Default returns the setting with the value that it has if its key is missing. ok is false if that is nil.
func (s Setting) Default() (d Setting, ok bool) {
	s.Value = reflect.New(s.field.typ).Elem()
	if s.field.initial != nil {
		_ = s.field.setText(s.Value, *s.field.initial) // a test of all configurations checks the texts
	}
	return s, formOf(s.field.typ) != formPointer
}

// Walk calls f with each field in the struct that into points to, and in structs and lists of structs inside it. Keys
// begin with at. Walk leaves out each [Table] and nil pointers.
func Walk(at Key, into any, f func(s Setting)) {
	s := structs([]any{into})[0]
	fields := fieldsOf(s.Type())
	for i := range fields {
		field := &fields[i]
		key, v := at.then(field.name), reflect.Indirect(s.FieldByIndex(field.index))
		switch {
		case !v.IsValid() || formOf(field.leaf()) == formRaw:
		case formOf(v.Type()) == formTable:
			Walk(key, v.Addr().Interface(), f)
		case formOf(v.Type()) == formList && formOf(v.Type().Elem()) == formTable:
			for i := range v.Len() {
				Walk(key.then(i), v.Index(i).Addr().Interface(), f)
			}
		default:
			f(Setting{key, field.tag.Get("kind"), v, field})
		}
	}
}

func newField(owner reflect.Type, sf reflect.StructField, name string) field {
	f := field{name: name, tag: sf.Tag, index: sf.Index, typ: sf.Type, owner: owner}
	f.required, f.initial = sf.Tag.Get("required") == "true", f.lookup("default")
	if name == "" || !sf.IsExported() || formOf(f.leaf()) == formUnsupported {
		f.panic("the field %s of type %s cannot be read", sf.Name, sf.Type)
	}
	if f.initial != nil && formOf(f.typ) == formPointer {
		f.panic("a pointer is nil by default")
	}
	if !slices.Contains([]string{"", "user", "place", "file", "private file", "program"}, sf.Tag.Get("kind")) {
		f.panic("the kind %q is unknown", sf.Tag.Get("kind"))
	}
	f.rules = rules{min: f.newBound("min"), max: f.newBound("max"), visible: sf.Tag.Get("visible") == "true"}
	if items, ok := f.tag.Lookup("items"); ok {
		f.items, _ = strconv.Atoi(items)
		if f.items < 1 || formOf(f.typ) != formList {
			f.panic("items=%q does not limit %s", items, f.typ)
		}
	}
	if list, ok := f.tag.Lookup("oneof"); ok {
		f.rules.oneof = strings.Split(list, "|")
	}
	return f
}

func (f *field) lookup(name string) *string {
	if text, ok := f.tag.Lookup(name); ok {
		return &text
	}
	return nil
}

func (f *field) example() *string { return f.lookup("example") }

// leaf returns the type of the single values in the file, such as that of the elements of a list.
func (f *field) leaf() reflect.Type {
	t := f.typ
	for {
		switch formOf(t) {
		case formList, formMap, formPointer:
			t = t.Elem()
		default:
			return t
		}
	}
}

func (f *field) panic(format string, args ...any) {
	panic(fmt.Sprintf("config: %s: key %s: %s", f.owner, f.name, fmt.Sprintf(format, args...)))
}

// SetText sets the field with a key, in the struct that into points to, from a text in the form of a tag: "30s", or
// "a, b" for a list. The error continues a sentence that begins with the key.
func SetText(into any, key, text string) error {
	s := structs([]any{into})[0]
	for _, f := range fieldsOf(s.Type()) {
		if f.name != key {
			continue
		}
		return f.setText(s.FieldByIndex(f.index), text)
	}
	return errors.New("is unknown")
}

func (f *field) setText(dst reflect.Value, text string) error {
	switch formOf(dst.Type()) {
	case formPointer:
		dst.Set(reflect.New(dst.Type().Elem()))
		return f.setText(dst.Elem(), text)
	case formList:
		parts := splitList(text)
		if err := f.checkLength(len(parts)); err != nil {
			return err
		}
		dst.Set(reflect.MakeSlice(dst.Type(), len(parts), len(parts)))
		for i, part := range parts {
			if err := f.setText(dst.Index(i), part); err != nil {
				return err
			}
		}
		return nil
	case formMap:
		return f.setPairs(dst, text)
	case formSecret:
		dst.Set(reflect.ValueOf(secret.New(text)))
		return nil
	}
	value, err := kindOf(dst.Type()).parse(text)
	if err != nil {
		write := strings.TrimSuffix(kindOf(dst.Type()).write, ", without quotes")
		return fmt.Errorf("is %s; write %s", Quote(txt.Clip(text, 120)), write)
	}
	return setScalar(dst, value, f)
}

// checkLength returns why a list must not have n elements.
func (f *field) checkLength(n int) error {
	if f.items == 0 || n <= f.items {
		return nil
	}
	return fmt.Errorf("has more than %d entries; keep the best", f.items)
}

func (f *field) setPairs(dst reflect.Value, text string) error {
	dst.Set(reflect.MakeMap(dst.Type()))
	for _, part := range splitList(text) {
		name, value, ok := strings.Cut(part, "=")
		if !ok {
			return errors.New("lacks a =")
		}
		item := reflect.New(dst.Type().Elem()).Elem()
		if err := f.setText(item, value); err != nil {
			return err
		}
		dst.SetMapIndex(reflect.ValueOf(name).Convert(dst.Type().Key()), item)
	}
	return nil
}

func splitList(text string) []string {
	if strings.TrimSpace(text) == "" {
		return nil
	}
	parts := strings.Split(text, ",")
	for i, part := range parts {
		parts[i] = strings.TrimSpace(part)
	}
	return parts
}

type rules struct {
	min, max *bound
	oneof    []string
	visible  bool // a text must have a visible character
}

// bound is a limit of a value, or of the length of a text.
type bound struct {
	value reflect.Value
	text  string
}

func (f *field) newBound(name string) *bound {
	text := f.lookup(name)
	if text == nil {
		return nil
	}
	t := f.leaf()
	switch {
	case formOf(t) != formScalar, readsText(t), t.Kind() == reflect.Bool:
		f.panic("%s cannot be limited by %s", t, name)
	case t.Kind() == reflect.String:
		t = reflect.TypeFor[int]()
	}
	value := reflect.New(t).Elem()
	limit, err := kindOf(t).parse(*text)
	if err != nil || assign(value, limit) != nil {
		f.panic("%s of %q is not a %s", name, *text, t)
	}
	return &bound{value, *text}
}

func (r *rules) check(v reflect.Value) error {
	measured, unit := v, ""
	if v.Kind() == reflect.String {
		measured, unit = reflect.ValueOf(utf8.RuneCountInString(v.String())), " characters"
	}
	low := r.min != nil && compare(measured, r.min.value) < 0
	high := r.max != nil && compare(measured, r.max.value) > 0
	if low || high {
		return fmt.Errorf("is %s%s; write %s%s", quoted(measured), unit, r.span(), unit)
	}
	text := fmt.Sprint(v.Interface())
	if r.visible && !txt.HasVisible(text) {
		return errors.New("has no visible character; write at least one, or take it out")
	}
	if r.oneof == nil || slices.Contains(r.oneof, text) {
		return nil
	}
	write := "one of " + strings.Join(r.choices(), ", ")
	near := Nearest(text, r.oneof)
	if near != "" {
		write = fmt.Sprintf("%q, or else %s", near, write)
	}
	return fmt.Errorf("is %s; write %s", quoted(v), write)
}

// span describes the bounds; "" if there are none.
func (r *rules) span() string {
	switch {
	case r.min != nil && r.max != nil:
		return r.min.text + " to " + r.max.text
	case r.min != nil:
		return r.min.text + " or more"
	case r.max != nil:
		return r.max.text + " or less"
	}
	return ""
}

func (r *rules) choices() []string {
	list := slices.Clone(r.oneof)
	for i := range list {
		list[i] = cmp.Or(list[i], `""`)
	}
	return list
}

func compare(a, b reflect.Value) int {
	if a.CanFloat() {
		return cmp.Compare(a.Float(), b.Float())
	}
	return cmp.Compare(a.Int(), b.Int())
}

func quoted(v reflect.Value) string {
	if v.Kind() == reflect.String {
		return Quote(txt.Clip(v.String(), 120))
	}
	return fmt.Sprint(v.Interface())
}

// shown returns a field's value in the example file, and whether it is the default (of the tag, or the zero value).
// If preferExample is set, as in an optional table, an example wins over the default.
func (f *field) shown(preferExample bool) (text string, isDefault bool) {
	example := f.example()
	switch {
	case example != nil && (preferExample || f.initial == nil):
		return literal(f.typ, *example), f.initial != nil && *f.initial == *example
	case f.initial != nil:
		return literal(f.typ, *f.initial), true
	}
	return literal(f.typ, ""), true
}

func (f *field) sample() string {
	switch formOf(f.typ) {
	case formTable, formRaw:
		return "a table [" + QuoteKey(f.name) + "]"
	}
	if formOf(f.leaf()) == formTable {
		return "a table [[" + QuoteKey(f.name) + "]]"
	}
	text, _ := f.shown(true)
	return QuoteKey(f.name) + " = " + text
}

// literal returns the text of a tag as a TOML value; for "", the zero value.
func literal(t reflect.Type, text string) string {
	switch formOf(t) {
	case formPointer:
		return literal(t.Elem(), text)
	case formList:
		parts := splitList(text)
		for i, part := range parts {
			parts[i] = literal(t.Elem(), part)
		}
		return "[" + strings.Join(parts, ", ") + "]"
	case formMap:
		parts := splitList(text)
		for i, part := range parts {
			name, value, _ := strings.Cut(part, "=")
			parts[i] = QuoteKey(name) + " = " + literal(t.Elem(), value)
		}
		return "{" + strings.Join(parts, ", ") + "}"
	}
	k := kindOf(t)
	switch {
	case text == "":
		return k.zero
	case strings.HasPrefix(k.zero, `"`):
		return Quote(text)
	}
	return text
}
