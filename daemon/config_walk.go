package daemon

import (
	"fmt"
	"reflect"
	"strings"

	"synthbot/config"
	"synthbot/core"
)

// WalkConfig calls f with each secret of a configuration in plain text, and with the
// program of each command that the bot starts (key "command").
func WalkConfig(c *Config, f func(key, text string)) {
	c.walk(func(path string, v reflect.Value) {
		key := path[strings.LastIndexByte(path, '.')+1:]
		switch value := v.Interface().(type) {
		case core.Secret:
			if !value.IsZero() {
				f(key, value.Reveal())
			}
		case map[string]core.Secret:
			for name, secret := range value {
				f(name, secret.Reveal())
			}
		case []string:
			if key == "command" && len(value) > 0 {
				f(key, value[0])
			}
		}
	})
}

// walk calls f with each setting of the configuration and of the interfaces and plugins that
// are on.
func (c *Config) walk(f func(path string, v reflect.Value)) {
	walkSettings("", reflect.ValueOf(c), f)
	for _, e := range c.Enabled {
		walkSettings("interfaces."+e.Name, reflect.ValueOf(e.Own), f)
	}
	for _, p := range c.Chosen {
		walkSettings("plugins."+p.name, reflect.ValueOf(p.Own), f)
	}
}

// walkSettings calls f with a setting, or with each setting in a table or list of tables.
func walkSettings(path string, v reflect.Value, f func(path string, v reflect.Value)) {
	_, table := v.Interface().(map[string]config.Table) // walk visits interfaces and plugins
	_, prints := v.Interface().(fmt.Stringer)
	switch {
	case table, v.Kind() == reflect.Pointer && v.IsNil():
	case v.Kind() == reflect.Pointer && !prints:
		walkSettings(path, v.Elem(), f)
	case v.Kind() == reflect.Struct && !prints:
		walkFields(path, v, f)
	case v.Kind() == reflect.Slice && isTable(v.Type().Elem()):
		for i := range v.Len() {
			walkSettings(fmt.Sprintf("%s[%d]", path, i), v.Index(i), f)
		}
	default:
		f(path, v)
	}
}

func walkFields(path string, v reflect.Value, f func(path string, v reflect.Value)) {
	for i := range v.NumField() {
		field := v.Type().Field(i)
		name, tagged := field.Tag.Lookup("toml")
		switch {
		case !field.IsExported() || name == "-":
		case field.Anonymous && !tagged:
			walkFields(path, v.Field(i), f)
		case tagged:
			walkSettings(strings.TrimPrefix(path+"."+name, "."), v.Field(i), f)
		}
	}
}

// isTable reports whether a type is a struct that is not one value.
func isTable(t reflect.Type) bool {
	return t.Kind() == reflect.Struct && !t.Implements(reflect.TypeFor[fmt.Stringer]())
}
