package daemon

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"runtime/debug"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"synthbot/core/document"
	"synthbot/core/txt"
)

// PrepareProcess changes how the process of a daemon ends. A crash ends it by SIGABRT, because Go's usual exit status
// is that of a wrong configuration, after which systemd does not restart the bot. No core dump is written: it would
// contain secrets. A write to a pipe that nobody reads any more, as to the log, fails instead of ending the process.
func PrepareProcess() {
	debug.SetTraceback("crash")
	_ = syscall.Setrlimit(syscall.RLIMIT_CORE, &syscall.Rlimit{}) // systemd may forbid it, and sets it in the unit
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)       // not Ignore, which started programs would inherit
}

// ReleasePages drops the pages of the program's file from memory, if Linux lists them. Only the start reads 5 of its
// 25 MiB. The kernel loads pages that are still needed again when they are read, usually from its cache.
func ReleasePages() {
	maps, err := os.ReadFile("/proc/self/smaps")
	if err != nil {
		return
	}
	self, err := os.Executable()
	if err != nil {
		return
	}
	var from, to uintptr
	for line := range strings.Lines(string(maps)) { // see proc_pid_smaps(5)
		f := strings.Fields(line)
		switch {
		case !strings.HasSuffix(f[0], ":"): // the next mapping
			from, to = 0, 0
			if len(f) == 6 && f[5] == self && !strings.Contains(f[1], "w") {
				_, _ = fmt.Sscanf(f[0], "%x-%x", &from, &to)
			}
		case f[0] == "Anonymous:" && f[1] == "0" && from < to: // all pages are those of the file
			_, _, _ = syscall.Syscall(syscall.SYS_MADVISE, from, to-from, syscall.MADV_DONTNEED)
		}
	}
}

// Limits of the process that reads a PDF.
const (
	PdfCommand = "pdf-text"
	pdfTime    = 10 * time.Second
	pdfMemory  = 192 << 20 // bytes; above, the process fails
	pdfHeap    = 128 << 20 // bytes; above, the garbage collector runs all the time
	pdfInput   = 16 << 20
	pdfOutput  = 1 << 20
	maxPDFs    = 1   // processes at a time
	pdfReason  = 200 // bytes of its error text
)

// runtimeFailed is the exit status of Go's runtime when it gets no more memory. The parser's panics are recovered.
const runtimeFailed = 2

// pdfReader reads PDFs. The capacity of the channel limits how many at a time.
type pdfReader chan struct{}

// text returns the text of a PDF. It waits until there is a free slot.
func (r pdfReader) text(ctx context.Context, data []byte) (string, error) {
	select {
	case r <- struct{}{}:
		defer func() { <-r }()
		ctx, cancel := context.WithTimeout(ctx, pdfTime)
		defer cancel()
		return readPDF(ctx, data)
	case <-ctx.Done():
		return "", errors.New("pdf: too many others are being read")
	}
}

// ServePDF is the body of the PDF process: it reads a PDF from in and writes its text to out.
func ServePDF(in io.Reader, out io.Writer) error {
	if err := limitPDF(); err != nil {
		return fmt.Errorf("limits: %w", err)
	}
	data, err := io.ReadAll(io.LimitReader(in, pdfInput))
	if err != nil {
		return err
	}
	stdout := os.Stdout
	os.Stdout = nil // the parser prints there for debugging, which would be a part of the text
	text, err := document.PDFText(data)
	os.Stdout = stdout
	if err != nil {
		return err
	}
	_, err = io.WriteString(out, text)
	return err
}

// limitPDF limits the resources of this process, and makes it the first one that Linux kills if memory runs out.
func limitPDF() error {
	for what, limit := range map[int]uint64{
		unix.RLIMIT_CPU: uint64(pdfTime / time.Second), unix.RLIMIT_DATA: pdfMemory,
		unix.RLIMIT_CORE: 0, unix.RLIMIT_FSIZE: 0,
	} {
		if err := unix.Setrlimit(what, &unix.Rlimit{Cur: limit, Max: limit}); err != nil {
			return err
		}
	}
	debug.SetMemoryLimit(pdfHeap)
	err := os.WriteFile("/proc/self/oom_score_adj", []byte("1000"), 0)
	if errors.Is(err, fs.ErrNotExist) { // not Linux
		return nil
	}
	return err
}

// pdfProcess returns the command of a PDF process, which is not started yet.
func pdfProcess(ctx context.Context, in io.Reader) (*exec.Cmd, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	c := exec.CommandContext(ctx, self, PdfCommand)
	c.Env = []string{"GOMAXPROCS=1", "GOTRACEBACK=none"} // no other variables
	c.Stdin, c.WaitDelay = in, time.Second
	return c, nil
}

func readPDF(ctx context.Context, data []byte) (string, error) {
	c, err := pdfProcess(ctx, bytes.NewReader(data))
	if err != nil {
		return "", fmt.Errorf("pdf: %w", err)
	}
	out, errs := cappedBuffer{most: pdfOutput}, cappedBuffer{most: pdfReason}
	c.Stdout, c.Stderr = &out, &errs
	err = c.Run()
	switch {
	case err == nil:
		return out.kept.String(), nil
	case ctx.Err() != nil:
		return "", errors.New("pdf: it takes too long to read")
	case c.ProcessState.ExitCode() == runtimeFailed:
		return "", errors.New("pdf: it takes more memory than a file may")
	}
	return "", fmt.Errorf("pdf: %w: %s", err, txt.Line(errs.kept.String()))
}

// cappedBuffer keeps the first bytes that are written to it, and drops the rest.
type cappedBuffer struct {
	kept bytes.Buffer
	most int // bytes
}

func (c *cappedBuffer) Write(p []byte) (int, error) {
	c.kept.Write(p[:min(len(p), max(c.most-c.kept.Len(), 0))])
	return len(p), nil
}
