package console

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"synthbot/core"
)

// line is one line of the input.
type line struct {
	text  string // cleaned
	long  bool   // more was there than is taken
	err   error  // of the input, in a line that has no text
	count int    // its number
}

// script holds a conversation over a pipe: a line in, the reply out, the next.
func (c *Console) script(ctx context.Context, in core.Inbox) error {
	lines, stop := c.lines()
	defer stop()
	for {
		var l line
		select {
		case <-ctx.Done():
			return nil
		case l = <-lines:
		}
		if l.err != nil {
			if errors.Is(l.err, io.EOF) {
				return nil
			}
			return fmt.Errorf("%s: input: %w", c.opt.Name, l.err)
		}
		if l.long {
			c.mu.Lock()
			c.notice(fmt.Sprintf("line %d is longer than %d bytes: the rest of it was left out", l.count, core.MaxText))
			c.mu.Unlock()
		}
		if err := c.exchange(ctx, in, l.text); err != nil {
			return err
		}
	}
}

// exchange hands a line in and waits until its turn is over. Its error is the
// output's, if nobody can read the replies any more.
func (c *Console) exchange(ctx context.Context, in core.Inbox, text string) error {
	if text == "" {
		return nil
	}
	id := c.nextID()
	over := c.expect(id)
	if err := c.receive(ctx, in, id, text); err != nil {
		return err
	}
	select {
	case <-over:
	case <-ctx.Done():
	}
	return c.spoiled()
}

// lines reads the input in a goroutine of its own, because a read of standard
// input cannot be given up. stop ends the goroutine if the input can be
// interrupted; else it ends with the next line or with the process.
func (c *Console) lines() (<-chan line, func()) {
	out, done, gone := make(chan line), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(gone)
		r := bufio.NewReaderSize(c.opt.In, 64<<10)
		for count := 1; ; count++ {
			l := readLine(r)
			l.count = count
			select {
			case out <- l:
			case <-done:
				return
			}
			if l.err != nil {
				return
			}
		}
	}()
	return out, func() { halt(c.opt.In, done, gone) }
}

// halt ends a goroutine that reads in: a read that waits returns at once where
// the input knows deadlines, which are taken back afterwards.
func halt(in io.Reader, done chan<- struct{}, gone <-chan struct{}) {
	close(done)
	d, ok := in.(interface{ SetReadDeadline(time.Time) error })
	if ok && d.SetReadDeadline(time.Unix(1, 0)) == nil {
		<-gone
		_ = d.SetReadDeadline(time.Time{})
	}
}

// readLine reads one line and keeps at most core.MaxText bytes of it. A last
// line without a newline counts.
func readLine(r *bufio.Reader) line {
	var kept []byte
	var l line
	for {
		piece, err := r.ReadSlice('\n')
		room := core.MaxText + 2 - len(kept) // two for the line's end
		kept = append(kept, piece[:min(len(piece), room)]...)
		l.long = l.long || len(piece) > room
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if err != nil && len(kept) == 0 {
			l.err = err
		}
		break
	}
	text := clean(string(kept), false)
	l.long = l.long || len(text) > core.MaxText
	l.text = trim(text, core.MaxText)
	return l
}
