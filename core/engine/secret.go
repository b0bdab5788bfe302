package engine

import (
	"errors"
	"net/url"
	"strings"

	"synthbot/core"
)

// redactor takes a key out of a text, also in the form that it has in a URL.
func redactor(key core.Secret) *strings.Replacer {
	value := key.Reveal()
	const shortest = 4 // a shorter one would tear words apart, and is no secret
	if len(value) < shortest {
		return strings.NewReplacer()
	}
	return strings.NewReplacer(value, "[secret]", url.QueryEscape(value), "[secret]", url.PathEscape(value), "[secret]")
}

// concealed is an error whose text had a key in it. What it wraps can still be
// asked for, but no longer unwrapped into a log.
type concealed struct {
	text string
	err  error
}

func (c *concealed) Error() string        { return c.text }
func (c *concealed) Is(target error) bool { return errors.Is(c.err, target) }

// conceal replaces an error whose text holds the key.
func (r *remote) conceal(err error) error {
	if err == nil {
		return nil
	}
	text := err.Error()
	if clean := r.redact.Replace(text); clean != text {
		return &concealed{clean, err}
	}
	return err
}
