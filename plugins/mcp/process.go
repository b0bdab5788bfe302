package mcp

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"synthbot/core"
	"synthbot/core/txt"
)

// inherited are the variables of the bot's own environment that a server gets.
var inherited = [...]string{"HOME", "LANG", "LC_ALL", "LOGNAME", "PATH", "SystemRoot", "TEMP", "TMP", "TMPDIR", "TZ", "USER"}

// environment is what a server's process finds in its environment.
func environment(own map[string]core.Secret) []string {
	var env []string
	for _, name := range inherited {
		if value, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+value)
		}
	}
	for name, value := range own {
		env = append(env, name+"="+value.Reveal())
	}
	return env
}

// pipes are a process's three, on our side and on its.
type pipes struct {
	in, out, err struct{ ours, theirs *os.File }
}

// spawn starts the server's process, in a group of its own.
func (s *server) spawn() (*link, error) {
	cmd := exec.Command(s.conf.Command[0], s.conf.Command[1:]...)
	cmd.Dir, cmd.Env = s.conf.Dir, environment(s.conf.Env)
	group(cmd)
	p, err := newPipes()
	if err != nil {
		return nil, err
	}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = p.in.theirs, p.out.theirs, p.err.theirs
	err = cmd.Start()
	p.closeTheirs()
	if err != nil {
		p.closeOurs()
		return nil, reason(err)
	}
	l := newLink()
	l.transport = &mcp.IOTransport{Reader: &gauge{p.out.ours, l, -1}, Writer: p.in.ours, MaxLineLength: maxFrame}
	l.work.Go(func() { s.listen(p.err.ours) })
	s.own(cmd, p, l)
	return l, nil
}

// own waits for the process, and ends it with its whole group when the link is
// over.
func (s *server) own(cmd *exec.Cmd, p *pipes, l *link) {
	gone := make(chan struct{})
	l.work.Go(func() {
		err := cmd.Wait()
		stopGroup(cmd, kill) // what it left behind
		close(gone)
		late := time.Now().Add(s.times.grace)
		_ = p.out.ours.SetReadDeadline(late) // somebody outside of the group may hold them open
		_ = p.err.ours.SetReadDeadline(late)
		if err == nil {
			err = errExit
		}
		l.fail(fmt.Errorf("process: %w", err))
	})
	l.work.Go(func() {
		<-l.ctx.Done()
		select {
		case <-gone:
		default:
			stopGroup(cmd, terminate)
		}
		timer := time.NewTimer(s.times.grace)
		defer timer.Stop()
		select {
		case <-gone:
		case <-timer.C:
			stopGroup(cmd, kill)
			<-gone
		}
		p.closeOurs()
	})
}

func newPipes() (*pipes, error) {
	p := &pipes{}
	var errs [3]error
	p.in.theirs, p.in.ours, errs[0] = os.Pipe()
	p.out.ours, p.out.theirs, errs[1] = os.Pipe()
	p.err.ours, p.err.theirs, errs[2] = os.Pipe()
	if err := errors.Join(errs[:]...); err != nil {
		p.closeOurs()
		p.closeTheirs()
		return nil, err
	}
	return p, nil
}

func (p *pipes) closeOurs() {
	for _, f := range []*os.File{p.in.ours, p.out.ours, p.err.ours} {
		if f != nil {
			_ = f.Close() // it may be closed already
		}
	}
}

func (p *pipes) closeTheirs() {
	for _, f := range []*os.File{p.in.theirs, p.out.theirs, p.err.theirs} {
		if f != nil {
			_ = f.Close()
		}
	}
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

// listen writes a server's error output into the log, and reads on where it is
// more than the log takes.
func (s *server) listen(r io.Reader) {
	reader := bufio.NewReaderSize(r, 4096)
	room, since := logPerMin, time.Now()
	for {
		text, err := reader.ReadSlice('\n')
		if now := time.Now(); now.Sub(since) > time.Minute {
			room, since = logPerMin, now
		}
		said := txt.ClipBytes(line(strings.ToValidUTF8(string(text), "�")), logLine)
		if room -= len(said); said != "" && room > 0 {
			s.log.Debug("mcp server says", "text", s.redact(said))
		}
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			return
		}
	}
}

// redactor takes a server's secrets out of texts.
func redactor(conf *Server) func(string) string {
	return core.Conceal(slices.AppendSeq(slices.Collect(maps.Values(conf.Env)), maps.Values(conf.Headers))...).Replace
}
