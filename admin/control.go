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

// SocketName is the control socket's name within the data directory. Whoever may
// open it (mode 0600) may do everything.
const SocketName = "synthbot.sock"

// The protocol of the socket, one command a connection. The client sends an Ask:
// its length as four bytes, big endian, with which its standard input, output
// and error travel as file descriptors, and the Ask as JSON. The daemon carries
// it out on these files and sends the exit status as one byte. When the client
// closes the connection before, the command is cut short.
const (
	maxAsk  = 1 << 20
	files   = 3
	askTime = 5 * time.Second // for an Ask to arrive

	acceptAgain = time.Second // after a connection could not be accepted
)

// Ask is one command line for the daemon.
type Ask struct {
	Args []string          `json:"args"`
	Env  map[string]string `json:"env,omitempty"` // of the client: TERM, LANG and the like
}

// Carry carries a command out and returns its exit status. The files are the
// client's; Carry does not close them.
type Carry func(ctx context.Context, a Ask, in, out, errs *os.File) int

// Socket takes commands in.
type Socket struct{ listener listener }

// listener is a *net.UnixListener.
type listener interface {
	AcceptUnix() (*net.UnixConn, error)
	Close() error
}

// ListenControl opens the control socket in dir; Serve closes it. A socket that is
// there already is replaced: who calls this holds the lock of the database.
func ListenControl(dir string) (*Socket, error) {
	name, done, err := short(dir)
	if err != nil {
		return nil, fmt.Errorf("control socket: %w", err)
	}
	defer done()
	if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("control socket: %w", err)
	}
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: name, Net: "unix"})
	if err != nil {
		return nil, fmt.Errorf("control socket: %w", err)
	}
	l.SetUnlinkOnClose(false) // the name may be a short one that is gone by then
	if err := os.Chmod(name, 0o600); err != nil {
		return nil, errors.Join(fmt.Errorf("control socket: %w", err), l.Close())
	}
	return &Socket{l}, nil
}

// Serve takes commands until ctx ends and all of them are over.
func (s *Socket) Serve(ctx context.Context, log *slog.Logger, carry Carry) error {
	stop := context.AfterFunc(ctx, func() { _ = s.listener.Close() })
	defer stop()
	var all sync.WaitGroup
	defer all.Wait()
	for {
		c, err := s.listener.AcceptUnix()
		if ctx.Err() != nil {
			return nil
		}
		if errors.Is(err, net.ErrClosed) {
			return fmt.Errorf("control socket: %w", err)
		}
		if err != nil { // too many open files, say
			log.Warn("control socket: a command was not taken", "err", err)
			select {
			case <-ctx.Done():
			case <-time.After(acceptAgain):
			}
			continue
		}
		all.Go(func() {
			defer c.Close()
			if err := answer(ctx, c, carry); err != nil {
				log.Warn("control socket", "err", err)
			}
		})
	}
}

// answer serves one connection.
func answer(ctx context.Context, c *net.UnixConn, carry Carry) error {
	if err := c.SetReadDeadline(time.Now().Add(askTime)); err != nil {
		return err
	}
	a, given, err := readAsk(c)
	defer closeAll(given)
	if err != nil {
		return err
	}
	if err := c.SetReadDeadline(time.Time{}); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() { // the client says nothing more: it is there, or it is gone
		_, _ = c.Read(make([]byte, 1))
		cancel()
	}()
	status, err := carried(ctx, carry, a, given)
	if err != nil {
		return err
	}
	_, err = c.Write([]byte{byte(status)})
	if ctx.Err() != nil {
		return nil // nobody wants to know any more
	}
	return err
}

// carried is carry; a panic in a command is that command's error.
func carried(ctx context.Context, carry Carry, a Ask, given []*os.File) (status int, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("command %q panicked: %v\n%s", a.Args, r, debug.Stack())
		}
	}()
	return carry(ctx, a, given[0], given[1], given[2]), nil
}

func readAsk(c *net.UnixConn) (a Ask, given []*os.File, err error) {
	head := make([]byte, 4)
	rights := make([]byte, syscall.CmsgSpace(files*4))
	n, m, _, _, err := c.ReadMsgUnix(head, rights)
	if err != nil {
		return a, nil, err
	}
	if given, err = filesOf(rights[:m]); err != nil {
		return a, given, err
	}
	if _, err := io.ReadFull(c, head[n:]); err != nil {
		return a, given, err
	}
	size := binary.BigEndian.Uint32(head)
	if size > maxAsk {
		return a, given, fmt.Errorf("a command of %d bytes", size)
	}
	body := make([]byte, size)
	if _, err := io.ReadFull(c, body); err != nil {
		return a, given, err
	}
	return a, given, json.Unmarshal(body, &a)
}

// filesOf takes the descriptors out of a control message.
func filesOf(rights []byte) (given []*os.File, err error) {
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

func closeAll(list []*os.File) {
	for _, f := range list {
		_ = f.Close()
	}
}

// Control is a connection to the daemon.
type Control struct{ conn *net.UnixConn }

// DialControl connects to the daemon that serves dir; ok is false where none does.
func DialControl(dir string) (c *Control, ok bool) {
	name, done, err := short(dir)
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

// Run lets the daemon carry a command out on these files and returns its exit
// status. It blocks until that is done, or ctx ends. It closes the connection.
func (c *Control) Run(ctx context.Context, a Ask, in, out, errs *os.File) (status int, err error) {
	defer c.conn.Close()
	defer context.AfterFunc(ctx, func() { _ = c.conn.Close() })()
	body, err := json.Marshal(a)
	if err != nil {
		return 0, err
	}
	rights := syscall.UnixRights(int(in.Fd()), int(out.Fd()), int(errs.Fd()))
	if _, _, err := c.conn.WriteMsgUnix(binary.BigEndian.AppendUint32(nil, uint32(len(body))), rights, nil); err != nil {
		return 0, fmt.Errorf("daemon: %w", err)
	}
	if _, err := c.conn.Write(body); err != nil {
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

// Close ends a connection that is not used.
func (c *Control) Close() error { return c.conn.Close() }

// short is a name of the socket that is short enough for the system (108 bytes),
// however long the directory's is. done gives back what the name hangs on.
func short(dir string) (name string, done func(), err error) {
	if name = filepath.Join(dir, SocketName); len(name) < 100 {
		return name, func() {}, nil
	}
	d, err := os.Open(dir)
	if err != nil {
		return "", nil, err
	}
	return fmt.Sprintf("/proc/self/fd/%d/%s", d.Fd(), SocketName), func() { _ = d.Close() }, nil
}
