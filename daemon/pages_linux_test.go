package daemon

import (
	"os"
	"regexp"
	"strconv"
	"syscall"
	"testing"
)

// TestReleasePages checks that releasing pages reduces the memory in use, and that the program continues to
// run.
func TestReleasePages(t *testing.T) {
	resident := func() int {
		status, err := os.ReadFile("/proc/self/status")
		if err != nil {
			t.Skip("no /proc on this system")
		}
		kib, err := strconv.Atoi(string(regexp.MustCompile(`RssFile:\s+(\d+)`).FindSubmatch(status)[1]))
		if err != nil {
			t.Fatal(err)
		}
		return kib
	}
	before := resident()
	ReleasePages()
	if after := resident(); after > before/2 {
		t.Errorf("%d KiB of files in memory before, %d after; want less", before, after)
	}
}

// TestReleasePagesKeepsChanges checks that changed pages are kept, although they are read-only. A program built
// with -buildmode=pie has such pages: the loader writes addresses into them.
func TestReleasePagesKeepsChanges(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	file, err := os.Open(self)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	const writable = syscall.PROT_READ | syscall.PROT_WRITE
	page, err := syscall.Mmap(int(file.Fd()), 0, os.Getpagesize(), writable, syscall.MAP_PRIVATE)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = syscall.Munmap(page) }()
	page[0]++
	changed := page[0]
	if err := syscall.Mprotect(page, syscall.PROT_READ); err != nil {
		t.Fatal(err)
	}
	ReleasePages()
	if page[0] != changed {
		t.Error("the changes are lost")
	}
}
