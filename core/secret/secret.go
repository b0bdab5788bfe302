// Package secret hides tokens and keys where values are printed.
package secret

import (
	"net/url"
	"strings"
	"unique"

	"synthbot/core/sorting"
)

// Secret is a token or key. It prints as "[secret]" wherever it is printed,
// and as an address at worst, deep inside of other values; only Reveal gives
// the value away. Equal secrets compare equal.
type Secret struct{ handle unique.Handle[string] }

// New hides value; "" is the zero Secret.
func New(value string) Secret {
	if value == "" {
		return Secret{}
	}
	return Secret{unique.Make(value)}
}

// Reveal returns the value, for the one call that needs it.
func (s Secret) Reveal() string {
	if s.IsZero() {
		return ""
	}
	return s.handle.Value()
}

// shortestSecret is how long a value is at least that Conceal takes out: a shorter
// one would tear words apart, and is not a secret.
const shortestSecret = 4

// Conceal returns what takes secrets out of texts of others, who may tell them
// again: as they are, without the word before them ("Bearer …"), and in the forms
// that they have in an address. Each is replaced by "[secret]".
func Conceal(secrets ...Secret) *strings.Replacer {
	var values []string
	for _, s := range secrets {
		value := s.Reveal()
		_, token, _ := strings.Cut(value, " ")
		for _, v := range []string{value, token} {
			values = append(values, v, url.QueryEscape(v), url.PathEscape(v))
		}
	}
	sorting.Sort(values, func(a, b string) int { return len(b) - len(a) }) // one may begin with another
	var pairs []string
	for _, v := range values {
		if len(v) >= shortestSecret {
			pairs = append(pairs, v, "[secret]")
		}
	}
	return strings.NewReplacer(pairs...)
}

// IsZero reports whether there is none.
func (s Secret) IsZero() bool { return s == Secret{} }

func (s Secret) String() string {
	if s.IsZero() {
		return ""
	}
	return "[secret]"
}

// GoString keeps %#v from showing the value.
func (s Secret) GoString() string { return s.String() }

// MarshalText keeps encoders from showing the value.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }
