// Package secret keeps tokens and keys out of printed values.
package secret

import (
	"net/url"
	"strings"
	"unique"

	"synthbot/core/sorting"
)

// Secret is a token or key. It prints as "[secret]" or, deep inside of other values, as a memory address at worst;
// only Reveal returns the value. Equal secrets compare equal.
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

// shortestSecret is the length of the shortest value that Conceal replaces: shorter
// ones occur in ordinary words, and are not secrets.
const shortestSecret = 4

// Conceal returns a replacer of secrets in texts from others, who may repeat them. It replaces each by "[secret]": as
// it is, without the word before it ("Bearer …"), and as it is encoded in an address.
func Conceal(secrets ...Secret) *strings.Replacer {
	var values []string
	for _, s := range secrets {
		value := s.Reveal()
		_, token, _ := strings.Cut(value, " ")
		for _, v := range []string{value, token} {
			values = append(values, v, url.QueryEscape(v), url.PathEscape(v))
		}
	}
	sorting.Sort(values, func(a, b string) int { return len(b) - len(a) }) // the longest first: one may contain another
	var pairs []string
	for _, v := range values {
		if len(v) >= shortestSecret {
			pairs = append(pairs, v, "[secret]")
		}
	}
	return strings.NewReplacer(pairs...)
}

// IsZero reports whether there is no secret.
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
