package mcp

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"golang.org/x/time/rate"

	"synthbot/core/program"
	"synthbot/core/secret"
	"synthbot/core/txt"
)

// What a server may send, beyond which it counts as broken.
const (
	maxFrame   = 12 << 20 // bytes of one message
	floodBytes = 64 << 20 // at once
	floodLines = 5000
	bytesPerS  = 1 << 20 // and on and on
	linesPerS  = 200
)

// Why a link ended.
var (
	errEnded   = errors.New("the server ended the connection")
	errExit    = errors.New("the process ended")
	errFlood   = errors.New("the server sends more than anybody could read")
	errLarge   = errors.New("the server sent too large a message")
	errStart   = errors.New("the server took too long to start")
	errDeaf    = errors.New("the server does not answer any more")
	errStopped = errors.New("it was stopped")
)

// link is one connection to a server, from its start to its end.
type link struct {
	transport mcp.Transport
	ctx       context.Context         // ends with the link; its cause says why
	fail      context.CancelCauseFunc // ends it, at once and hard
	work      sync.WaitGroup          // its goroutines

	bytes, lines *rate.Limiter // of what comes in: bursts are fine, a stream without end is not

	session *mcp.ClientSession
	changed chan struct{}     // its lists are others now
	doubt   chan struct{}     // it may hang
	calls   atomic.Int32      // under way
	last    [sha256.Size]byte // a sum of what its lists were
	broke   error             // how the session ended; to be read when nothing of the link is left
}

func newLink() *link {
	l := &link{
		bytes: rate.NewLimiter(bytesPerS, floodBytes), lines: rate.NewLimiter(linesPerS, floodLines),
		changed: make(chan struct{}, 1), doubt: make(chan struct{}, 1),
	}
	l.ctx, l.fail = context.WithCancelCause(context.Background())
	return l
}

// gauge is a reader that ends the link when too much comes.
type gauge struct {
	io.ReadCloser
	link    *link
	left    int    // bytes that may come in all; negative: any
	release func() // lets go of what is held until Close
}

func (g *gauge) Read(p []byte) (int, error) {
	n, err := g.ReadCloser.Read(p)
	now := time.Now()
	if !g.link.bytes.AllowN(now, n) || !g.link.lines.AllowN(now, bytes.Count(p[:n], []byte("\n"))) {
		g.link.fail(errFlood)
		return 0, errFlood
	}
	if g.left < 0 {
		return n, err
	}
	if n > g.left {
		g.link.fail(errLarge)
		return 0, errLarge
	}
	g.left -= n
	return n, err
}

// Close implements io.Closer.
func (g *gauge) Close() error {
	defer g.release()
	return g.ReadCloser.Close()
}

// reach makes the connection to a server that serves HTTP. The address is the
// configuration's own, so that it may be a private one; a redirect is the
// server's, and is not followed: it would take the headers along.
func (s *server) reach() (*link, error) {
	l := newLink()
	base, _ := http.DefaultTransport.(*http.Transport)
	next := base.Clone()
	l.transport = &mcp.StreamableClientTransport{
		Endpoint: s.conf.URL, MaxEventSize: maxFrame, MaxRetries: 1,
		HTTPClient: &http.Client{
			Transport:     &carrier{next: next, link: l, headers: s.conf.Headers},
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}
	l.work.Go(func() { <-l.ctx.Done(); next.CloseIdleConnections() })
	return l, nil
}

// carrier carries requests while the link lasts.
type carrier struct {
	next    http.RoundTripper
	link    *link
	headers map[string]secret.Secret
}

// RoundTrip implements http.RoundTripper.
func (c *carrier) RoundTrip(r *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancelCause(r.Context())
	unlink := context.AfterFunc(c.link.ctx, func() { cancel(context.Cause(c.link.ctx)) })
	done := func() { unlink(); cancel(nil) }
	r = r.Clone(ctx)
	for name, value := range c.headers {
		r.Header.Set(name, value.Reveal())
	}
	resp, err := c.next.RoundTrip(r)
	if err != nil {
		done()
		return nil, err
	}
	most := maxFrame // a message, or anything where it is a stream
	if strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream") {
		most = -1
	}
	resp.Body = &gauge{resp.Body, c.link, most, done}
	return resp, nil
}

// inherited are the variables of the bot's own environment that a server gets besides those
// of any program.
var inherited = []string{"LC_ALL", "LOGNAME", "SystemRoot", "TEMP", "TMP", "USER"}

// spawn starts the server's process, in a group of its own. It ends with the link, and the
// link with it.
func (s *server) spawn() (*link, error) {
	l := newLink()
	cmd := exec.CommandContext(l.ctx, s.conf.Command[0], s.conf.Command[1:]...)
	cmd.Dir, cmd.Env, cmd.WaitDelay = s.conf.Dir, program.Environment(s.conf.Env, inherited...), s.times.grace
	program.Group(cmd, syscall.SIGTERM)
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, toOut := io.Pipe()
	faults, toFaults := io.Pipe()
	cmd.Stdout, cmd.Stderr = toOut, toFaults
	if err := cmd.Start(); err != nil {
		return nil, reason(err)
	}
	l.transport = &mcp.IOTransport{Reader: &gauge{out, l, -1, func() {}}, Writer: in, MaxLineLength: maxFrame}
	l.work.Go(func() { s.logErrors(faults) })
	context.AfterFunc(l.ctx, func() { _ = out.CloseWithError(context.Cause(l.ctx)) }) // nobody reads any more
	l.work.Go(func() {
		err := cmd.Wait()
		program.KillGroup(cmd)
		_, _ = toOut.Close(), toFaults.Close() // they never fail
		if err == nil {
			err = errExit
		}
		l.fail(fmt.Errorf("process: %w", err))
	})
	return l, nil
}

// reason is why a process did not start, without its arguments.
func reason(err error) error {
	var lookup *exec.Error
	var file *fs.PathError
	switch {
	case errors.As(err, &lookup):
		return fmt.Errorf("program %s: %w", lookup.Name, lookup.Err)
	case errors.As(err, &file):
		return fmt.Errorf("program %s: %w", file.Path, file.Err)
	}
	return err
}

// Bounds of what goes into the log of a server's error output.
const (
	logLine   = 400
	logPerMin = 8 << 10
)

// logErrors writes a server's error output into the log, and reads on if it is more than the
// log takes.
func (s *server) logErrors(r io.Reader) {
	reader := bufio.NewReaderSize(r, 4096)
	room := rate.NewLimiter(rate.Every(time.Minute/logPerMin), logPerMin)
	for {
		text, err := reader.ReadSlice('\n')
		said := txt.ClipBytes(line(strings.ToValidUTF8(string(text), "�")), logLine)
		if said != "" && room.AllowN(time.Now(), len(said)) {
			s.log.Debug("mcp server says", "text", s.redact(said))
		}
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			return
		}
	}
}
