package mcp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"synthbot/core"
	"synthbot/core/loop"
	"synthbot/core/secret"
)

// times are the pauses and timeouts of a server.
type times struct {
	minPause, maxPause time.Duration // before it is started again
	healthyAfter       time.Duration // the next pause is minPause again if it ran that long
	grace              time.Duration // for its process and session to end
	refreshPause       time.Duration // between two readings of changed lists
	probeEvery         time.Duration
	probeTimeout       time.Duration
}

type server struct {
	conf      Server
	log       *slog.Logger // with the name of the server
	messenger core.Messenger
	times     times
	dial      func() (*connection, error)
	redact    func(string) string // conceals its secrets in texts
	onChange  func()              // is called when conn or entries have changed

	conn    atomic.Pointer[connection] // nil while there is no session
	entries atomic.Pointer[[]entry]    // its actions
}

func newServer(h core.Host, conf Server, onChange func()) *server {
	secrets := slices.AppendSeq(slices.Collect(maps.Values(conf.Env)), maps.Values(conf.Headers))
	s := &server{
		conf: conf, log: h.Log.With("server", conf.Name), messenger: h.Messenger, onChange: onChange,
		redact: secret.Conceal(secrets...).Replace,
		times: times{
			minPause: time.Second, maxPause: 5 * time.Minute, healthyAfter: time.Minute, grace: 3 * time.Second,
			refreshPause: 2 * time.Second, probeEvery: time.Minute, probeTimeout: 10 * time.Second,
		},
	}
	s.dial = s.startProcess
	if conf.URL != "" {
		s.dial = s.connectHTTP
	}
	return s
}

func (s *server) run(ctx context.Context) {
	pause := s.times.minPause
	loop.Repeat(ctx, nil, func() time.Duration {
		began := time.Now()
		err := s.runOnce(ctx)
		if ctx.Err() != nil {
			return 0
		}
		if time.Since(began) >= s.times.healthyAfter {
			pause = s.times.minPause
		}
		wait := pause + rand.N(pause/4+1)
		s.log.Warn("mcp server is gone", "err", s.redact(line(err.Error())), "retry_in", wait.Round(time.Millisecond))
		pause = min(2*pause, s.times.maxPause)
		return wait
	})
}

// runOnce starts the server, and blocks until it or ctx ends.
func (s *server) runOnce(ctx context.Context) (err error) {
	l, err := s.dial()
	if err != nil {
		return err
	}
	defer func() {
		l.end(errStopped)
		l.work.Wait()
		if l.sessionErr != nil && !errors.Is(err, l.sessionErr) {
			err = fmt.Errorf("%w: %w", l.sessionErr, err)
		}
	}()
	if err := s.connect(ctx, l); err != nil {
		return err
	}
	l.work.Go(func() {
		l.sessionErr = l.session.Wait()
		loop.Sleep(l.ctx, s.times.grace/10) // the exit of the process is a better reason
		l.end(errEnded)
	})
	defer func() { // close the session, or end the connection if that takes too long
		defer time.AfterFunc(s.times.grace, func() { l.end(errStopped) }).Stop()
		_ = l.session.Close() // an error does not matter any more
	}()
	if _, err := s.refresh(ctx, l); err != nil {
		return err
	}
	s.conn.Store(l)
	s.log.Info("mcp server connected", "actions", len(*s.entries.Load()))
	s.onChange()
	defer func() {
		s.conn.Store(nil)
		s.onChange()
	}()
	return s.watch(ctx, l)
}

func (s *server) connect(ctx context.Context, l *connection) error {
	ctx, cancel := context.WithTimeoutCause(ctx, s.conf.Start, errStart)
	defer cancel()
	stop := context.AfterFunc(ctx, func() { l.end(context.Cause(ctx)) }) // not all of the SDK heeds its context
	// The client has no capabilities: no sampling, no elicitation, no roots.
	client := mcp.NewClient(&mcp.Implementation{Name: "synthbot", Version: "1"}, &mcp.ClientOptions{
		Capabilities:               &mcp.ClientCapabilities{},
		ToolListChangedHandler:     func(context.Context, *mcp.ToolListChangedRequest) { loop.Notify(l.changed) },
		PromptListChangedHandler:   func(context.Context, *mcp.PromptListChangedRequest) { loop.Notify(l.changed) },
		ResourceListChangedHandler: func(context.Context, *mcp.ResourceListChangedRequest) { loop.Notify(l.changed) },
	})
	session, err := client.Connect(ctx, l.transport, nil)
	if !stop() || ctx.Err() != nil {
		if session != nil {
			_ = session.Close() // the connection has ended
		}
		return context.Cause(ctx)
	}
	if err != nil {
		if !loop.Sleep(l.ctx, s.times.grace/10) { // the exit of the process is a better reason
			err = fmt.Errorf("%w: %w", err, context.Cause(l.ctx))
		}
		return err
	}
	l.session = session
	return nil
}

