// Command mutate changes a package's code in one small way after another, and tells
// which changes its tests do not notice. All changes are compiled into one test
// binary, which the environment variable MUTANT tells which of them to make.
package main

import (
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
	flag.DurationVar(&o.limit, "time", 10*time.Minute, "how long mutants are tried")
	flag.Uint64Var(&o.seed, "seed", 1, "the order in which they are tried")
	flag.StringVar(&o.run, "run", "", "only the tests that match")
	flag.BoolVar(&o.short, "short", true, "leave long tests out")
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

// options are what is mutated, and how.
type options struct {
	dir   string   // the package's
	files []string // of it; none: all
	limit time.Duration
	seed  uint64
	run   string
	short bool

	mutants []mutant
	tried   int
	binary  string
}

// mutant is one change.
type mutant struct {
	number int
	file   string
	line   int
	what   string
}

func (m mutant) String() string { return fmt.Sprintf("%s:%d: %s", m.file, m.line, m.what) }

// survivors returns the changes that the tests do not notice, and prints each at once.
func (o *options) survivors() ([]string, error) {
	temp, err := os.MkdirTemp("", "mutate")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(temp)
	if err := o.build(temp); err != nil {
		return nil, err
	}
	reached := filepath.Join(temp, "reached")
	began := time.Now()
	if out, err := o.test(0, time.Hour, reached); err != nil {
		return nil, fmt.Errorf("the tests fail without any change: %w\n%s", err, out)
	}
	patience := 3*time.Since(began) + 10*time.Second
	known, err := numbers(reached)
	if err != nil {
		return nil, err
	}
	return o.try(patience, known), nil
}

// try tries the mutants in some order until the time is over.
func (o *options) try(patience time.Duration, reached map[int]bool) (survivors []string) {
	order := slices.Clone(o.mutants)
	rand.New(rand.NewPCG(o.seed, 0)).Shuffle(len(order), func(i, k int) { order[i], order[k] = order[k], order[i] })
	for end := time.Now().Add(o.limit); o.tried < len(order) && time.Now().Before(end); o.tried++ {
		m, note := order[o.tried], ""
		if !reached[m.number] {
			note = " (not reached)"
		} else if _, err := o.test(m.number, patience, ""); err != nil {
			continue
		}
		survivors = append(survivors, m.String()+note)
		fmt.Println(m.String() + note)
	}
	return survivors
}

// test runs the tests with a mutant; 0: with none.
func (o *options) test(number int, patience time.Duration, reached string) (out []byte, err error) {
	args := []string{"-test.failfast", "-test.timeout", patience.String(), "-test.run", o.run}
	if o.short {
		args = append(args, "-test.short")
	}
	c := exec.Command(o.binary, args...)
	c.Dir = o.dir
	c.Env = append(os.Environ(), "MUTANT="+strconv.Itoa(number), "MUTANTS_REACHED="+reached)
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

// build compiles the mutated package with its tests. Mutants that do not compile are
// left out.
func (o *options) build(temp string) error {
	o.binary = filepath.Join(temp, "mutants.test")
	bad := make(map[string]bool) // file:line
	for range 20 {
		if err := o.write(temp, bad); err != nil {
			return err
		}
		c := exec.Command("go", "test", "-c", "-vet=off", "-overlay", filepath.Join(temp, "overlay.json"), "-gcflags=-e", "-o", o.binary, ".")
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
	if err := put(temp, replace, filepath.Join(o.dir, "mutants_helper.go"), []byte("package "+name+helper)); err != nil {
		return err
	}
	overlay, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(temp, "overlay.json"), overlay, 0o600)
}

// put writes a file that takes another one's place.
func put(temp string, replace map[string]string, file string, content []byte) error {
	at, err := filepath.Abs(file)
	if err != nil {
		return err
	}
	replace[at] = filepath.Join(temp, filepath.Base(file))
	return os.WriteFile(replace[at], content, 0o600)
}

// helper is what mutated code calls.
const helper = `

import (
	"cmp"
	"fmt"
	"os"
	"strconv"
	"sync"
)

var (
	mutantNow, _   = strconv.Atoi(os.Getenv("MUTANT"))
	mutantsReached = os.Getenv("MUTANTS_REACHED")
	mutantsSeen    sync.Map
)

// mutated reports whether the change of that number is made.
func mutated(n int) bool {
	if mutantsReached != "" {
		if _, seen := mutantsSeen.LoadOrStore(n, true); !seen {
			f, err := os.OpenFile(mutantsReached, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
			if err != nil {
				panic(err)
			}
			fmt.Fprintln(f, n)
			f.Close()
		}
	}
	return n == mutantNow
}

func mutantLess[T cmp.Ordered](n int, x, y T) bool      { return x < y || mutated(n) && x == y }
func mutantLessEqual[T cmp.Ordered](n int, x, y T) bool { return x < y || x == y && !mutated(n) }

func mutantError(n int, err error) error {
	if mutated(n) {
		return nil
	}
	return err
}
`
