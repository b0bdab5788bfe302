// Package program runs a program that the configuration names, with bytes as input and output. It uses no shell and
// passes on few environment variables. It kills the program, with all that it started, after a timeout or too much
// output. It is not for programs that keep running.
package program

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"

	"synthbot/core"
	"synthbot/core/secret"
)

// Defaults and limits.
const (
	DefaultTimeout = 30 * time.Second
	DefaultOutput  = 1 << 20 // bytes
	maxStderr      = 2000    // bytes of standard error, for the log
	waitDelay      = time.Second
)

// Program is a program with its settings. Argv is required. Safe for concurrent use.
type Program struct {
	Argv      []string                 // the program and its arguments, which are passed on unchanged
	Dir       string                   // "": the bot's
	Env       map[string]secret.Secret // besides PATH, HOME, LANG, TZ and TMPDIR
	Timeout   time.Duration            // 0: DefaultTimeout
	MaxOutput int                      // bytes; 0: DefaultOutput
	Nice      bool                     // run it, and what it starts, with the lowest priority
}

// Run runs the program once and returns its standard output. The error is a *core.Error with
// a text for users. If the program failed with a status, Run also returns its output.
func (p Program) Run(ctx context.Context, in []byte) ([]byte, error) {
	p.Timeout, p.MaxOutput = cmp.Or(p.Timeout, DefaultTimeout), cmp.Or(p.MaxOutput, DefaultOutput)
	ctx, cancel := context.WithTimeout(ctx, p.Timeout)
	defer cancel()
	out, stderr := &output{max: p.MaxOutput, full: cancel}, &tail{}
	c := exec.CommandContext(ctx, p.Argv[0], p.Argv[1:]...)
	c.Dir, c.Env = p.Dir, Environment(p.Env)
	c.Stdin, c.Stdout, c.Stderr = bytes.NewReader(in), out, stderr
	c.WaitDelay = waitDelay
	Group(c, syscall.SIGKILL)
	if err := c.Start(); err != nil {
		return nil, &core.Error{Kind: core.Broken, Text: "The program cannot be started.", Err: err}
	}
	if p.Nice {
		yieldTime(c)
	}
	err := c.Wait()
	KillGroup(c)
	hide := secret.Conceal(slices.Collect(maps.Values(p.Env))...) // the program may print its secrets
	said, err := out.result(ctx, err, hide.Replace(stderr.String()))
	if len(p.Env) > 0 {
		said = []byte(hide.Replace(string(said)))
	}
	return said, err
}

// Environment returns the environment of a program: its own variables and, from the bot's environment, PATH,
// HOME, LANG, TZ, TMPDIR and the inherited ones.
func Environment(own map[string]secret.Secret, inherited ...string) []string {
	var env []string
	for _, name := range append([]string{"PATH", "HOME", "LANG", "TZ", "TMPDIR"}, inherited...) {
		if value, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+value)
		}
	}
	for name, value := range own {
		env = append(env, name+"="+value.Reveal())
	}
	slices.Sort(env)
	return env
}

// output collects the program's output. It calls full, which kills the program, if that is too much.
type output struct {
	data     bytes.Buffer
	max      int
	exceeded bool
	full     func()
}

func (o *output) Write(p []byte) (int, error) {
	if o.data.Len()+len(p) > o.max {
		o.exceeded = true
		o.full()
		return 0, errors.New("too much output")
	}
	return o.data.Write(p)
}

// result returns the output or an error, given the error of Wait. ErrWaitDelay alone is not a failure.
func (o *output) result(ctx context.Context, err error, stderr string) ([]byte, error) {
	var status *exec.ExitError
	switch {
	case o.exceeded:
		return nil, core.Errorf(core.Broken, "The program wrote too much output.")
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return nil, &core.Error{Kind: core.Temporary, Text: "The program took too long.", Err: ctx.Err()}
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case errors.As(err, &status):
		err = fmt.Errorf("%w: %s", err, stderr)
		return o.data.Bytes(), &core.Error{Kind: core.Broken, Text: "The program failed.", Err: err}
	case err != nil && !errors.Is(err, exec.ErrWaitDelay):
		return nil, &core.Error{Kind: core.Broken, Text: "The program failed.", Err: err}
	}
	return o.data.Bytes(), nil
}

// tail keeps the end of what is written to it.
type tail struct{ kept []byte }

func (t *tail) Write(p []byte) (int, error) {
	t.kept = append(t.kept, p...)
	over := len(t.kept) - maxStderr
	if over > 0 {
		t.kept = t.kept[over:]
	}
	return len(p), nil
}

func (t *tail) String() string { return strings.ToValidUTF8(strings.TrimSpace(string(t.kept)), "") }

var envName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// CheckEnv reports invalid names of variables in a configuration.
func CheckEnv(env map[string]secret.Secret, fault func(text string, at ...any)) {
	for name := range env {
		if !envName.MatchString(name) {
			fault("is not a valid variable name", "env", name)
		}
	}
}
