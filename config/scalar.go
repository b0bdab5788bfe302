package config

import (
	"encoding"
	"fmt"
	"math"
	"reflect"
	"strconv"
	"time"

	"github.com/pelletier/go-toml/v2"

	"synthbot/core"
	"synthbot/core/txt"
)

// kind describes how a scalar or a secret is written.
type kind struct {
	word  string // in the reference
	write string // in faults
	zero  string // the literal of the zero value
	// parse converts a tag's text to the TOML value that a file would hold.
	parse func(text string) (any, error)
}

func kindOf(t reflect.Type) kind {
	text := func(text string) (any, error) { return text, nil }
	switch {
	case t == typeDuration:
		return kind{"duration", `a duration in quotes, such as "30s"`, `"0s"`, text}
	case t == typeSecret:
		return kind{"secret", `"env:NAME", "file:PATH" or the secret itself, in quotes`, `""`, text}
	case t == reflect.TypeFor[core.Path]():
		return kind{"path", "text in quotes", `""`, text}
	case readsText(t), t.Kind() == reflect.String:
		return kind{"text", "text in quotes", `""`, text}
	case t.Kind() == reflect.Bool:
		parse := func(text string) (any, error) { return strconv.ParseBool(text) }
		return kind{"true or false", "true or false, without quotes", "false", parse}
	case t.Kind() == reflect.Float64:
		parse := func(text string) (any, error) { return strconv.ParseFloat(text, 64) }
		return kind{"number", "a number, without quotes", "0", parse}
	}
	parse := func(text string) (any, error) { return strconv.ParseInt(text, 0, 64) }
	return kind{"whole number", "a whole number, without quotes", "0", parse}
}

// scalar sets dst to a TOML value and checks the field's rules. It returns the
// problem and the fix, or "".
func scalar(dst reflect.Value, value any, f *field) string {
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
			return "is not a finite number"
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

// textOf returns the text of a TOML string or date.
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

// wrongType reports a value of the wrong type, without the value.
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
