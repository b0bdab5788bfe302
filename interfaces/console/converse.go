package console

import (
	"context"
	"errors"
	"fmt"
	"io"
	"syscall"

	"golang.org/x/term"

	"synthbot/core"
)

// Modes of a terminal: whether it marks what is pasted.
const (
	markPastes = "\x1b[?2004h"
	stopMarks  = "\x1b[?2004l"
)

// converse holds a conversation on a terminal.
func (c *Console) converse(ctx context.Context, in core.Inbox) error {
	restore, err := raw(c.opt.In)
	if err != nil {
		return fmt.Errorf("%s: terminal: %w", c.opt.Name, err)
	}
	s := c.open(ctx)
	defer func() {
		c.mu.Lock()
		c.screen = nil
		c.mu.Unlock()
		s.close()
		_, _ = io.WriteString(c.opt.Out, stopMarks)
		restore()
	}()
	input, stop := chunks(c.opt.In)
	defer stop()
	resized, quiet := resizes()
	defer quiet()
	keys := decoder{}
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-resized:
			err = s.refresh()
		case data := <-input:
			if data.err != nil {
				return c.inputError(data.err)
			}
			var left bool
			if left, err = c.typed(ctx, in, s, keys.feed(data.bytes)); left {
				return nil
			}
		}
		if err != nil {
			return err
		}
	}
}

// inputError is Listen's error when a terminal cannot be read any more; that it
// is gone is none.
func (c *Console) inputError(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, syscall.EIO) {
		return nil
	}
	return fmt.Errorf("%s: input: %w", c.opt.Name, err)
}

// open draws the screen for the first time.
func (c *Console) open(ctx context.Context) *screen {
	var history []string
	if c.opt.History != nil {
		history = c.opt.History(ctx)
	}
	s := &screen{
		out: c.opt.Out, size: c.size, style: c.styled, edit: newEditor(history),
		prompt: cutColumns(c.opt.User, maxPrompt) + "> ", sign: c.opt.PersonaName + " is thinking",
	}
	_, _ = io.WriteString(c.opt.Out, markPastes)
	if c.opt.Greeting != "" {
		_ = s.print(c.spoken(c.opt.Greeting, s.width()))
	} else {
		_ = s.refresh()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.screen = s
	return s
}

// maxPrompt is how much of a name stands before the line, in columns.
const maxPrompt = 16

// typed does what keys ask for; left is true when the user goes.
func (c *Console) typed(ctx context.Context, in core.Inbox, s *screen, keys []key) (left bool, err error) {
	var edits []key
	for _, k := range keys {
		if !special(k.code) {
			edits = append(edits, k)
			continue
		}
		if err := s.press(edits...); err != nil {
			return false, c.outputError(err)
		}
		edits = nil
		if left, err := c.command(ctx, in, s, k); left || err != nil {
			return left, err
		}
	}
	if len(edits) > 0 {
		if err := s.press(edits...); err != nil {
			return false, c.outputError(err)
		}
	}
	return false, nil
}

func special(k code) bool { return k == enter || k == leave || k == endOrDel || k == redraw }

func (c *Console) outputError(err error) error {
	return fmt.Errorf("%s: output: %w", c.opt.Name, err)
}

// command does what is more than an edit.
func (c *Console) command(ctx context.Context, in core.Inbox, s *screen, k key) (left bool, err error) {
	switch k.code {
	case leave:
		return true, nil
	case endOrDel:
		if s.empty() {
			return true, nil
		}
		return false, s.press(k)
	case redraw:
		return false, s.clear()
	}
	line, err := s.enter()
	if err != nil {
		return false, c.outputError(err)
	}
	if line = trim(clean(line, true), core.MaxText); line != "" {
		err = c.receive(ctx, in, c.nextID(), line)
	}
	return false, err
}

// chunk is what one read of the terminal gave.
type chunk struct {
	bytes []byte
	err   error
}

// chunks reads the terminal in a goroutine of its own; see lines.
func chunks(in io.Reader) (<-chan chunk, func()) {
	out, done, gone := make(chan chunk), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(gone)
		for {
			buffer := make([]byte, 4096)
			n, err := in.Read(buffer)
			for _, c := range []chunk{{bytes: buffer[:n]}, {err: err}} {
				if len(c.bytes) == 0 && c.err == nil {
					continue
				}
				select {
				case out <- c:
				case <-done:
					return
				}
			}
			if err != nil {
				return
			}
		}
	}()
	return out, func() { halt(in, done, gone) }
}

// raw makes a terminal give every key at once, and returns what undoes it. Input
// that is no terminal of the system stays as it is.
func raw(in io.Reader) (restore func(), err error) {
	restore = func() {}
	_, err = onFile(in, func(fd int) error {
		if !term.IsTerminal(fd) {
			return errors.New("standard input is none: use a pipe, or a real terminal")
		}
		before, err := term.MakeRaw(fd)
		if err == nil {
			restore = func() {
				_, _ = onFile(in, func(fd int) error { return term.Restore(fd, before) })
			}
		}
		return err
	})
	return restore, err
}

// Keep remembers how the terminal that in reads from is set, and returns what sets
// it so again, for a process that ends while a Console runs.
func Keep(in any) (restore func()) {
	restore = func() {}
	_, _ = onFile(in, func(fd int) error {
		before, err := term.GetState(fd)
		if err == nil {
			restore = func() {
				_, _ = onFile(in, func(fd int) error { return term.Restore(fd, before) })
			}
		}
		return err
	})
	return restore
}

// size asks the terminal how large it is.
func (c *Console) size() (columns, rows int) {
	columns, rows = defaultWidth, defaultHeight
	_, _ = onFile(c.opt.Out, func(fd int) error {
		w, h, err := term.GetSize(fd)
		if err == nil && w > 0 && h > 0 {
			columns, rows = max(w, minWidth), h
		}
		return err
	})
	return columns, rows
}

// minWidth is the narrowest terminal that is drawn for.
const minWidth = 4

// onFile calls f with the descriptor of a file, without changing its mode; ok is
// false where stream is no file.
func onFile(stream any, f func(fd int) error) (ok bool, err error) {
	file, ok := stream.(syscall.Conn)
	if !ok {
		return false, nil
	}
	conn, err := file.SyscallConn()
	if err != nil {
		return true, err
	}
	inner := conn.Control(func(fd uintptr) { err = f(int(fd)) })
	return true, errors.Join(err, inner)
}
