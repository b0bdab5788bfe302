package config

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"unicode/utf8"

	"synthbot/core/txt"
)

type rules struct {
	min, max *bound
	oneof    []string
}

// bound is a limit, in the type of the value; for text, it limits the length.
type bound struct {
	value reflect.Value
	text  string
}

func (f *field) newBound(tag reflect.StructTag, name string) *bound {
	text, ok := tag.Lookup(name)
	if !ok {
		return nil
	}
	t := f.leaf()
	switch {
	case formOf(t) != formScalar, t != typeDuration && readsText(t), t.Kind() == reflect.Bool:
		f.panic("%s cannot be limited by %s", t, name)
	case t.Kind() == reflect.String:
		t = reflect.TypeFor[int]()
	}
	value := reflect.New(t).Elem()
	limit, err := kindOf(t).parse(text)
	if err != nil || assign(value, limit) != "" {
		f.panic("%s of %q is not a %s", name, text, t)
	}
	return &bound{value, text}
}

// check returns the problem of a value and the fix, or "".
func (r *rules) check(v reflect.Value) string {
	measured, unit := v, ""
	if v.Kind() == reflect.String {
		measured, unit = reflect.ValueOf(utf8.RuneCountInString(v.String())), " characters"
	}
	low := r.min != nil && compare(measured, r.min.value) < 0
	high := r.max != nil && compare(measured, r.max.value) > 0
	if low || high {
		return fmt.Sprintf("is %s%s; write %s%s", show(measured), unit, r.span(), unit)
	}
	text := fmt.Sprint(v.Interface())
	if r.oneof == nil || slices.Contains(r.oneof, text) {
		return ""
	}
	write := "one of " + strings.Join(r.choices(), ", ")
	near := Nearest(text, r.oneof)
	if near != "" {
		write = fmt.Sprintf("%q, or else %s", near, write)
	}
	return fmt.Sprintf("is %s; write %s", show(v), write)
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

// choices returns the allowed values as users read them.
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

// show prints a value for users.
func show(v reflect.Value) string {
	if v.Kind() == reflect.String {
		return Quote(txt.Clip(v.String(), 120))
	}
	return fmt.Sprint(v.Interface())
}
