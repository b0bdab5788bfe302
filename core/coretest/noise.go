package coretest

import (
	"os"
	"strconv"
	"strings"
)

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
