package daemon

import (
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
	config.Walk("", &c.Tables, f)
	for _, e := range c.Enabled {
		config.Walk("interfaces."+e.Name, e.Own, f)
	}
	for _, p := range c.Chosen {
		config.Walk("plugins."+p.name, p.Own, f)
	}
}