// watch probes the server and reads changed lists, until the connection or ctx ends.
func (s *server) watch(ctx context.Context, l *connection) error {
	beat := time.NewTicker(s.times.probeEvery)
	defer beat.Stop()
	changed, calm := l.changed, (<-chan time.Time)(nil)
	for {
		var err error
		select {
		case <-ctx.Done():
			return errStopped
		case <-l.ctx.Done():
			return context.Cause(l.ctx)
		case <-calm:
			changed, calm = l.changed, nil
		case <-changed:
			changed, calm = nil, time.After(s.times.refreshPause) // do not read them all the time
			err = s.update(ctx, l)
		case <-l.probeSoon:
			err = s.probe(ctx, l)
		case <-beat.C:
			if l.calls.Load() == 0 { // a server that does one thing at a time answers later
				err = s.probe(ctx, l)
			}
		}
		if err != nil {
			return err
		}
	}
}

// update reads the lists again, and announces what changed.
func (s *server) update(ctx context.Context, l *connection) error {
	changed, err := s.refresh(ctx, l)
	if changed {
		s.onChange()
	}
	return err
}

// probe returns an error if the server does not answer a ping. An error that the server returns is an answer.
func (s *server) probe(ctx context.Context, l *connection) error {
	within, cancel := context.WithTimeout(ctx, s.times.probeTimeout)
	defer cancel()
	err := l.session.Ping(within, nil)
	_, answered := serverError(err)
	if err == nil || answered || ctx.Err() != nil {
		return nil
	}
	if !loop.Sleep(l.ctx, s.times.grace/10) { // the end of the connection is a better reason
		return context.Cause(l.ctx)
	}
	return errUnresponsive
}

// withSession calls f with the session. safe says that the call may be repeated.
func (s *server) withSession(ctx context.Context, safe bool, f func(context.Context, *mcp.ClientSession) error) error {
	l := s.conn.Load()
	if l == nil {
		return core.Errorf(core.Temporary, "The tool server %s is not connected at the moment.", s.conf.Name)
	}
	l.calls.Add(1)
	defer l.calls.Add(-1)
	within, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(l.ctx, cancel)()
	if err := f(within, l.session); err != nil {
		return s.callError(ctx, l, safe, err)
	}
	return nil
}

// callError returns the error of a call for users, and has the server probed if it may hang.
func (s *server) callError(ctx context.Context, l *connection, safe bool, err error) error {
	var already *core.Error
	said, answered := serverError(err)
	gone := l.ctx.Err() != nil || errors.Is(err, mcp.ErrConnectionClosed) || errors.Is(err, io.EOF)
	switch {
	case errors.As(err, &already):
		return already
	case ctx.Err() != nil:
		loop.Notify(l.probeSoon)
		return fmt.Errorf("mcp server %s: %w", s.conf.Name, ctx.Err())
	case gone && safe:
		return core.Errorf(core.Temporary, "The tool server %s ended during the call.", s.conf.Name)
	case gone:
		text := "The tool server %s ended during the call; it is not known whether this was done."
		return core.Errorf(core.Broken, text, s.conf.Name)
	case answered:
		kind := core.Broken
		if said.Code == jsonrpc.CodeInvalidParams {
			kind = core.Invalid
		}
		return core.Errorf(kind, "The tool server %s says: %q", s.conf.Name, s.excerpt(said.Message))
	}
	loop.Notify(l.probeSoon)
	return &core.Error{
		Kind: core.Temporary, Text: fmt.Sprintf("The tool server %s cannot be reached at the moment.", s.conf.Name),
		Err: errors.New(s.redact(line(err.Error()))),
	}
}

// serverError returns the error that the server itself returned. answered is false if err is
// another one: the SDK uses the same type for its own errors.
func serverError(err error) (said *jsonrpc.Error, answered bool) {
	if !errors.As(err, &said) {
		return nil, false
	}
	switch said.Message {
	case "rejected by transport", "server is closing", "client is closing", "unknown error":
		return nil, false
	}
	return said, true
}
