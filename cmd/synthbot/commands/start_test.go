package commands

import (
	"context"
	"flag"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"synthbot/core"
	"synthbot/core/coretest"
	"synthbot/memory"
)

var large = flag.Int("large", 8, "size of the database in BenchmarkStart, in MiB")

// BenchmarkStart measures the daemon from outside: the time from exec until it accepts messages, and its memory
// while idle. The limits are 20 ms with -large 500, 15 MiB of anonymous memory and 32 MiB in total.
func BenchmarkStart(b *testing.B) {
	dir := b.TempDir()
	binary := buildRelease(b)
	fill(b, filepath.Join(dir, "data"), *large)
	file := filepath.Join(dir, "config.toml")
	if err := os.WriteFile(file, []byte(withTerminal), 0o600); err != nil {
		b.Fatal(err)
	}
	socket := filepath.Join(dir, "notify")
	service, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: socket, Net: "unixgram"})
	if err != nil {
		b.Fatal(err)
	}
	defer service.Close()
	var anonymous, all float64
	for b.Loop() {
		c := exec.Command(binary, "run", "-c", file)
		c.Env = []string{"NOTIFY_SOCKET=" + socket}
		in, err := c.StdinPipe()
		if err != nil {
			b.Fatal(err)
		}
		if err := c.Start(); err != nil {
			b.Fatal(err)
		}
		if err := service.SetReadDeadline(time.Now().Add(coretest.Patience)); err != nil {
			b.Fatal(err)
		}
		buf := make([]byte, 256)
		await := func(word string) {
			for n := 0; !strings.Contains(string(buf[:n]), word); {
				if n, err = service.Read(buf); err != nil {
					b.Fatalf("no %s: %v", word, err)
				}
			}
		}
		await("READY=1")
		b.StopTimer()
		anonymous, all = resident(b, c.Process.Pid)
		if err := c.Process.Signal(syscall.SIGTERM); err != nil {
			b.Fatal(err)
		}
		await("STOPPING=1")
		in.Close()
		if err := c.Wait(); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
	}
	info, err := os.Stat(binary)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(anonymous, "MiB-anonymous")
	b.ReportMetric(all, "MiB-resident")
	b.ReportMetric(float64(info.Size())/1e6, "MB-binary")
}

// fill creates a database of that many MiB.
func fill(b *testing.B, dir string, mib int) {
	b.Helper()
	s, err := memory.Open(dir, memory.Options{})
	if err != nil {
		b.Fatal(err)
	}
	text := strings.Repeat("what people say ", 60)
	for n := 0; n < mib*1000; n += 1000 {
		batch := core.Batch{Append: make([]core.Entry, 1000)}
		for i := range batch.Append {
			batch.Append[i] = core.Entry{Event: core.Event{Kind: core.KindMessage, Message: core.Message{
				Path: core.MustPath(fmt.Sprintf("console/%d", (n+i)%50)), ID: strconv.Itoa(n + i), Text: text, Time: time.Now(),
			}}}
		}
		if err := s.Commit(context.Background(), &batch); err != nil {
			b.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		b.Fatal(err)
	}
}

// resident returns the memory of a process in MiB, anonymous and in total.
func resident(b *testing.B, pid int) (anonymous, all float64) {
	b.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		b.Skip("no /proc on this system")
	}
	for name, to := range map[string]*float64{"RssAnon": &anonymous, "VmRSS": &all} {
		m := regexp.MustCompile(name + `:\s+(\d+) kB`).FindSubmatch(status)
		if m == nil {
			b.Fatalf("no %s in %s", name, status)
		}
		kib, err := strconv.ParseFloat(string(m[1]), 64)
		if err != nil {
			b.Fatal(err)
		}
		*to = kib / 1024
	}
	return anonymous, all
}
