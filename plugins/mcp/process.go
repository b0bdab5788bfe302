package mcp

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"synthbot/core/program"
	"synthbot/core/txt"
)

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
	l.transport = &mcp.IOTransport{Reader: &gauge{out, l, -1}, Writer: in, MaxLineLength: maxFrame}
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
	room, since := logPerMin, time.Now()
	for {
		text, err := reader.ReadSlice('\n')
		if time.Since(since) > time.Minute {
			room, since = logPerMin, time.Now()
		}
		said := txt.ClipBytes(line(strings.ToValidUTF8(string(text), "�")), logLine)
		room -= len(said)
		if said != "" && room > 0 {
			s.log.Debug("mcp server says", "text", s.redact(said))
		}
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			return
		}
	}
}
