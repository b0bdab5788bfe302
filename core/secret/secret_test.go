package secret

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"reflect"
	"strings"
	"testing"
)

func TestSecretDoesNotShow(t *testing.T) {
	const value = "sk-do-not-tell"
	type deep struct{ hidden Secret }
	s := New(value)
	var log bytes.Buffer
	slog.New(slog.NewTextHandler(&log, nil)).Info("x", "s", s, "deep", deep{s}, "list", []deep{{s}})
	raw, err := json.Marshal(map[string]any{"s": s, "deep": deep{s}})
	if err != nil {
		t.Fatal(err)
	}
	shown := log.String() + string(raw) + fmt.Sprintf("%v %+v %#v %s %q %x", s, s, s, s, s, s) +
		fmt.Sprintf("%v %+v %#v %v %+v %#v", deep{s}, deep{s}, deep{s}, &deep{s}, []deep{{s}}, map[string]deep{"a": {s}})
	if strings.Contains(shown, value) || strings.Contains(shown, fmt.Sprintf("%x", value)) {
		t.Errorf("the secret shows in %s", shown)
	}
	if s.Reveal() != value || s.IsZero() || !New("").IsZero() || (Secret{}).Reveal() != "" {
		t.Error("the secret was lost")
	}
	if s != New(value) || s == New("other") || !reflect.DeepEqual(deep{s}, deep{New(value)}) {
		t.Error("secrets do not compare by value")
	}
}

func TestConceal(t *testing.T) {
	r := Conceal(New("Bearer abc/def ghi"), New("abc/def ghi and more"), New("abc"), Secret{})
	for text, want := range map[string]string{
		"you sent Bearer abc/def ghi":          "you sent [secret]",
		"the token is abc/def ghi.":            "the token is [secret].",
		"?key=abc%2Fdef+ghi&x=abc%2Fdef%20ghi": "?key=[secret]&x=[secret]",
		"abc/def ghi and more":                 "[secret]",
		"abc is too short to be one":           "abc is too short to be one",
	} {
		if got := r.Replace(text); got != want {
			t.Errorf("%q became %q, want %q", text, got, want)
		}
	}
}
