package admin

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"runtime/debug"
	"sync"
	"syscall"
	"time"
)

// SocketName is the name of the control socket in the data directory. A process that can open
// it (mode 0600) can execute every command.
const SocketName = "synthbot.sock"

// Limits of the protocol, which has one command for each connection. The client sends the length of a Request as four
// bytes, big endian, together with its standard input, output and error as file descriptors, and then the Request as
// JSON. The daemon executes it with these files, and sends the exit status as one byte. It cancels the command if the
// client closes the connection.
const (
	maxRequest  = 1 << 20
	files       = 3
	requestTime = 5 * time.Second // for a Request to arrive
	acceptPause = time.Second     // after a connection could not be accepted
)

// Request is one command line for the daemon.
type Request struct {
	Args []string          `json:"args"`
	Env  map[string]string `json:"env,omitempty"` // of the client: TERM, LANG and the like
}

// Executor executes a command and returns its exit status. It must not close the files.
type Executor func(ctx context.Context, r Request, in, out, errs *os.File) int

// Socket receives commands.
type Socket struct{ listener *net.UnixListener }

// ListenControl opens the control socket in dir; Serve closes it. It replaces an existing one:
// the caller holds the lock of the database.
func ListenControl(dir string) (s *Socket, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("control socket: %w", err)
		}
	}()
	name, done, err := socketPath(dir)
	if err != nil {
		return nil, err
	}
	defer done()
	if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: name, Net: "unix"})
	if err != nil {
		return nil, err
	}
	l.SetUnlinkOnClose(false) // the short name does not exist then
	if err := os.Chmod(name, 0o600); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return &Socket{l}, nil
}

// Serve executes commands until ctx ends, and returns when all of them have ended.
func (s *Socket) Serve(ctx context.Context, log *slog.Logger, execute Executor) {
	stop := context.AfterFunc(ctx, func() { _ = s.listener.Close() })
	defer stop()
	var all sync.WaitGroup
	defer all.Wait()
	for {
		c, err := s.listener.AcceptUnix()
		if ctx.Err() != nil {
			return
		}
		if err != nil { // such as too many open files
			log.Warn("control socket: a connection was not accepted", "err", err)
			select {
			case <-ctx.Done():
			case <-time.After(acceptPause):
			}
			continue
		}
		all.Go(func() {
			defer c.Close()
			if err := answer(ctx, c, execute); err != nil {
				log.Warn("control socket", "err", err)
			}
		})
	}
}

// answer reads a command from a connection, executes it and sends its exit status.
func answer(ctx context.Context, c *net.UnixConn, execute Executor) (err error) {
	_ = c.SetReadDeadline(time.Now().Add(requestTime)) // the reads of a bad connection fail, too
	r, given, err := readRequest(c)
	defer func() {
		for _, f := range given {
			_ = f.Close()
		}
		p := recover()
		if p != nil {
			err = fmt.Errorf("command %q panicked: %v\n%s", r.Args, p, debug.Stack())
		}
	}()
	switch {
	case errors.Is(err, errNoCommand):
		return nil
	case err != nil:
		return err
	}
	_ = c.SetReadDeadline(time.Time{})
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() { // the client sends nothing more, so a read returns when it is gone
		_, _ = c.Read(make([]byte, 1))
		cancel()
	}()
	status := execute(ctx, r, given[0], given[1], given[2])
	_, err = c.Write([]byte{byte(status)})
	if ctx.Err() != nil {
		return nil // the client is gone
	}
	return err
}

// errNoCommand is the error if the client closed the connection without a command.
var errNoCommand = errors.New("unused connection")

func readRequest(c *net.UnixConn) (r Request, given []*os.File, err error) {
	head := make([]byte, 4)
	rights := make([]byte, syscall.CmsgSpace(files*4))
	n, m, _, _, err := c.ReadMsgUnix(head, rights)
	switch {
	case errors.Is(err, io.EOF):
		return r, nil, errNoCommand
	case err != nil:
		return r, nil, err
	}
	if given, err = parseFiles(rights[:m]); err != nil {
		return r, given, err
	}
	if _, err := io.ReadFull(c, head[n:]); err != nil {
		return r, given, err
	}
	size := binary.BigEndian.Uint32(head)
	if size > maxRequest {
		return r, given, fmt.Errorf("a command of %d bytes", size)
	}
	body := make([]byte, size) // all of it is read: answer takes a further byte for the end of the client
	if _, err = io.ReadFull(c, body); err == nil {
		err = json.Unmarshal(body, &r)
	}
	return r, given, err
}

func parseFiles(rights []byte) (given []*os.File, err error) {
	messages, err := syscall.ParseSocketControlMessage(rights)
	if err != nil {
		return nil, err
	}
	for i := range messages {
		fds, err := syscall.ParseUnixRights(&messages[i])
		if err != nil {
			return given, err
		}
		for _, fd := range fds {
			syscall.CloseOnExec(fd)
			given = append(given, os.NewFile(uintptr(fd), "client"))
		}
	}
	if len(given) != files {
		return given, fmt.Errorf("%d files came with the command, want %d", len(given), files)
	}
	return given, nil
}

// Control is a connection to the daemon.
type Control struct{ conn *net.UnixConn }

// DialControl connects to the daemon that serves dir. ok is false if there is none.
func DialControl(dir string) (c *Control, ok bool) {
	name, done, err := socketPath(dir)
	if err != nil {
		return nil, false
	}
	defer done()
	conn, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: name, Net: "unix"})
	if err != nil {
		return nil, false
	}
	return &Control{conn}, true
}

// Run makes the daemon execute a command with these files, and returns its exit status. It blocks until then, or
// until ctx ends. It closes the connection.
func (c *Control) Run(ctx context.Context, r Request, in, out, errs *os.File) (status int, err error) {
	defer c.conn.Close()
	defer context.AfterFunc(ctx, func() { _ = c.conn.Close() })()
	body, err := json.Marshal(r)
	if err != nil {
		return 0, err
	}
	rights := syscall.UnixRights(int(in.Fd()), int(out.Fd()), int(errs.Fd()))
	size := binary.BigEndian.AppendUint32(nil, uint32(len(body)))
	if _, _, err = c.conn.WriteMsgUnix(size, rights, nil); err == nil {
		_, err = c.conn.Write(body)
	}
	if err != nil {
		return 0, fmt.Errorf("daemon: %w", err)
	}
	one := make([]byte, 1)
	if _, err := io.ReadFull(c.conn, one); err != nil {
		if ctx.Err() != nil {
			return 0, ctx.Err()
		}
		return 0, errors.New("the daemon ended before the command did")
	}
	return int(one[0]), nil
}

// Close closes an unused connection.
func (c *Control) Close() error { return c.conn.Close() }

// socketPath returns a path of the socket that is short enough for the system (108 bytes). done releases it.
func socketPath(dir string) (name string, done func(), err error) {
	name = filepath.Join(dir, SocketName)
	if len(name) < 100 {
		return name, func() {}, nil
	}
	d, err := os.Open(dir)
	if err != nil {
		return "", nil, err
	}
	return fmt.Sprintf("/proc/self/fd/%d/%s", d.Fd(), SocketName), func() { _ = d.Close() }, nil
}
