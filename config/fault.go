package config

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// maxFaults is how many faults are told; the rest is counted.
const maxFaults = 100

// Fault is one thing that is wrong with a file.
type Fault struct {
	File string
	Line int    // 0: the key does not stand in the file
	Key  string // as it would be written ("engine[0].timeout"); empty: the whole file
	Text string // what is wrong, and the mend
}

// String prints "FILE:LINE: key: text" on one line.
func (f Fault) String() string {
	var b strings.Builder
	b.WriteString(f.File)
	if f.Line > 0 {
		fmt.Fprintf(&b, ":%d", f.Line)
	}
	if f.Key != "" {
		b.WriteString(": " + f.Key)
	}
	b.WriteString(": " + f.Text)
	return b.String()
}

// Faults is everything that is wrong with a file, in the order of its lines.
type Faults []Fault

// Error prints one fault a line.
func (f Faults) Error() string {
	lines := make([]string, len(f))
	for i, fault := range f {
		lines[i] = fault.String()
	}
	return strings.Join(lines, "\n")
}

// findings collects faults up to maxFaults. The same one twice is one.
type findings struct {
	list  Faults
	found int // all of them, told or not
}

func (f *findings) add(fault Fault) {
	if slices.Contains(f.list, fault) {
		return
	}
	f.found++
	if f.found <= maxFaults {
		f.list = append(f.list, fault)
	}
}

// full reports that what is added is only counted.
func (f *findings) full() bool { return f.found >= maxFaults }

// err returns Faults, or nil where there are none.
func (f *findings) err(file string) error {
	if f.found == 0 {
		return nil
	}
	sorted := slices.Clone(f.list)
	slices.SortStableFunc(sorted, func(a, b Fault) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Key, b.Key))
	})
	if more := f.found - len(f.list); more > 0 {
		sorted = append(sorted, Fault{File: file, Text: fmt.Sprintf("and %d more faults; mend these first", more)})
	}
	return sorted
}
