package main

import (
	"reflect"

	"synthbot/core"
)

// walkConfig calls f with each secret of a configuration, as it reveals itself, and
// with the program of each command that it starts (key "command").
func walkConfig(c *Config, f func(key, text string)) {
	walk(reflect.ValueOf(c).Elem(), "", f)
	for _, table := range c.tables() {
		walk(reflect.ValueOf(table), "", f)
	}
}

// tables are the structs of the interfaces and plugins that are on.
func (c *Config) tables() (all []any) {
	for i := range c.enabled {
		all = append(all, c.enabled[i].own)
	}
	for i := range c.chosen {
		all = append(all, c.chosen[i].own)
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
			if name, tagged := v.Type().Field(i).Tag.Lookup("toml"); v.Type().Field(i).IsExported() && (tagged || v.Type().Field(i).Anonymous) {
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
