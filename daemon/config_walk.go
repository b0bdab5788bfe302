package daemon

import (
	"reflect"

	"synthbot/core"
)

// WalkConfig calls f with each secret of a configuration in plain text, and with the
// program of each command that the bot starts (key "command").
func WalkConfig(c *Config, f func(key, text string)) {
	walk(reflect.ValueOf(c).Elem(), "", f)
	for _, table := range c.ComponentTables() {
		walk(reflect.ValueOf(table), "", f)
	}
}

// ComponentTables returns the structs of the interfaces and plugins that are on.
func (c *Config) ComponentTables() (all []any) {
	for i := range c.Enabled {
		all = append(all, c.Enabled[i].own)
	}
	for i := range c.Chosen {
		all = append(all, c.Chosen[i].Own)
	}
	return all
}

func walk(v reflect.Value, key string, f func(key, text string)) {
	if s, ok := secretOf(v); ok {
		if !s.IsZero() {
			f(key, s.Reveal())
		}
		return
	}
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			walk(v.Elem(), key, f)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			field := v.Type().Field(i)
			name, tagged := field.Tag.Lookup("toml")
			if field.IsExported() && (tagged || field.Anonymous) {
				walk(v.Field(i), name, f)
			}
		}
	case reflect.Map:
		for _, k := range v.MapKeys() {
			walk(v.MapIndex(k), k.String(), f)
		}
	case reflect.Slice:
		if words, ok := v.Interface().([]string); ok && key == "command" && len(words) > 0 {
			f(key, words[0])
			return
		}
		for i := range v.Len() {
			walk(v.Index(i), key, f)
		}
	}
}

func secretOf(v reflect.Value) (core.Secret, bool) {
	if !v.IsValid() || v.Type() != reflect.TypeFor[core.Secret]() || !v.CanInterface() {
		return core.Secret{}, false
	}
	s, ok := v.Interface().(core.Secret)
	return s, ok
}
