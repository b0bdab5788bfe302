package action

import (
	"cmp"
	"context"
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

// Typed completes an action whose payload is the Go struct P: its schema is derived from P,
// and Do gets the payload decoded.
//
// A field is a property under its json name. It is required unless the json tag
// says omitempty or omitzero or the field has a default. Further tags:
//
//	doc:"one line for the model"   title:"what people call it"
//	default:"normal"               oneof:"low|normal|high"
//	min:"1" max:"9"                of a number; of a string or a list its length
//	format:"date"                  of a string
//
// Types are strings, booleans, numbers, time.Time, what unmarshals from text,
// json.RawMessage and any (anything), pointers, slices, maps by string, and
// structs of these that do not hold themselves. Typed panics on any other type:
// it is called with types of the program, never with what comes from outside.
func Typed[P any](a core.Action, do func(context.Context, core.Call, P) (core.Result, error)) core.Action {
	a.Schema = core.JSON(schemaOf(reflect.TypeFor[P](), nil))
	a.Do = func(ctx context.Context, c core.Call) (core.Result, error) {
		p, err := Payload[P](c)
		if err != nil {
			return core.Result{}, err
		}
		return do(ctx, c, p)
	}
	return a
}

// Payload decodes a validated payload, for Check and Undo of a Typed action.
func Payload[P any](c core.Call) (p P, err error) {
	if err := json.Unmarshal(c.Payload, &p); err != nil {
		return p, &core.Error{Kind: core.Invalid, Text: "the payload cannot be read", Err: err}
	}
	return p, nil
}

var (
	timeType     = reflect.TypeFor[time.Time]()
	durationType = reflect.TypeFor[time.Duration]()
	rawType      = reflect.TypeFor[json.RawMessage]()
	textType     = reflect.TypeFor[encoding.TextUnmarshaler]()
)

func typed(name string) object { return object{}.with("type", name) }

// schemaOf derives the schema of a type. way holds the structs around it.
func schemaOf(t reflect.Type, way []reflect.Type) object {
	switch {
	case t == timeType:
		return typed("string").with("format", "date-time")
	case t == durationType:
		panic("time.Duration has no JSON form; use a string or a number")
	case t == rawType || t.Kind() == reflect.Interface:
		return object{}
	case reflect.PointerTo(t).Implements(textType):
		return typed("string")
	}
	switch t.Kind() {
	case reflect.Pointer:
		return schemaOf(t.Elem(), way)
	case reflect.String:
		return typed("string")
	case reflect.Bool:
		return typed("boolean")
	case reflect.Int, reflect.Int64:
		return typed("integer")
	case reflect.Int8, reflect.Int16, reflect.Int32: // bounds keep out what the field could not hold
		return typed("integer").with("minimum", -1<<(t.Bits()-1)).with("maximum", 1<<(t.Bits()-1)-1)
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32:
		return typed("integer").with("minimum", 0).with("maximum", 1<<t.Bits()-1)
	case reflect.Float32, reflect.Float64:
		return typed("number")
	case reflect.Slice:
		return typed("array").with("items", schemaOf(t.Elem(), way))
	case reflect.Map:
		if t.Key().Kind() == reflect.String {
			return typed("object").with("additionalProperties", schemaOf(t.Elem(), way))
		}
	case reflect.Struct:
		return structOf(t, way)
	}
	panic(fmt.Sprintf("%s cannot be the type of a payload", t))
}

func structOf(t reflect.Type, way []reflect.Type) object {
	if slices.Contains(way, t) {
		panic(fmt.Sprintf("%s holds itself", t))
	}
	var properties object
	var required []string
	for _, f := range reflect.VisibleFields(t) {
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if !f.IsExported() || f.Anonymous || name == "-" {
			continue
		}
		name = cmp.Or(name, f.Name)
		properties = properties.with(name, fieldOf(f, append(way, t)))
		_, has := f.Tag.Lookup("default")
		if !has && !strings.Contains(options, "omit") {
			required = append(required, name)
		}
	}
	s := typed("object").with("properties", properties)
	if required != nil {
		s = s.with("required", required)
	}
	return s.with("additionalProperties", false)
}

// fieldOf is the schema of a field's type, with what its tags add.
func fieldOf(f reflect.StructField, way []reflect.Type) object {
	s := schemaOf(f.Type, way)
	base := f.Type
	for base.Kind() == reflect.Pointer {
		base = base.Elem()
	}
	for _, keyword := range [][2]string{{"title", "title"}, {"doc", "description"}, {"format", "format"}} {
		v := f.Tag.Get(keyword[0])
		if v != "" {
			s = s.with(keyword[1], v)
		}
	}
	v := f.Tag.Get("oneof")
	if v != "" {
		var values []json.RawMessage
		for one := range strings.SplitSeq(v, "|") {
			values = append(values, literal(base, one))
		}
		s = s.with("enum", values)
	}
	if v, ok := f.Tag.Lookup("default"); ok {
		s = s.with("default", literal(base, v))
	}
	for _, bound := range []string{"min", "max"} {
		v := f.Tag.Get(bound)
		if v != "" {
			if _, err := strconv.ParseFloat(v, 64); err != nil {
				panic(err)
			}
			s = s.with(bound+cmp.Or(boundSuffixes[base.Kind()], "imum"), json.Number(v))
		}
	}
	return s
}

// boundSuffixes end the keywords that bound a type; others are numbers.
var boundSuffixes = map[reflect.Kind]string{
	reflect.String: "Length", reflect.Slice: "Items", reflect.Map: "Properties",
}

// literal is a tag's value as JSON: a string for what is one, else as written.
func literal(t reflect.Type, v string) json.RawMessage {
	if t.Kind() == reflect.String || !json.Valid([]byte(v)) {
		return core.JSON(v)
	}
	return json.RawMessage(v)
}
