package engine

import (
	"errors"
)

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
	clean := r.redact.Replace(text)
	if clean == text {
		return err
	}
	return &concealed{clean, err}
}
