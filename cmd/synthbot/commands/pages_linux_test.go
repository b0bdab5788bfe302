package commands

import (
	"os"
	"regexp"
	"strconv"
	"syscall"
	"testing"
)

// TestReleasePages: memory becomes less, and the program goes on.
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
	releasePages()
	if after := resident(); after > before/2 {
		t.Errorf("%d KiB of files were in memory, and %d are", before, after)
	}
}

// TestReleasePagesKeepsChanges: a loader writes addresses into pages of the program that are read-only from then
// on, as in a program that is built with -buildmode=pie. They stay.
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
	releasePages()
	if page[0] != changed {
		t.Error("what was written is lost")
	}
}
