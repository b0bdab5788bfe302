// Command mutate tests the tests of a package: it makes small changes (mutants) in its code, one at a time, and prints
// those with which all tests still pass. All mutants are compiled into one test binary; the environment variable MUTANT
// selects one. Each test runs once without a mutant, and again for each mutant whose code it reaches.
package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

func main() {
	var o options
	flag.DurationVar(&o.limit, "time", 10*time.Minute, "for how long mutants are tried")
	flag.Uint64Var(&o.seed, "seed", 1, "seed of the random order in which they are tried")
	flag.StringVar(&o.run, "run", "", "only the tests that match")
	flag.BoolVar(&o.short, "short", true, "leave out long tests")
	flag.Func("at", "only the mutants on these lines: FILE:LINE,...", func(list string) error {
		o.at = append(o.at, strings.Split(list, ",")...)
		return nil
	})
	flag.Parse()
	if flag.NArg() == 0 {
		fmt.Fprintln(os.Stderr, "usage: mutate [flags] PACKAGE [FILE...]")
		os.Exit(2)
	}
	o.dir, o.files = flag.Arg(0), flag.Args()[1:]
	survivors, err := o.survivors()
	if err != nil {
		fmt.Fprintln(os.Stderr, "mutate:", err)
		os.Exit(1)
	}
	killed := o.tried - len(survivors)
	fmt.Printf("%s: %d of %d mutants tried, %d killed (%d %%)\n",
		o.dir, o.tried, len(o.mutants), killed, 100*killed/max(o.tried, 1))
}

// options are the flags, and the state of a run.
type options struct {
	dir   string   // the folder of the package
	files []string // names of files in dir; empty: all
	limit time.Duration
	seed  uint64
	run   string
	short bool
	at    []string // FILE:LINE; empty: all

	mutants []mutant
	tests   []test // the quickest first
	tried   int
	binary  string
}

// mutant is one change of the code.
type mutant struct {
	number int
	file   string
	line   int
	what   string
}

func (m mutant) place() string  { return fmt.Sprintf("%s:%d", m.file, m.line) }
func (m mutant) String() string { return m.place() + ": " + m.what }

// test is a test, as it ran without a mutant.
type test struct {
	name    string
	took    time.Duration
	reaches map[int]bool // the numbers of mutants
}

// survivors returns the mutants with which all tests pass, and prints each when it is found.
func (o *options) survivors() ([]string, error) {
	temp, err := os.MkdirTemp("", "mutate")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(temp)
	if err := o.build(temp); err != nil {
		return nil, err
	}
	if err := o.reach(temp); err != nil {
		return nil, err
	}
	return o.try(), nil
}

// reach runs each test alone without a mutant, to find out which mutants it reaches. A test that fails is left out.
func (o *options) reach(temp string) error {
	c := exec.Command(o.binary, "-test.list", cmp.Or(o.run, "."))
	c.Dir = o.dir
	list, err := c.Output()
	if err != nil {
		return fmt.Errorf("list the tests: %w", err)
	}
	for _, name := range regexp.MustCompile(`(?m)^(Test|Fuzz|Example)\w*$`).FindAllString(string(list), -1) {
		file, began := filepath.Join(temp, "reached."+name), time.Now()
		if out, err := o.test(0, time.Hour, file, name); err != nil {
			fmt.Fprintf(os.Stderr, "%s fails alone without a mutant: %v\n%s", name, err, out)
			continue
		}
		took := time.Since(began)
		reaches, err := numbers(file)
		if err != nil {
			return err
		}
		o.tests = append(o.tests, test{name, took, reaches})
	}
	slices.SortFunc(o.tests, func(a, b test) int { return cmp.Compare(a.took, b.took) })
	return nil
}

// try tries the mutants in a random order until the time is over.
func (o *options) try() (survivors []string) {
	order := slices.Clone(o.mutants)
	rand.New(rand.NewPCG(o.seed, 0)).Shuffle(len(order), func(i, k int) { order[i], order[k] = order[k], order[i] })
	order = slices.DeleteFunc(order, func(m mutant) bool { return len(o.at) > 0 && !slices.Contains(o.at, m.place()) })
	for end := time.Now().Add(o.limit); o.tried < len(order) && time.Now().Before(end); o.tried++ {
		m := order[o.tried]
		batches := o.batches(m.number)
		if slices.ContainsFunc(batches, func(b batch) bool { return o.notices(m.number, b) }) {
			continue
		}
		line := m.String()
		if len(batches) == 0 {
			line += " (not reached)"
		}
		survivors = append(survivors, line)
		fmt.Println(line)
	}
	return survivors
}

// batch is a group of tests that run in one process.
type batch struct {
	names []string
	took  time.Duration
}

// batches returns the tests that reach a mutant, in batches of at most half a second.
func (o *options) batches(number int) (list []batch) {
	for _, t := range o.tests {
		if !t.reaches[number] {
			continue
		}
		if len(list) == 0 || list[len(list)-1].took+t.took > time.Second/2 {
			list = append(list, batch{})
		}
		last := &list[len(list)-1]
		last.names = append(last.names, t.name)
		last.took += t.took
	}
	return list
}

