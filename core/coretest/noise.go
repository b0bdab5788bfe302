package coretest

import (
	"os"
	"strconv"
	"strings"
	"time"
)

// Sample returns how much a long test takes: full, as docs/measurements.md describes it, if $TEST_FULL
// is set; else usual, so that a package is done within minutes on a slow machine.
func Sample[N int | time.Duration](full, usual N) N {
	if os.Getenv("TEST_FULL") != "" {
		return full
	}
	return usual
}

// Patience is how long a test waits for what must happen. It is over only when a test fails: no machine is so slow.
const Patience = 5 * time.Minute

// Stolen is how long others have had the processors of this virtual machine, in
// ticks of /proc/stat; 0 where the kernel does not say. A round of a benchmark in
// which it grew tells more of the neighbours than of the code.
func Stolen() (ticks int64) {
	stat, err := os.ReadFile("/proc/stat")
	if fields := strings.Fields(string(stat)); err == nil && len(fields) > 8 {
		ticks, _ = strconv.ParseInt(fields[8], 10, 64)
	}
	return ticks
}
