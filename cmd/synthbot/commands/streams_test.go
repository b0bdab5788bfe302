package commands

import (
	"context"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"synthbot/daemon"
)

// run runs one command line with pipes, like a shell, and returns the exit status.
func run(ctx context.Context, args []string, in io.Reader, out, errs io.Writer) int {
	if in == nil {
		in = strings.NewReader("")
	}
	var s streams
	defer s.close()
	e := &daemon.Env{In: s.in(in), Out: s.out(out), Getenv: os.Getenv, Clock: time.Now}
	e.Err = e.Out
	if errs != out {
		e.Err = s.out(errs)
	}
	return Main(ctx, e, args, 20*time.Second, 15*time.Second)
}

// streams provides files for readers and writers that are not files.
type streams struct {
	ours   []*os.File // closed when the command has ended
	copies sync.WaitGroup
}

func (s *streams) in(r io.Reader) *os.File {
	if f, ok := r.(*os.File); ok {
		return f
	}
	theirs, ours, err := os.Pipe()
	if err != nil {
		panic(err)
	}
	s.ours = append(s.ours, theirs)
	go func() { // r may never return
		_, _ = io.Copy(ours, r)
		_ = ours.Close()
	}()
	return theirs
}

func (s *streams) out(w io.Writer) *os.File {
	if f, ok := w.(*os.File); ok {
		return f
	}
	ours, theirs, err := os.Pipe()
	if err != nil {
		panic(err)
	}
	s.ours = append(s.ours, theirs)
	s.copies.Go(func() {
		_, _ = io.Copy(w, ours)
		_ = ours.Close()
	})
	return theirs
}

// close closes the files and waits until all output has been copied.
func (s *streams) close() {
	for _, f := range s.ours {
		_ = f.Close()
	}
	s.copies.Wait()
}
