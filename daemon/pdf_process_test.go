//go:build !race

// The process that reads a PDF may take 192 MiB, which the race detector does not fit into.

package daemon

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"synthbot/core/coretest"
)

func TestPDFInItsOwnProcess(t *testing.T) {
	got, err := readPDF(t.Context(), coretest.PDF("The answer is 42."))
	if err != nil || !strings.Contains(got, "The answer is 42.") {
		t.Errorf("got %q, %v, want the document's text", got, err)
	}
	if got, err := readPDF(t.Context(), []byte("%PDF-1.4 and no more")); err == nil || !strings.Contains(err.Error(), "pdf") {
		t.Errorf("broken file: got %q, %v, want an error", got, err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Nanosecond)
	defer cancel()
	if got, err := readPDF(ctx, coretest.PDF("x")); err == nil {
		t.Errorf("expired context: got %q, want an error", got)
	}
}

// TestPDFOutputIsCut checks that the text of a small file that grows takes no more memory of the bot than it may.
func TestPDFOutputIsCut(t *testing.T) {
	got, err := readPDF(t.Context(), coretest.PackedPDF(strings.Repeat("a", 100), 20_000))
	if err != nil || len(got) != pdfOutput {
		t.Errorf("got %d bytes, %v, want %d", len(got), err, pdfOutput)
	}
}

// TestPDFParserPrintsNothing checks that what the parser prints for debugging is not in the text.
func TestPDFParserPrintsNothing(t *testing.T) {
	t.Chdir(t.TempDir())
	write(t, noisyPDF, "")
	c, err := pdfProcess(t.Context(), bytes.NewReader(coretest.PDF("x) Tj << 5 >> (y")))
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	c.Stdout = &out
	if err := c.Run(); err == nil || out.Len() > 0 {
		t.Errorf("got %q, %v, want only an error", out.String(), err)
	}
}

// TestOnePDFAtATime checks that PDFs are read one after the other.
func TestOnePDFAtATime(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.WriteFile(onlyPDF, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	reader := make(pdfReader, maxPDFs)
	data := coretest.PackedPDF("a", 50_000) // reading it takes longer than starting a process
	var all sync.WaitGroup
	for range 5 {
		all.Go(func() {
			if _, err := reader.text(t.Context(), data); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
}

// TestPDFThatGrows checks that a small file that needs too much memory ends its process before the timeout and
// below the memory limit.
func TestPDFThatGrows(t *testing.T) {
	data := coretest.PackedPDF("a", 30_000_000)
	if len(data) > 400<<10 {
		t.Fatalf("the file has %d bytes, want at most 400 KiB", len(data))
	}
	c, err := pdfProcess(t.Context(), bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Run(); err == nil {
		t.Error("the PDF was read, want an error")
	}
	use := c.ProcessState.SysUsage().(*syscall.Rusage)
	t.Logf("%d bytes took %d MiB and %s", len(data), use.Maxrss>>10, c.ProcessState.UserTime())
	if use.Maxrss<<10 > pdfMemory {
		t.Errorf("the process used %d KiB, want at most %d", use.Maxrss, pdfMemory>>10)
	}
	got, err := readPDF(t.Context(), data)
	if err == nil || len(err.Error()) > 2*pdfReason || !strings.Contains(err.Error(), "memory") {
		t.Errorf("got %q, %v, want an error about memory", got, err)
	}
}

// TestPDFProcessIsLimited checks that the process has its limits before it reads anything.
func TestPDFProcessIsLimited(t *testing.T) {
	in, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	c, err := pdfProcess(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	in.Close()
	procFile := func(name string) string {
		text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/%s", c.Process.Pid, name))
		return string(text)
	}
	until(t, func() bool { return strings.TrimSpace(procFile("oom_score_adj")) == "1000" })
	if limits := procFile("limits"); !regexp.MustCompile(`Max data size +201326592 +201326592`).MatchString(limits) {
		t.Error(limits)
	}
	w.Close()
	_ = c.Wait() // an empty file is not a PDF
}
