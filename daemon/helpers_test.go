package daemon

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/ledongthuc/pdf"
	"golang.org/x/sys/unix"

	"synthbot/core/coretest"
	"synthbot/memory"
)

func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == PdfCommand { // the daemon starts itself to read a PDF
		refuseSecond()
		_, err := os.Stat(noisyPDF)
		pdf.DebugOn = err == nil
		if err := ServePDF(os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// onlyPDF is a file in the working directory. If it exists, a process that reads a PDF locks it until it ends.
const onlyPDF = "only-pdf"

// noisyPDF is a file in the working directory. If it exists, the parser of PDFs prints what it does.
const noisyPDF = "noisy-pdf"

// refuseSecond ends this process if another one has locked onlyPDF.
func refuseSecond() {
	fd, err := unix.Open(onlyPDF, unix.O_RDONLY, 0) // stays open
	if err == nil {
		err = unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		fmt.Fprintln(os.Stderr, "another process reads a PDF:", err)
		os.Exit(1)
	}
}

func write(t testing.TB, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// until waits until a condition holds.
func until(t testing.TB, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(coretest.Patience); !holds(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("timed out waiting for a condition")
		}
	}
}

// journal is a buffer that can be read while others write to it.
type journal struct {
	mu sync.Mutex
	b  bytes.Buffer
}

// Write implements io.Writer.
func (j *journal) Write(p []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.b.Write(p)
}

// take returns what was written since the last time.
func (j *journal) take() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	defer j.b.Reset()
	return j.b.String()
}

// inspectBot builds a bot on Telegram with a store of its own, and calls inspect with it.
func inspectBot(t *testing.T, o memory.Options, inspect func(*Bot) error) {
	t.Helper()
	dir := t.TempDir()
	file := filepath.Join(dir, "config.toml")
	write(t, file, "[bot]\ndata_dir = \"data\"\n[interfaces.telegram]\ntoken = \"1:a\"\n")
	p := &Env{File: file, Getenv: func(string) string { return "" }, Clock: time.Now, Err: io.Discard}
	c, err := p.Load()
	if err != nil {
		t.Fatal(err)
	}
	l := RunOptions{
		Config: c, Log: p.Logger(c, 0), Interfaces: InspectionInterfaces, Inspect: inspect,
		Open: func() (Store, error) { return memory.Open(filepath.Join(dir, "data"), o) },
	}
	if err := p.Run(t.Context(), l); err != nil {
		t.Fatal(err)
	}
}
