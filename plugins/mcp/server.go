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

// times are the pauses in a server's life.
type times struct {
	pause, longest time.Duration // before it is started again: the first one, and the longest
	steady         time.Duration // after which it counts as healthy again
	grace          time.Duration // for what is asked to end
	calm           time.Duration // between two readings of its lists
	beat           time.Duration // between two looks at whether it is alive
	probe          time.Duration // that such a look may take
}

type server struct {
	conf   Server
	log    *slog.Logger // says which server it is
	desk   core.Messenger
	times  times
	dial   func() (*link, error)
	redact func(string) string // takes its secrets out of texts
	moved  func()              // the entries are others now

	link    atomic.Pointer[link]    // nil while there is no session
	entries atomic.Pointer[[]entry] // what it offers
}

func newServer(h core.Host, conf Server, moved func()) *server {
	secrets := slices.AppendSeq(slices.Collect(maps.Values(conf.Env)), maps.Values(conf.Headers))
	s := &server{
		conf: conf, log: h.Log.With("server", conf.Name), desk: h.Messenger, moved: moved,
		redact: secret.Conceal(secrets...).Replace,
		times: times{
			pause: time.Second, longest: 5 * time.Minute, steady: time.Minute, grace: 3 * time.Second,
			calm: 2 * time.Second, beat: time.Minute, probe: 10 * time.Second,
		},
	}
	s.dial = s.spawn
	if conf.URL != "" {
		s.dial = s.reach
	}
	return s
}

// run keeps the server alive until ctx ends.
func (s *server) run(ctx context.Context) {
	pause := s.times.pause
	loop.Repeat(ctx, nil, func() time.Duration {
		began := time.Now()
		err := s.live(ctx)
		if ctx.Err() != nil {
			return 0
		}
		if time.Since(began) >= s.times.steady {
			pause = s.times.pause
		}
		wait := pause + rand.N(pause/4+1)
		s.log.Warn("mcp server is gone", "err", s.redact(line(err.Error())), "retry_in", wait.Round(time.Millisecond))
		pause = min(2*pause, s.times.longest)
		return wait
	})
}

// sleep reports whether it slept to its end.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// live starts the server and stays with it until it ends, or ctx does.
func (s *server) live(ctx context.Context) (err error) {
	l, err := s.dial()
	if err != nil {
		return err
	}
	defer func() {
		l.fail(errStopped)
		l.work.Wait()
		if l.broke != nil && !errors.Is(err, l.broke) {
			err = fmt.Errorf("%w: %w", l.broke, err)
		}
	}()
	if err := s.open(ctx, l); err != nil {
		return err
	}
	l.work.Go(func() {
		l.broke = l.session.Wait()
		sleep(l.ctx, s.times.grace/10) // how the process ended says more
		l.fail(errEnded)
	})
	defer func() { // in good order if that works soon, else hard
		defer time.AfterFunc(s.times.grace, func() { l.fail(errStopped) }).Stop()
		_ = l.session.Close() // it is over, however it ended
	}()
	if _, err := s.refresh(ctx, l); err != nil {
		return err
	}
	s.link.Store(l)
	s.log.Info("mcp server is there", "actions", len(*s.entries.Load()))
	s.moved()
	defer func() {
		s.link.Store(nil)
		s.moved()
	}()
	return s.attend(ctx, l)
}

