package config

import (
	"encoding"
	"errors"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pelletier/go-toml/v2"

	"synthbot/core/txt"
)

type reader struct {
	doc        *Document
	references bool // secrets stay unresolved
	partial    bool // another reader decodes the rest of the table
}

// Defaults fills the structs that into points to as an empty file would. Only fields with a default change.
func Defaults(into ...any) {
	d := newDocument("", Options{})
	d.broken = true
	d.Peek(into...)
}

// table reads one table into structs that share it.
func (r reader) table(at *node, into []reflect.Value) {
	before := r.doc.faultCount - r.doc.checkFaults
	var known []string
	moved := make(map[string]string)
	for _, s := range into {
		for _, f := range fieldsOf(s.Type()) {
			known = append(known, f.name)
			r.field(at.key(f.name), &f, s.FieldByIndex(f.index))
		}
		if m, ok := s.Addr().Interface().(interface{ Moved() map[string]string }); ok {
			maps.Copy(moved, m.Moved())
		}
	}
	if r.partial {
		return
	}
	r.addUnknownKeys(at, "", known, moved)
	if r.doc.faultCount-r.doc.checkFaults > before || r.doc.broken {
		return
	}
	before = r.doc.faultCount
	check(at, into)
	r.doc.checkFaults += r.doc.faultCount - before
}

// check calls the methods Check of structs that were read from a table.
func check(at *node, into []reflect.Value) {
	for _, s := range into {
		checker, ok := s.Addr().Interface().(interface {
			Check(fault func(text string, at ...any))
		})
		if ok {
			checker.Check(func(text string, steps ...any) { at.walk(steps).fault(text) })
		}
	}
}

