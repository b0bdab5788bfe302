package core

import "unique"

// Secret is a token or key. It prints as "[secret]" wherever it is printed,
// and as an address at worst, deep inside of other values; only Reveal gives
// the value away. Equal secrets compare equal.
type Secret struct{ handle unique.Handle[string] }

// NewSecret hides value; "" is the zero Secret.
func NewSecret(value string) Secret {
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