// notices reports whether a test of a batch fails with a mutant.
func (o *options) notices(number int, b batch) bool {
	_, err := o.test(number, 4*b.took+5*time.Second, "", b.names...)
	return err != nil
}

// test runs tests with a mutant; 0: with none.
func (o *options) test(number int, patience time.Duration, reached string, names ...string) (out []byte, err error) {
	pattern := "^(" + strings.Join(names, "|") + ")$"
	args := []string{"-test.failfast", "-test.timeout", patience.String(), "-test.run", pattern}
	if o.short {
		args = append(args, "-test.short")
	}
	c := exec.Command(o.binary, args...)
	c.Dir = o.dir
	c.Env = append(os.Environ(), "RAPID_NOFAILFILE=1", "MUTANT="+strconv.Itoa(number), "MUTANTS_REACHED="+reached)
	c.WaitDelay = time.Second
	return c.CombinedOutput()
}

// numbers reads the numbers of the mutants that were reached.
func numbers(file string) (map[int]bool, error) {
	data, err := os.ReadFile(file)
	known := make(map[int]bool)
	for line := range strings.FieldsSeq(string(data)) {
		n, err := strconv.Atoi(line)
		if err != nil {
			return nil, err
		}
		known[n] = true
	}
	return known, err
}

// build compiles the mutated package with its tests. Mutants that do not compile are left out.
func (o *options) build(temp string) error {
	o.binary = filepath.Join(temp, "mutants.test")
	bad := make(map[string]bool) // file:line
	for range 20 {
		if err := o.write(temp, bad); err != nil {
			return err
		}
		overlay := filepath.Join(temp, "overlay.json")
		c := exec.Command("go", "test", "-c", "-vet=off", "-overlay", overlay, "-gcflags=-e", "-o", o.binary, ".")
		c.Dir = o.dir
		out, err := c.CombinedOutput()
		if err == nil {
			return nil
		}
		before := len(bad)
		for _, at := range regexp.MustCompile(`(?m)([^/\s:]+\.go):(\d+)`).FindAllStringSubmatch(string(out), -1) {
			bad[at[1]+":"+at[2]] = true
		}
		if len(bad) == before {
			return fmt.Errorf("build: %w\n%s", err, out)
		}
	}
	return errors.New("build: too many mutants do not compile")
}

// write writes the mutated files, and the overlay that puts them in place.
func (o *options) write(temp string, bad map[string]bool) error {
	all, err := filepath.Glob(filepath.Join(o.dir, "*.go"))
	if err != nil {
		return err
	}
	o.mutants = nil
	replace := make(map[string]string)
	var name string
	for _, file := range all {
		base := filepath.Base(file)
		if strings.HasSuffix(base, "_test.go") || len(o.files) > 0 && !slices.Contains(o.files, base) {
			continue
		}
		source, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		e := &editor{file: base, source: source, bad: bad, next: len(o.mutants)}
		mutated, err := e.mutate()
		if err != nil {
			return err
		}
		o.mutants = append(o.mutants, e.mutants...)
		name = e.name
		if err := put(temp, replace, file, mutated); err != nil {
			return err
		}
	}
	target := filepath.Join(o.dir, "mutants_helper.go")
	if err := put(temp, replace, target, []byte("package "+name+helper)); err != nil {
		return err
	}
	overlay, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(temp, "overlay.json"), overlay, 0o600)
}

// put writes a file to temp, and adds it to the replacements for the overlay.
func put(temp string, replace map[string]string, file string, content []byte) error {
	at, err := filepath.Abs(file)
	if err != nil {
		return err
	}
	replace[at] = filepath.Join(temp, filepath.Base(file))
	return os.WriteFile(replace[at], content, 0o600)
}

// helper is the source of the functions that mutated code calls.
const helper = `

import (
	"cmp"
	"fmt"
	"os"
	"strconv"
	"sync"
)

var (
	mutantNow, _      = strconv.Atoi(os.Getenv("MUTANT"))
	mutantsReached, _ = os.OpenFile(os.Getenv("MUTANTS_REACHED"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	mutantsSeen       sync.Map
)

// mutated reports whether the mutant with a number is selected.
func mutated(n int) bool {
	if mutantsReached != nil {
		if _, seen := mutantsSeen.LoadOrStore(n, true); !seen {
			fmt.Fprintln(mutantsReached, n)
		}
	}
	return n == mutantNow
}

func mutantLess[T cmp.Ordered](n int, x, y T) bool         { return x < y || x == y && mutated(n) }
func mutantLessEqual[T cmp.Ordered](n int, x, y T) bool    { return x < y || x == y && !mutated(n) }
func mutantGreater[T cmp.Ordered](n int, x, y T) bool      { return x > y || x == y && mutated(n) }
func mutantGreaterEqual[T cmp.Ordered](n int, x, y T) bool { return x > y || x == y && !mutated(n) }

func mutantError(n int, err error) error {
	if mutated(n) {
		return nil
	}
	return err
}
`
