package action

import (
	"context"
	"encoding"
	"encoding/json"
	"errors"
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
	s, err := schemaOf(reflect.TypeFor[P](), nil)
	if err != nil {
		panic(fmt.Errorf("action %s: %w", a.Name, err))
	}
	a.Schema = s.encode()
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

func typed(name string) object { return object{{"type", encode(name)}} }

// schemaOf derives the schema of a type. way holds the structs around it.
func schemaOf(t reflect.Type, way []reflect.Type) (object, error) {
	switch {
	case t == timeType:
		return append(typed("string"), member{"format", encode("date-time")}), nil
	case t == durationType:
		return nil, errors.New("time.Duration has no JSON form; use a string or a number")
	case t == rawType || t.Kind() == reflect.Interface:
		return object{}, nil
	case reflect.PointerTo(t).Implements(textType):
		return typed("string"), nil
	}
	switch t.Kind() {
	case reflect.Pointer:
		return schemaOf(t.Elem(), way)
	case reflect.String:
		return typed("string"), nil
	case reflect.Bool:
		return typed("boolean"), nil
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return boundedInteger(t, -1<<(t.Bits()-1), 1<<(t.Bits()-1)-1), nil
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32:
		return boundedInteger(t, 0, 1<<t.Bits()-1), nil
	case reflect.Float32, reflect.Float64:
		return typed("number"), nil
	case reflect.Slice:
		return nested("array", "items", t.Elem(), way)
	case reflect.Map:
		if t.Key().Kind() == reflect.String {
			return nested("object", "additionalProperties", t.Elem(), way)
		}
	case reflect.Struct:
		return structOf(t, way)
	}
	return nil, fmt.Errorf("%s cannot be the type of a payload", t)
}

// boundedInteger keeps numbers out that the field could not hold.
func boundedInteger(t reflect.Type, least, most int64) object {
	s := typed("integer")
	if t.Kind() == reflect.Int || t.Kind() == reflect.Int64 {
		return s
	}
	return append(s, member{"minimum", encode(least)}, member{"maximum", encode(most)})
}

func nested(name, keyword string, t reflect.Type, way []reflect.Type) (object, error) {
	s, err := schemaOf(t, way)
	if err != nil {
		return nil, err
	}
	return append(typed(name), member{keyword, s.encode()}), nil
}

func structOf(t reflect.Type, way []reflect.Type) (object, error) {
	if slices.Contains(way, t) {
		return nil, fmt.Errorf("%s holds itself", t)
	}
	var properties object
	required := []string{}
	for _, f := range reflect.VisibleFields(t) {
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if !f.IsExported() || f.Anonymous || name == "-" {
			continue
		}
		if name == "" {
			name = f.Name
		}
		s, err := fieldOf(f, append(way, t))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		properties = append(properties, member{name, s.encode()})
		_, has := f.Tag.Lookup("default")
		if !has && !strings.Contains(options, "omit") {
			required = append(required, name)
		}
	}
	s := append(typed("object"), member{"properties", properties.encode()})
	if len(required) > 0 {
		s = append(s, member{"required", encode(required)})
	}
	return append(s, member{"additionalProperties", json.RawMessage("false")}), nil
}

// fieldOf is the schema of a field's type, with what its tags add.
func fieldOf(f reflect.StructField, way []reflect.Type) (object, error) {
	s, err := schemaOf(f.Type, way)
	if err != nil {
		return nil, err
	}
	base := f.Type
	for base.Kind() == reflect.Pointer {
		base = base.Elem()
	}
	for _, keyword := range []string{"title", "description", "format"} {
		v := f.Tag.Get(strings.Replace(keyword, "description", "doc", 1))
		if v != "" {
			s = append(s, member{keyword, encode(v)})
		}
	}
	v := f.Tag.Get("oneof")
	if v != "" {
		var values []json.RawMessage
		for one := range strings.SplitSeq(v, "|") {
			values = append(values, literal(base, one))
		}
		s = append(s, member{"enum", encode(values)})
	}
	if v, ok := f.Tag.Lookup("default"); ok {
		s = append(s, member{"default", literal(base, v)})
	}
	for _, bound := range []string{"min", "max"} {
		v := f.Tag.Get(bound)
		if v != "" {
			if _, err := strconv.ParseFloat(v, 64); err != nil {
				return nil, fmt.Errorf("%s: %w", bound, err)
			}
			s = s.set(boundOf(base, bound), json.RawMessage(v))
		}
	}
	return s, nil
}

// set replaces the member with that key, or adds it.
func (o object) set(key string, value json.RawMessage) object {
	i := slices.IndexFunc(o, func(m member) bool { return m.key == key })
	if i < 0 {
		return append(o, member{key, value})
	}
	o[i].value = value
	return o
}

// boundOf is the keyword that bounds a type.
func boundOf(t reflect.Type, bound string) string {
	switch t.Kind() {
	case reflect.String:
		return bound + "Length"
	case reflect.Slice:
		return bound + "Items"
	case reflect.Map:
		return bound + "Properties"
	}
	return bound + "imum"
}

// literal is a tag's value as JSON: a string for what is one, else as written.
func literal(t reflect.Type, v string) json.RawMessage {
	if t.Kind() == reflect.String || !json.Valid([]byte(v)) {
		return encode(v)
	}
	return json.RawMessage(v)
}
