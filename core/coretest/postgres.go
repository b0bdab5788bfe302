//go:build unix

package coretest

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"
)

// Postgres is a PostgreSQL server of a test. It listens on a Unix socket in its folder, and runs
// as the user nobody if root runs the test, because it refuses to run as root.
type Postgres struct {
	URL string // of its database

	t        testing.TB
	settings []string
	programs string // their folder
	dir      string
	user     *syscall.SysProcAttr
	running  *exec.Cmd
}

// StartPostgres starts a server, which ends with the test. Without PostgreSQL on this machine, and
// without $TEST_FULL, since starting one costs more than most tests, the test is skipped. A user
// "guarded" needs a password; others need none.
//
// It does not wait for the disk, unless the settings say "fsync=on".
func StartPostgres(t testing.TB, settings ...string) *Postgres {
	t.Helper()
	if os.Getenv("TEST_FULL") == "" {
		t.Skip("PostgreSQL is started only with TEST_FULL=1")
	}
	programs, _ := filepath.Glob("/usr/lib/postgresql/*/bin")
	if len(programs) == 0 {
		t.Skip("PostgreSQL is not installed")
	}
	dir, err := os.MkdirTemp("", "pg") // short, since the path of a socket is
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	s := &Postgres{t: t, programs: slices.Max(programs), dir: dir, user: serverUser(t, dir), settings: settings}
	s.URL = fmt.Sprintf("postgres://bot@/postgres?host=%s&sslmode=disable", dir)
	data := filepath.Join(dir, "data")
	initdb := s.command("initdb", "-D", data, "-U", "bot", "-A", "trust", "-E", "UTF8", "--locale=C", "-N")
	if out, err := initdb.CombinedOutput(); err != nil {
		t.Fatalf("initdb: %v\n%s", err, out)
	}
	rules := []byte("local all guarded scram-sha-256\nlocal all all trust\n")
	if err := os.WriteFile(filepath.Join(data, "pg_hba.conf"), rules, 0o644); err != nil {
		t.Fatal(err)
	}
	s.Start()
	t.Cleanup(s.Crash)
	return s
}

// serverUser returns the user who runs the server, and gives them the folder.
func serverUser(t testing.TB, dir string) *syscall.SysProcAttr {
	const nobody = 65534
	if os.Geteuid() != 0 {
		return nil
	}
	if err := os.Chown(dir, nobody, nobody); err != nil {
		t.Fatal(err)
	}
	return &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
}

func (s *Postgres) command(name string, args ...string) *exec.Cmd {
	c := exec.Command(filepath.Join(s.programs, name), args...)
	c.Dir, c.SysProcAttr = s.dir, s.user
	return c
}

// Crash kills the server, which loses what it has not committed.
func (s *Postgres) Crash() {
	_ = s.running.Process.Signal(syscall.SIGQUIT) // it may have ended
	_ = s.running.Wait()
}

// Start starts the server again and waits until it accepts connections.
func (s *Postgres) Start() {
	s.t.Helper()
	log, err := os.Create(filepath.Join(s.dir, "log"))
	if err != nil {
		s.t.Fatal(err)
	}
	defer log.Close()
	c := s.command("postgres", "-D", filepath.Join(s.dir, "data"), "-k", s.dir, "-c", "listen_addresses=", "-c", "fsync=off",
		"-c", "shared_buffers=32MB", "-c", "max_connections=500")
	for _, setting := range s.settings {
		c.Args = append(c.Args, "-c", setting)
	}
	c.Stdout, c.Stderr = log, log
	if err := c.Start(); err != nil {
		s.t.Fatal(err)
	}
	s.running = c
	for range 200 {
		ready := s.command("pg_isready", "-q", "-h", s.dir)
		err = ready.Run()
		if err == nil {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	said, readErr := os.ReadFile(log.Name())
	if readErr != nil && !errors.Is(readErr, fs.ErrNotExist) {
		s.t.Error(readErr)
	}
	s.t.Fatalf("PostgreSQL does not start: %v\n%s", err, said)
}
