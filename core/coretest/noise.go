package coretest

import (
	"os"
	"strconv"
	"strings"
	"time"
)

// Sample returns the size of a long test: full, as docs/measurements.md describes it, if $TEST_FULL is
// set; otherwise usual, with which a package takes minutes at most on a slow machine.
func Sample[N int | time.Duration](full, usual N) N {
	if os.Getenv("TEST_FULL") != "" {
		return full
	}
	return usual
}

// Patience is how long a test waits before it fails. It is long enough for any machine.
const Patience = 5 * time.Minute

// Stolen returns for how long other virtual machines used this one's processors, in ticks of /proc/stat; 0 if the
// kernel does not say. If it grew, the result of a benchmark is not reliable.
func Stolen() (ticks int64) {
	stat, err := os.ReadFile("/proc/stat")
	if fields := strings.Fields(string(stat)); err == nil && len(fields) > 8 {
		ticks, _ = strconv.ParseInt(fields[8], 10, 64)
	}
	return ticks
}
