package core

// Secret is a token or key. It prints as "[secret]" wherever it is printed;
// only Reveal gives the value away.
type Secret struct{ value string }

// NewSecret hides value.
func NewSecret(value string) Secret { return Secret{value} }

// Reveal returns the value, for the one call that needs it.
func (s Secret) Reveal() string { return s.value }

// IsZero reports whether there is none.
func (s Secret) IsZero() bool { return s.value == "" }

func (s Secret) String() string {
	if s.value == "" {
		return ""
	}
	return "[secret]"
}

// GoString keeps %#v from showing the value.
func (s Secret) GoString() string { return s.String() }

// MarshalText keeps encoders from showing the value.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }
