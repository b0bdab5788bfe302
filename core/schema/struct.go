package schema

import (
	"cmp"
	"encoding"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"synthbot/core"
)

var (
	timeType     = reflect.TypeFor[time.Time]()
	durationType = reflect.TypeFor[time.Duration]()
	rawType      = reflect.TypeFor[json.RawMessage]()
	textType     = reflect.TypeFor[encoding.TextUnmarshaler]()
)

// OfType returns the schema of all values of a type.
func OfType(name string) Object { return Object{}.With("type", name) }

// Of derives the schema of P from its fields and their tags, as described at Typed in package action. It panics if
// JSON Schema cannot describe the type.
func Of[P any]() json.RawMessage { return core.JSON(schemaOf(reflect.TypeFor[P](), nil)) }

// schemaOf derives the schema of a type. parents holds the structs around it.
func schemaOf(t reflect.Type, parents []reflect.Type) Object {
	switch {
	case t == timeType:
		return OfType("string").With("format", "date-time")
	case t == durationType:
		panic("time.Duration has no JSON form; use a string or a number")
	case t == rawType || t.Kind() == reflect.Interface:
		return Object{}
	case reflect.PointerTo(t).Implements(textType):
		return OfType("string")
	}
	switch t.Kind() {
	case reflect.Pointer:
		return schemaOf(t.Elem(), parents)
	case reflect.String:
		return OfType("string")
	case reflect.Bool:
		return OfType("boolean")
	case reflect.Int, reflect.Int64:
		return OfType("integer")
	case reflect.Int8, reflect.Int16, reflect.Int32: // bounds refuse values that would overflow
		return OfType("integer").With("minimum", -1<<(t.Bits()-1)).With("maximum", 1<<(t.Bits()-1)-1)
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32:
		return OfType("integer").With("minimum", 0).With("maximum", 1<<t.Bits()-1)
	case reflect.Float32, reflect.Float64:
		return OfType("number")
	case reflect.Slice:
		return OfType("array").With("items", schemaOf(t.Elem(), parents))
	case reflect.Map:
		if t.Key().Kind() == reflect.String {
			return OfType("object").With("additionalProperties", schemaOf(t.Elem(), parents))
		}
	case reflect.Struct:
		return structOf(t, parents)
	}
	panic(fmt.Sprintf("%s cannot be the type of a payload", t))
}

func structOf(t reflect.Type, parents []reflect.Type) Object {
	if slices.Contains(parents, t) {
		panic(fmt.Sprintf("%s holds itself", t))
	}
	var properties Object
	var required []string
	title := ""
	for _, f := range reflect.VisibleFields(t) {
		if f.Name == "_" {
			title = f.Tag.Get("title")
		}
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if !f.IsExported() || f.Anonymous || name == "-" {
			continue
		}
		name = cmp.Or(name, f.Name)
		properties = properties.With(name, fieldOf(f, append(parents, t)))
		_, has := f.Tag.Lookup("default")
		if !has && !strings.Contains(options, "omit") {
			required = append(required, name)
		}
	}
	s := ClosedObject(properties, false, required...)
	if title != "" {
		s = slices.Insert(s, 1, Member{"title", encode(title)}) // after the type
	}
	return s
}

// fieldOf returns the schema of a field's type with the keywords of its tags.
func fieldOf(f reflect.StructField, parents []reflect.Type) Object {
	s := schemaOf(f.Type, parents)
	base := f.Type
	for base.Kind() == reflect.Pointer {
		base = base.Elem()
	}
	for _, keyword := range [][2]string{{"title", "title"}, {"doc", "description"}, {"format", "format"}} {
		v := f.Tag.Get(keyword[0])
		if v != "" {
			s = s.With(keyword[1], v)
		}
	}
	v := f.Tag.Get("oneof")
	if v != "" {
		var values []json.RawMessage
		for one := range strings.SplitSeq(v, "|") {
			values = append(values, literal(base, one))
		}
		s = s.With("enum", values)
	}
	if v, ok := f.Tag.Lookup("default"); ok {
		s = s.With("default", literal(base, v))
	}
	for _, bound := range []string{"min", "max"} {
		v := f.Tag.Get(bound)
		if v != "" {
			if _, err := strconv.ParseFloat(v, 64); err != nil {
				panic(err)
			}
			s = s.With(bound+cmp.Or(boundSuffixes[base.Kind()], "imum"), json.Number(v))
		}
	}
	return s
}

// boundSuffixes complete the keywords min… and max… for a kind. For numbers they are minimum and maximum.
var boundSuffixes = map[reflect.Kind]string{
	reflect.String: "Length", reflect.Slice: "Items", reflect.Map: "Properties",
}

// literal returns a tag's value as JSON: a string if t is one or v is not JSON, else v itself.
func literal(t reflect.Type, v string) json.RawMessage {
	if t.Kind() == reflect.String || !json.Valid([]byte(v)) {
		return core.JSON(v)
	}
	return json.RawMessage(v)
}
