package mcp

import (
	"bytes"
	"context"
	"errors"
	"io"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"golang.org/x/time/rate"
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
}

func newLink() *link {
	l := &link{bytes: rate.NewLimiter(bytesPerS, floodBytes), lines: rate.NewLimiter(linesPerS, floodLines)}
	l.ctx, l.fail = context.WithCancelCause(context.Background())
	return l
}

// gauge is a reader that ends the link when too much comes.
type gauge struct {
	io.ReadCloser
	link *link
	left int // bytes that may come in all; negative: any
}

func (g *gauge) Read(p []byte) (int, error) {
	n, err := g.ReadCloser.Read(p)
	now := time.Now()
	if !g.link.bytes.AllowN(now, n) || !g.link.lines.AllowN(now, bytes.Count(p[:n], []byte("\n"))) {
		g.link.fail(errFlood)
		return 0, errFlood
	}
	if g.left >= 0 && n > g.left {
		g.link.fail(errLarge)
		return 0, errLarge
	}
	if g.left >= 0 {
		g.left -= n
	}
	return n, err
}
