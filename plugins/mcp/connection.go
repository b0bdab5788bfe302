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

// Limits of what a server may send. If it exceeds one, its connection is ended.
const (
	maxFrame   = 12 << 20 // bytes of one message
	floodBytes = 64 << 20 // in a burst
	floodLines = 5000
	bytesPerS  = 1 << 20 // on average
	linesPerS  = 200
)

// Reasons why a connection ended.
var (
	errEnded        = errors.New("the server ended the connection")
	errExit         = errors.New("the process ended")
	errFlood        = errors.New("the server sends too much")
	errLarge        = errors.New("the server sent too large a message")
	errStart        = errors.New("the server took too long to start")
	errUnresponsive = errors.New("the server no longer answers")
	errStopped      = errors.New("it was stopped")
)

// connection is one connection to a server, from its start to its end.
type connection struct {
	transport mcp.Transport
	ctx       context.Context         // ends with the connection; its cause says why
	end       context.CancelCauseFunc // ends the connection at once
	work      sync.WaitGroup          // its goroutines

	bytes, lines *rate.Limiter // of incoming data

	session    *mcp.ClientSession
	changed    chan struct{}     // holds a token if lists have changed
	probeSoon  chan struct{}     // holds a token if the server may hang
	calls      atomic.Int32      // in progress
	listsSum   [sha256.Size]byte // of the lists that were read last
	sessionErr error             // how the session ended; may be read after work.Wait
}

func newConnection() *connection {
	l := &connection{
		bytes: rate.NewLimiter(bytesPerS, floodBytes), lines: rate.NewLimiter(linesPerS, floodLines),
		changed: make(chan struct{}, 1), probeSoon: make(chan struct{}, 1),
	}
	l.ctx, l.end = context.WithCancelCause(context.Background())
	return l
}

// limitedReader is a reader that ends the connection if too much data comes.
type limitedReader struct {
	io.ReadCloser
	conn      *connection
	remaining int    // bytes that may still come; negative: any number
	release   func() // is called by Close
}

func (g *limitedReader) Read(p []byte) (int, error) {
	n, err := g.ReadCloser.Read(p)
	now := time.Now()
	if !g.conn.bytes.AllowN(now, n) || !g.conn.lines.AllowN(now, bytes.Count(p[:n], []byte("\n"))) {
		g.conn.end(errFlood)
		return 0, errFlood
	}
	if g.remaining < 0 {
		return n, err
	}
	if n > g.remaining {
		g.conn.end(errLarge)
		return 0, errLarge
	}
	g.remaining -= n
	return n, err
}

// Close implements io.Closer.
func (g *limitedReader) Close() error {
	defer g.release()
	return g.ReadCloser.Close()
}

// connectHTTP prepares the connection to a server over HTTP. The address may be a private one, because the admin
// configured it. Redirects are not followed: they would send the configured headers elsewhere.
func (s *server) connectHTTP() (*connection, error) {
	l := newConnection()
	base, _ := http.DefaultTransport.(*http.Transport)
	next := base.Clone()
	l.transport = &mcp.StreamableClientTransport{
		Endpoint: s.conf.URL, MaxEventSize: maxFrame, MaxRetries: 1,
		HTTPClient: &http.Client{
			Transport:     &roundTripper{next: next, conn: l, headers: s.conf.Headers},
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}
	l.work.Go(func() { <-l.ctx.Done(); next.CloseIdleConnections() })
	return l, nil
}

// roundTripper sends requests, with the configured headers, until the connection ends.
type roundTripper struct {
	next    http.RoundTripper
	conn    *connection
	headers map[string]secret.Secret
}

// RoundTrip implements http.RoundTripper.
func (c *roundTripper) RoundTrip(r *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancelCause(r.Context())
	stop := context.AfterFunc(c.conn.ctx, func() { cancel(context.Cause(c.conn.ctx)) })
	done := func() { stop(); cancel(nil) }
	r = r.Clone(ctx)
	for name, value := range c.headers {
		r.Header.Set(name, value.Reveal())
	}
	resp, err := c.next.RoundTrip(r)
	if err != nil {
		done()
		return nil, err
	}
	limit := maxFrame // of a single message; streams have none
	if strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream") {
		limit = -1
	}
	resp.Body = &limitedReader{resp.Body, c.conn, limit, done}
	return resp, nil
}

// inheritedEnv lists the variables of the bot's environment that a server gets besides those that every program gets.
var inheritedEnv = []string{"LC_ALL", "LOGNAME", "SystemRoot", "TEMP", "TMP", "USER"}

// startProcess starts the server's process, in a process group of its own. The process ends with
// the connection, and the connection with the process.
func (s *server) startProcess() (*connection, error) {
	l := newConnection()
	cmd := exec.CommandContext(l.ctx, s.conf.Command[0], s.conf.Command[1:]...)
	cmd.Dir, cmd.Env, cmd.WaitDelay = s.conf.Dir, program.Environment(s.conf.Env, inheritedEnv...), s.times.grace
	program.Group(cmd, syscall.SIGTERM)
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, toOut := io.Pipe()
	faults, toFaults := io.Pipe()
	cmd.Stdout, cmd.Stderr = toOut, toFaults
	if err := cmd.Start(); err != nil {
		return nil, startError(err)
	}
	l.transport = &mcp.IOTransport{Reader: &limitedReader{out, l, -1, func() {}}, Writer: in, MaxLineLength: maxFrame}
	l.work.Go(func() { s.logErrors(faults) })
	context.AfterFunc(l.ctx, func() { _ = out.CloseWithError(context.Cause(l.ctx)) }) // nobody reads any more
	l.work.Go(func() {
		err := cmd.Wait()
		program.KillGroup(cmd)
		_, _ = toOut.Close(), toFaults.Close() // they never fail
		if err == nil {
			err = errExit
		}
		l.end(fmt.Errorf("process: %w", err))
	})
	return l, nil
}

// startError returns the error of a process that did not start, without its arguments.
func startError(err error) error {
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

// Limits of a server's error output in the log, in bytes.
const (
	logLine   = 400
	logPerMin = 8 << 10
)

// logErrors logs a server's error output, and discards what exceeds the limits.
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