func (s *server) open(ctx context.Context, l *link) error {
	ctx, cancel := context.WithTimeoutCause(ctx, s.conf.Start, errStart)
	defer cancel()
	stop := context.AfterFunc(ctx, func() { l.fail(context.Cause(ctx)) }) // not all of the SDK heeds its context
	// This end can do nothing for the server: no sampling, no elicitation, no roots.
	client := mcp.NewClient(&mcp.Implementation{Name: "synthbot", Version: "1"}, &mcp.ClientOptions{
		Capabilities:               &mcp.ClientCapabilities{},
		ToolListChangedHandler:     func(context.Context, *mcp.ToolListChangedRequest) { loop.Notify(l.changed) },
		PromptListChangedHandler:   func(context.Context, *mcp.PromptListChangedRequest) { loop.Notify(l.changed) },
		ResourceListChangedHandler: func(context.Context, *mcp.ResourceListChangedRequest) { loop.Notify(l.changed) },
	})
	session, err := client.Connect(ctx, l.transport, nil)
	if !stop() || ctx.Err() != nil {
		if session != nil {
			_ = session.Close() // the link is over
		}
		return context.Cause(ctx)
	}
	if err != nil {
		if !sleep(l.ctx, s.times.grace/10) { // how the process ended may say more
			err = fmt.Errorf("%w: %w", err, context.Cause(l.ctx))
		}
		return err
	}
	l.session = session
	return nil
}

func (s *server) attend(ctx context.Context, l *link) error {
	beat := time.NewTicker(s.times.beat)
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
			changed, calm = nil, time.After(s.times.calm) // lists that change all the time are read now and then
			var news bool
			if news, err = s.refresh(ctx, l); news {
				s.moved()
			}
		case <-l.doubt:
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

// probe reports whether the server answers at all; an error of its own is an
// answer.
func (s *server) probe(ctx context.Context, l *link) error {
	within, cancel := context.WithTimeout(ctx, s.times.probe)
	defer cancel()
	err := l.session.Ping(within, nil)
	_, answered := answerOf(err)
	if err == nil || answered || ctx.Err() != nil {
		return nil
	}
	if !sleep(l.ctx, s.times.grace/10) { // it has ended, and how says more
		return context.Cause(l.ctx)
	}
	return errDeaf
}

// use lends the session to a call. safe says that the call may be made again.
func (s *server) use(ctx context.Context, safe bool, f func(context.Context, *mcp.ClientSession) error) error {
	l := s.link.Load()
	if l == nil {
		return core.Errorf(core.Temporary, "The tool server %s is not there just now.", s.conf.Name)
	}
	l.calls.Add(1)
	defer l.calls.Add(-1)
	within, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(l.ctx, cancel)()
	if err := f(within, l.session); err != nil {
		return s.explain(ctx, l, safe, err)
	}
	return nil
}

func (s *server) explain(ctx context.Context, l *link, safe bool, err error) error {
	var already *core.Error
	said, answered := answerOf(err)
	gone := l.ctx.Err() != nil || errors.Is(err, mcp.ErrConnectionClosed) || errors.Is(err, io.EOF)
	switch {
	case errors.As(err, &already):
		return already
	case ctx.Err() != nil:
		loop.Notify(l.doubt)
		return fmt.Errorf("mcp server %s: %w", s.conf.Name, ctx.Err())
	case gone && safe:
		return core.Errorf(core.Temporary, "The tool server %s ended in the middle of it.", s.conf.Name)
	case gone:
		text := "The tool server %s ended in the middle of it; it is not known whether this was done."
		return core.Errorf(core.Broken, text, s.conf.Name)
	case answered:
		kind := core.Broken
		if said.Code == jsonrpc.CodeInvalidParams {
			kind = core.Invalid
		}
		return core.Errorf(kind, "The tool server %s says: %q", s.conf.Name, s.shown(said.Message))
	}
	loop.Notify(l.doubt)
	return &core.Error{
		Kind: core.Temporary, Text: fmt.Sprintf("The tool server %s cannot be asked just now.", s.conf.Name),
		Err: errors.New(s.redact(line(err.Error()))),
	}
}

// answerOf is what the server itself said of a failure; answered is false where it
// was not the server: the SDK tells its own troubles in the same form.
func answerOf(err error) (said *jsonrpc.Error, answered bool) {
	if !errors.As(err, &said) {
		return nil, false
	}
	switch said.Message {
	case "rejected by transport", "server is closing", "client is closing", "unknown error":
		return nil, false
	}
	return said, true
}
