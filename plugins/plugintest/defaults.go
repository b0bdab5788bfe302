package plugintest

import (
	"reflect"
	"testing"

	"synthbot/config"
)

// Defaults returns a Config with the defaults of its tags in those fields that are zero.
func Defaults[C any](t testing.TB, c C) C {
	t.Helper()
	var usual C
	if err := config.Read("defaults.toml", nil, &usual, config.Options{}); err != nil {
		t.Fatal(err)
	}
	into, from := reflect.ValueOf(&c).Elem(), reflect.ValueOf(&usual).Elem()
	for i := range into.NumField() {
		if into.Field(i).IsZero() {
			into.Field(i).Set(from.Field(i))
		}
	}
	return c
}
