package console

import (
	"bufio"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"synthbot/core"
)

// listenPipe runs a conversation over a pipe: a line, its replies, the next line.
func (c *Console) listenPipe(ctx context.Context, in core.Inbox) error {
	r := bufio.NewReaderSize(c.opt.In, 64<<10)
	lines, stop := readAll(c.opt.In, func() input { return readLine(r) })
	defer stop()
	for count := 1; ; count++ {
		var l input
		select {
		case <-ctx.Done():
			return nil
		case l = <-lines:
		}
		if errors.Is(l.err, io.EOF) {
			return nil
		}
		if l.err != nil {
			return fmt.Errorf("%s: input: %w", c.opt.Name, l.err)
		}
		if l.clipped {
			c.mu.Lock()
			c.showNotice(fmt.Sprintf("line %d is longer than %d bytes: the rest was left out", count, core.MaxText))
			c.mu.Unlock()
		}
		if err := c.exchange(ctx, in, l.text); err != nil {
			return err
		}
	}
}

// exchange receives a line and waits until its turn has ended. It returns an error of the inbox or the output.
func (c *Console) exchange(ctx context.Context, in core.Inbox, text string) error {
	if text == "" {
		return nil
	}
	id := rand.Text()
	over := make(chan struct{})
	c.mu.Lock()
	c.waiting[id] = over
	c.mu.Unlock()
	if err := c.receive(ctx, in, id, text); err != nil {
		return err
	}
	select {
	case <-over:
	case <-ctx.Done():
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.writeErr
}

// input is what one read returns: a line, or a chunk.
type input struct {
	text    string
	clipped bool // it is the beginning of a longer line
	err     error
}

// readAll calls next in a goroutine until it fails, because a read of standard input cannot be cancelled.
// If the input has deadlines, stop ends the goroutine. Otherwise it ends after the read in progress.
func readAll(in io.Reader, next func() input) (_ <-chan input, stop func()) {
	out, done, ended := make(chan input), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		var i input
		for i.err == nil {
			i = next()
			select {
			case out <- i:
			case <-done:
				return
			}
		}
	}()
	return out, func() {
		close(done)
		d, ok := in.(interface{ SetReadDeadline(time.Time) error })
		if ok && d.SetReadDeadline(time.Unix(1, 0)) == nil {
			<-ended
			_ = d.SetReadDeadline(time.Time{})
		}
	}
}

// chunkSize is the size of the chunks that are read from a terminal.
const chunkSize = 4096

// readChunks reads chunks of at most size bytes, as they are.
func readChunks(in io.Reader, size int) (_ <-chan input, stop func()) {
	return readAll(in, func() input {
		buffer := make([]byte, size)
		n, err := in.Read(buffer)
		return input{text: string(buffer[:n]), err: err}
	})
}

// readLine reads one line and keeps at most core.MaxText bytes of it, without control characters. A last line without
// a newline counts.
func readLine(r *bufio.Reader) (l input) {
	var kept []byte
	var err error
	for {
		var piece []byte
		piece, err = r.ReadSlice('\n')
		room := core.MaxText + 2 - len(kept) // 2 for "\r\n"
		kept = append(kept, piece[:min(len(piece), room)]...)
		l.clipped = l.clipped || len(piece) > room
		if !errors.Is(err, bufio.ErrBufferFull) {
			break
		}
	}
	if err != nil && len(kept) == 0 {
		return input{err: err}
	}
	text := clean(strings.ReplaceAll(string(kept), "\r", ""))
	l.clipped = l.clipped || len(text) > core.MaxText
	l.text = clip(text, core.MaxText)
	return l
}
