package coretest

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
	"unsafe"
)

// Terminal is a pseudo terminal. A test presses keys and looks at the screen, as a user does.
type Terminal struct {
	File *os.File // input and output of the program

	t      testing.TB
	master *os.File

	mu      sync.Mutex
	changed *sync.Cond
	screen  *Screen
	late    bool // See has waited too long
	written string
}

// NewTerminal opens a terminal. It skips the test if the system has no pseudo terminals.
func NewTerminal(t testing.TB, columns, rows int) *Terminal {
	t.Helper()
	x := &Terminal{t: t, screen: NewScreen(columns, rows)}
	x.changed = sync.NewCond(&x.mu)
	var err error
	x.master, err = os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("no pseudo terminals here: %v", err)
	}
	var unlock, number int32
	x.ioctl(syscall.TIOCSPTLCK, unsafe.Pointer(&unlock))
	x.ioctl(syscall.TIOCGPTN, unsafe.Pointer(&number))
	x.File, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("no pseudo terminals here: %v", err)
	}
	x.setSize(columns, rows)
	var copied sync.WaitGroup
	copied.Go(x.copy)
	t.Cleanup(func() {
		if t.Failed() {
			x.mu.Lock()
			t.Logf("written: %q", x.written)
			x.mu.Unlock()
		}
		x.File.Close()
		x.master.Close()
		copied.Wait()
	})
	return x
}

func (x *Terminal) ioctl(request uintptr, value unsafe.Pointer) {
	x.t.Helper()
	conn, err := x.master.SyscallConn()
	if err != nil {
		x.t.Fatal(err)
	}
	err = conn.Control(func(fd uintptr) {
		if _, _, e := syscall.Syscall(syscall.SYS_IOCTL, fd, request, uintptr(value)); e != 0 {
			x.t.Error(e)
		}
	})
	if err != nil {
		x.t.Fatal(err)
	}
}

// copy shows the output as it comes.
func (x *Terminal) copy() {
	buffer := make([]byte, 4096)
	for {
		n, err := x.master.Read(buffer)
		x.mu.Lock()
		_, _ = x.screen.Write(buffer[:n])
		x.written += string(buffer[:n])
		x.changed.Broadcast()
		x.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// Press sends keys to the program.
func (x *Terminal) Press(keys string) {
	x.t.Helper()
	if _, err := x.master.WriteString(keys); err != nil {
		x.t.Fatal(err)
	}
}

// Hangup closes the terminal.
func (x *Terminal) Hangup() { x.master.Close() }

// Written returns everything that was written to the terminal, with its control sequences.
func (x *Terminal) Written() string {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.written
}

// See waits until ok returns true for the screen. what describes that, for the error.
func (x *Terminal) See(what string, ok func(*Screen) bool) {
	x.t.Helper()
	timer := time.AfterFunc(Patience, func() {
		x.mu.Lock()
		defer x.mu.Unlock()
		x.late = true
		x.changed.Broadcast()
	})
	defer timer.Stop()
	x.mu.Lock()
	defer x.mu.Unlock()
	for !ok(x.screen) {
		if x.late {
			x.t.Fatalf("never saw %s:\n%s\ncursor at %d,%d", what, x.screen.Text(), x.screen.Row, x.screen.Col)
		}
		x.changed.Wait()
	}
}

// Shows waits until Screen.Text is exactly these rows.
func (x *Terminal) Shows(rows ...string) {
	x.t.Helper()
	text := strings.Join(rows, "\n")
	x.See(fmt.Sprintf("%q", text), func(s *Screen) bool { return s.Text() == text })
}

// Contains waits until a text is shown.
func (x *Terminal) Contains(text string) {
	x.t.Helper()
	x.See(fmt.Sprintf("%q", text), func(s *Screen) bool { return strings.Contains(s.Text(), text) })
}

// Resize changes the size as a user does, and waits until the program has drawn again.
func (x *Terminal) Resize(columns, rows int) {
	x.t.Helper()
	x.mu.Lock()
	before := len(x.written)
	defer x.See("the line drawn again", func(*Screen) bool { return len(x.written) > before })
	x.screen.resize(columns)
	x.screen.height = rows
	x.mu.Unlock()
	x.setSize(columns, rows)
	if err := syscall.Kill(os.Getpid(), syscall.SIGWINCH); err != nil { // no controlling terminal reports it
		x.t.Fatal(err)
	}
}

func (x *Terminal) setSize(columns, rows int) {
	size := [4]uint16{uint16(rows), uint16(columns)}
	x.ioctl(syscall.TIOCSWINSZ, unsafe.Pointer(&size))
}
