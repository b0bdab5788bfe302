package config

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// maxFaults is how many faults are reported; the rest is counted.
const maxFaults = 100

// Fault is one problem of a file.
type Fault struct {
	File string
	Line int    // 0: the file lacks the key
	Key  string // as a file would hold it ("engine[0].timeout"); empty: the whole file
	Text string // the problem and the fix
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

// Faults are the problems of a file, in the order of its lines.
type Faults []Fault

// Error prints one fault a line.
func (f Faults) Error() string {
	lines := make([]string, len(f))
	for i, fault := range f {
		lines[i] = fault.String()
	}
	return strings.Join(lines, "\n")
}

// faultList collects faults up to maxFaults, without duplicates.
type faultList struct {
	list  Faults
	found int // all of them, also those beyond maxFaults
}

func (f *faultList) add(fault Fault) {
	if slices.Contains(f.list, fault) {
		return
	}
	f.found++
	if f.found <= maxFaults {
		f.list = append(f.list, fault)
	}
}

// err returns Faults, or nil if there are none.
func (f *faultList) err(file string) error {
	if f.found == 0 {
		return nil
	}
	sorted := slices.Clone(f.list)
	slices.SortStableFunc(sorted, func(a, b Fault) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Key, b.Key))
	})
	more := f.found - len(f.list)
	if more > 0 {
		sorted = append(sorted, Fault{File: file, Text: fmt.Sprintf("and %d more faults; fix these first", more)})
	}
	return sorted
}