// addUnknownKeys adds a fault for each key that no struct has. moved maps former keys, dotted if they were in an inner
// table, to the present ones. prefix is the inner table's name and a dot; "" at the top.
func (r reader) addUnknownKeys(at *node, prefix string, known []string, moved map[string]string) {
	table, _ := at.value.(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(table)) {
		if slices.Contains(known, name) {
			continue
		}
		next, to := at.key(name), moved[prefix+name]
		inner, _ := next.value.(map[string]any)
		switch {
		case r.doc.faultCount >= maxFaults: // only counts
			next.fault("")
		case to != "" && len(inner) > 0:
			r.addUnknownKeys(next, prefix+name+".", nil, moved)
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
func (r reader) field(at *node, f *field, dst reflect.Value) {
	if f.initial != nil {
		f.setText(dst, *f.initial)
	}
	before := r.doc.faultCount
	switch {
	case at.value != nil:
		r.value(at, f, dst)
	case formOf(dst.Type()) == formTable:
		r.table(at, []reflect.Value{dst})
	}
	absent := r.references && formOf(dst.Type()) == formSecret
	if !f.required || absent || r.doc.broken || before < r.doc.faultCount {
		return
	}
	switch {
	case at.value == nil && f.initial == nil:
		at.fault("is missing; write " + f.sample())
	case isEmpty(dst):
		at.fault("is empty; write " + f.sample())
	}
}

// isEmpty reports whether a value is empty. Numbers and booleans never are.
func isEmpty(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.String, reflect.Slice, reflect.Map:
		return v.Len() == 0
	case reflect.Struct:
		return formOf(v.Type()) != formTable && v.IsZero()
	case reflect.Pointer:
		return v.IsNil() || isEmpty(v.Elem())
	}
	return false
}

func (r reader) value(at *node, f *field, dst reflect.Value) {
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
		r.mapValue(at, f, dst)
	default:
		if err := setScalar(dst, at.value, f); err != nil {
			at.fault(err.Error())
		}
	}
}

// isTable reports whether the value is a table; if not, it adds a fault.
func (s *node) isTable() bool {
	if _, ok := s.value.(map[string]any); ok {
		return true
	}
	s.fault("is " + typeOf(s.value) + "; write it as a table of keys")
	return false
}

func (r reader) list(at *node, f *field, dst reflect.Value) {
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
	if err := f.checkLength(len(items)); err != nil {
		at.fault(err.Error())
	}
	list := reflect.MakeSlice(dst.Type(), len(items), len(items))
	for i := range items {
		r.value(at.item(i), f, list.Index(i))
	}
	dst.Set(list)
}

func (r reader) mapValue(at *node, f *field, dst reflect.Value) {
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

// kind describes how a scalar or a secret is written.
type kind struct {
	write string // what to write, for faults
	zero  string // the literal of the zero value
	// parse converts a tag's text to a value as the TOML library decodes it.
	parse func(text string) (any, error)
}

func kindOf(t reflect.Type) kind {
	text := func(text string) (any, error) { return text, nil }
	switch {
	case t == typeDuration:
		return kind{`a duration in quotes, such as "30s"`, `"0s"`, text}
	case t == typeSecret:
		return kind{`"env:NAME", "file:PATH" or the secret itself, in quotes`, `""`, text}
	case readsText(t), t.Kind() == reflect.String:
		return kind{"text in quotes", `""`, text}
	case t.Kind() == reflect.Bool:
		parse := func(text string) (any, error) { return strconv.ParseBool(text) }
		return kind{"true or false, without quotes", "false", parse}
	case t.Kind() == reflect.Float64:
		parse := func(text string) (any, error) { return strconv.ParseFloat(text, 64) }
		return kind{"a number, without quotes", "0", parse}
	}
	parse := func(text string) (any, error) { return strconv.ParseInt(text, 0, 64) }
	return kind{"a whole number, without quotes", "0", parse}
}

// setScalar sets dst to a TOML value and checks the field's rules. The error is the problem and the fix.
func setScalar(dst reflect.Value, value any, f *field) error {
	if err := assign(dst, value); err != nil {
		return err
	}
	return f.rules.check(dst)
}

func assign(dst reflect.Value, value any) error {
	switch {
	case readsText(dst.Type()):
		if text, ok := textOf(value); ok {
			return assignText(dst, text)
		}
	case dst.Type() == typeDuration:
		if text, ok := value.(string); ok {
			return assignDuration(dst, text)
		}
	case dst.Kind() == reflect.String:
		if text, ok := value.(string); ok {
			dst.SetString(text)
			return nil
		}
	case dst.Kind() == reflect.Bool:
		if b, ok := value.(bool); ok {
			dst.SetBool(b)
			return nil
		}
	case dst.CanFloat():
		switch n := value.(type) {
		case int64:
			dst.SetFloat(float64(n))
			return nil
		case float64:
			return assignFloat(dst, n)
		}
	default:
		if n, ok := value.(int64); ok {
			return assignInt(dst, n)
		}
	}
	return wrongType(dst.Type(), value)
}

func assignInt(dst reflect.Value, n int64) error {
	if dst.OverflowInt(n) {
		most := int64(1)<<(dst.Type().Bits()-1) - 1
		return fmt.Errorf("is %d; write %d to %d", n, -most-1, most)
	}
	dst.SetInt(n)
	return nil
}

func assignFloat(dst reflect.Value, n float64) error {
	if math.IsNaN(n) || math.IsInf(n, 0) {
		return errors.New("is not a finite number; write " + kindOf(dst.Type()).write)
	}
	dst.SetFloat(n)
	return nil
}

func assignDuration(dst reflect.Value, text string) error {
	d, err := time.ParseDuration(text)
	if err != nil {
		return fmt.Errorf(`is %s; write a duration such as "90s", "15m" or "1h30m"`, Quote(txt.Clip(text, 120)))
	}
	dst.SetInt(int64(d))
	return nil
}

func assignText(dst reflect.Value, text string) error {
	into := reflect.New(dst.Type()) // dst stays as it is if the text is invalid
	err := into.Interface().(encoding.TextUnmarshaler).UnmarshalText([]byte(text))
	switch {
	case err == nil:
		dst.Set(into.Elem())
		return nil
	case dst.Type() == typeLevel:
		return fmt.Errorf("is %s; write DEBUG, INFO, WARN or ERROR", Quote(txt.Clip(text, 120)))
	}
	return errors.New(txt.ClipLine(err.Error(), 120))
}

func textOf(value any) (text string, ok bool) {
	switch v := value.(type) {
	case string:
		return v, true
	case time.Time:
		return v.Format(time.RFC3339Nano), true
	case toml.LocalDate, toml.LocalTime, toml.LocalDateTime:
		return fmt.Sprint(v), true
	}
	return "", false
}

// wrongType returns the fault of a value with the wrong type, without the value.
func wrongType(t reflect.Type, value any) error {
	return fmt.Errorf("is %s; write %s", typeOf(value), kindOf(t).write)
}

func typeOf(value any) string {
	switch value.(type) {
	case string:
		return "text"
	case bool:
		return "true or false"
	case int64:
		return "a whole number"
	case float64:
		return "a number with a fraction"
	case []any:
		return "a list"
	case map[string]any:
		return "a table"
	}
	return "a date or time"
}
