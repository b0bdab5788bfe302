package console

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/term"

	"synthbot/core"
)

// Control sequences that make the terminal mark pasted text, and stop it.
const (
	markPastes = "\x1b[?2004h"
	stopMarks  = "\x1b[?2004l"
)

func (c *Console) listenTerminal(ctx context.Context, in core.Inbox) error {
	restore, err := setRaw(c.opt.In)
	if err != nil {
		return fmt.Errorf("%s: terminal: %w", c.opt.Name, err)
	}
	s := c.openScreen(ctx)
	defer func() {
		c.setScreen(nil)
		s.close()
		_, _ = io.WriteString(c.opt.Out, stopMarks)
		restore()
	}()
	chunks, stop := readChunks(c.opt.In, chunkSize)
	defer stop()
	resized := make(chan os.Signal, 1)
	signal.Notify(resized, syscall.SIGWINCH)
	defer signal.Stop(resized)
	keys := decoder{}
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-resized:
			if err := s.refresh(); err != nil {
				return c.outputError(err)
			}
		case chunk := <-chunks:
			left, err := c.handleKeys(ctx, in, s, keys.feed(chunk.text))
			switch {
			case left || err != nil:
				return err
			case errors.Is(chunk.err, io.EOF) || errors.Is(chunk.err, syscall.EIO):
				return nil // the terminal was closed
			case chunk.err != nil:
				return fmt.Errorf("%s: input: %w", c.opt.Name, chunk.err)
			}
		}
	}
}

func (c *Console) openScreen(ctx context.Context) *screen {
	var history []string
	if c.opt.History != nil {
		history = c.opt.History(ctx)
	}
	const maxName = 16 // columns of the user's name
	s := newScreen(c, c.text.row(c.opt.User, maxName, 0).text+"> ", history)
	if c.opt.Complete != nil {
		s.complete = func(line string) []string { return c.opt.Complete(ctx, line) }
	}
	_, _ = io.WriteString(c.opt.Out, markPastes)
	if c.opt.Greeting != "" {
		_ = s.print(c.render(c.opt.Greeting, c.width()))
	} else {
		_ = s.refresh()
	}
	c.setScreen(s)
	return s
}

// handleKeys handles key presses and receives the entered lines. left is true if the user leaves.
func (c *Console) handleKeys(ctx context.Context, in core.Inbox, s *screen, keys []string) (left bool, err error) {
	lines, left, err := s.press(keys)
	if err != nil {
		return left, c.outputError(err)
	}
	for _, line := range lines {
		if err := c.receive(ctx, in, rand.Text(), clip(clean(line), core.MaxText)); err != nil {
			return left, err
		}
	}
	return left, nil
}

func (c *Console) outputError(err error) error { return fmt.Errorf("%s: output: %w", c.opt.Name, err) }

// setRaw puts a terminal into raw mode, in which it sends every key at once. restore undoes that.
// Input that is not a file is not changed.
func setRaw(in io.Reader) (restore func(), err error) {
	restore = Keep(in)
	err = onFile(in, func(fd int) error {
		if !term.IsTerminal(fd) {
			return errors.New("standard input is not a terminal: use a pipe, or a real terminal")
		}
		_, err := term.MakeRaw(fd)
		return err
	})
	return restore, err
}

// Keep returns a function that restores the present mode of the terminal that in reads from. It is
// for a process that ends while a Console runs.
func Keep(in any) (restore func()) {
	restore = func() {}
	_ = onFile(in, func(fd int) error {
		before, err := term.GetState(fd)
		if err == nil {
			restore = func() {
				_ = onFile(in, func(fd int) error { return term.Restore(fd, before) })
			}
		}
		return err
	})
	return restore
}

// IsDumb reports whether a terminal, named by $TERM, cannot move the cursor: only plain lines are written to it.
func IsDumb(name string) bool { return name == "" || name == "dumb" }

// IsTerminal reports whether a stream is a terminal.
func IsTerminal(stream any) bool {
	terminal := false
	_ = onFile(stream, func(fd int) error {
		terminal = term.IsTerminal(fd)
		return nil
	})
	return terminal
}

func (c *Console) size() (columns, rows int) {
	columns, rows = 80, 24
	_ = onFile(c.opt.Out, func(fd int) error {
		w, h, err := term.GetSize(fd)
		if err == nil && w > 0 && h > 0 {
			columns, rows = max(w, minWidth), h
		}
		return err
	})
	return columns, rows
}

func (c *Console) width() int {
	columns, _ := c.size()
	return columns
}

// onFile calls f with the descriptor of a stream that is a file, without changing its mode.
func onFile(stream any, f func(fd int) error) error {
	file, ok := stream.(syscall.Conn)
	if !ok {
		return nil
	}
	conn, err := file.SyscallConn()
	if err != nil {
		return err
	}
	inner := conn.Control(func(fd uintptr) { err = f(int(fd)) })
	return errors.Join(err, inner)
}
