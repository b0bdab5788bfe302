package config

import (
	"encoding"
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

// reader converts a document into Go values and collects faults.
type reader struct {
	doc        *Document
	references bool // secrets stay unresolved
	partial    bool // another reader decodes the rest of the table
}

// Defaults fills the structs that into points to as an empty file would. Only fields with a default change.
func Defaults(into ...any) {
	d := &Document{broken: true}
	d.root = &node{doc: d}
	reader{doc: d, partial: true}.table(d.root, structs(into))
}

// DefaultsLike returns a new struct of the type that given points to, with the default of each field. Its lists of
// tables have as many elements as the given ones.
func DefaultsLike(given any) any {
	into := reflect.New(reflect.TypeOf(given).Elem())
	Defaults(into.Interface())
	addTables(into.Elem(), reflect.ValueOf(given).Elem())
	return into.Interface()
}

// addTables makes the lists of tables in a struct as long as those of another one.
func addTables(into, given reflect.Value) {
	for _, f := range fieldsOf(into.Type()) {
		dst, src := into.FieldByIndex(f.index), given.FieldByIndex(f.index)
		form := formOf(dst.Type())
		switch {
		case form == formTable:
			addTables(dst, src)
		case form == formList && formOf(dst.Type().Elem()) == formTable:
			dst.Set(reflect.MakeSlice(dst.Type(), src.Len(), src.Len()))
			for i := range src.Len() {
				dst.Index(i).Set(reflect.ValueOf(DefaultsLike(src.Index(i).Addr().Interface())).Elem())
			}
		}
	}
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
	for _, s := range into {
		checker, ok := s.Addr().Interface().(interface {
			Check(fault func(text string, at ...any))
		})
		if ok {
			checker.Check(func(text string, steps ...any) { at.walk(steps).fault(text) })
		}
	}
	r.doc.checkFaults += r.doc.faultCount - before
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
		wrong := setScalar(dst, at.value, f)
		if wrong != "" {
			at.fault(wrong)
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
	wrong := f.tooMany(len(items))
	if wrong != "" {
		at.fault(wrong)
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

// setScalar sets dst to a TOML value and checks the field's rules. It returns the problem and the fix, or "".
func setScalar(dst reflect.Value, value any, f *field) string {
	wrong := assign(dst, value)
	if wrong == "" {
		wrong = f.rules.check(dst)
	}
	return wrong
}

func assign(dst reflect.Value, value any) string {
	switch {
	case dst.Type() == typeDuration:
		return assignDuration(dst, value)
	case readsText(dst.Type()):
		return assignText(dst, value)
	}
	switch dst.Kind() {
	case reflect.String:
		if text, ok := value.(string); ok {
			dst.SetString(text)
			return ""
		}
	case reflect.Bool:
		if b, ok := value.(bool); ok {
			dst.SetBool(b)
			return ""
		}
	case reflect.Float64:
		return assignFloat(dst, value)
	default:
		return assignInt(dst, value)
	}
	return wrongType(dst.Type(), value)
}

func assignInt(dst reflect.Value, value any) string {
	n, ok := value.(int64)
	switch {
	case !ok:
		return wrongType(dst.Type(), value)
	case dst.OverflowInt(n):
		most := int64(1)<<(dst.Type().Bits()-1) - 1
		return fmt.Sprintf("is %d; write %d to %d", n, -most-1, most)
	}
	dst.SetInt(n)
	return ""
}

func assignFloat(dst reflect.Value, value any) string {
	switch n := value.(type) {
	case int64:
		dst.SetFloat(float64(n))
	case float64:
		if math.IsNaN(n) || math.IsInf(n, 0) {
			return "is not a finite number; write " + kindOf(dst.Type()).write
		}
		dst.SetFloat(n)
	default:
		return wrongType(dst.Type(), value)
	}
	return ""
}

func assignDuration(dst reflect.Value, value any) string {
	text, ok := value.(string)
	if !ok {
		return wrongType(dst.Type(), value)
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		return fmt.Sprintf(`is %s; write a duration such as "90s", "15m" or "1h30m"`, Quote(txt.Clip(text, 120)))
	}
	dst.SetInt(int64(d))
	return ""
}

func assignText(dst reflect.Value, value any) string {
	text, ok := textOf(value)
	if !ok {
		return wrongType(dst.Type(), value)
	}
	into := reflect.New(dst.Type())
	if err := into.Interface().(encoding.TextUnmarshaler).UnmarshalText([]byte(text)); err != nil {
		if dst.Type() == typeLevel {
			return "is " + Quote(txt.Clip(text, 120)) + "; write DEBUG, INFO, WARN or ERROR"
		}
		return txt.Clip(txt.Line(err.Error()), 120)
	}
	dst.Set(into.Elem())
	return ""
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
func wrongType(t reflect.Type, value any) string {
	return "is " + typeOf(value) + "; write " + kindOf(t).write
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
