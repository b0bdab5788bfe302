package commands

import (
	"os"
	"regexp"
	"strconv"
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
