package setup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"charm.land/huh/v2"

	"synthbot/core/txt"
)

// Form is a Terminal that shows each question as a form. In and Out are a real terminal.
type Form struct {
	In    io.Reader
	Out   io.Writer
	Plain bool // questions as plain lines, for screen readers and dumb terminals
}

// Ask implements Terminal.
func (f Form) Ask(ctx context.Context, q Question) (string, error) {
	if q.Check == nil {
		q.Check = func(string) error { return nil }
	}
	answer := q.Initial
	form := huh.NewForm(huh.NewGroup(q.field(&answer))).WithInput(f.In).WithOutput(f.Out)
	err := form.WithAccessible(f.Plain).WithShowHelp(true).RunWithContext(ctx)
	switch {
	case errors.Is(err, huh.ErrUserAborted), ctx.Err() != nil:
		return "", ErrAborted
	case err != nil:
		return "", fmt.Errorf("terminal: %w", err)
	}
	answer = strings.TrimSpace(answer)
	if err := q.Check(answer); err != nil { // the input ended before it was right
		return "", errors.Join(ErrAborted, err)
	}
	if !f.Plain {
		fmt.Fprintln(f.Out, q.Title+" "+q.shown(answer))
	}
	return answer, nil
}

// field returns the question as a field of a form.
func (q *Question) field(answer *string) huh.Field {
	switch {
	case len(q.Options) > 0:
		options := make([]huh.Option[string], len(q.Options))
		for i, o := range q.Options {
			options[i] = huh.NewOption(o.Label, o.Value)
		}
		return huh.NewSelect[string]().Title(q.Title).Description(q.About).Options(options...).Value(answer)
	case q.Long:
		text := huh.NewText().Title(q.Title).Description(q.About).Validate(q.Check).Value(answer)
		return text.CharLimit(0).ExternalEditor(false)
	}
	in := huh.NewInput().Title(q.Title).Description(q.About).Validate(q.Check).Value(answer)
	if q.Hidden {
		in.EchoMode(huh.EchoModePassword)
	}
	return in
}

// shown returns an answer as it stays on the screen.
func (q *Question) shown(answer string) string {
	switch {
	case answer == "":
		return "–"
	case q.Hidden:
		return "(given)"
	}
	for _, o := range q.Options {
		if o.Value == answer {
			return o.Label
		}
	}
	return txt.Clip(txt.Line(answer), 100)
}
