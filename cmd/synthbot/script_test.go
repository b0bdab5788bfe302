package main

import (
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"golang.org/x/sys/unix"

	"synthbot/daemon"
)

func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == daemon.PdfCommand { // as the daemon starts itself for a PDF
		refuseSecond()
		main()
	}
	testscript.Main(m, map[string]func(){"synthbot": main, faultyCommand: faultyMain})
}

var update = flag.Bool("update", false, "write the expected output of scripts")

// onlyPDF is a file in the working directory. Where it exists, a process that reads a
// PDF holds its lock until it ends.
const onlyPDF = "only-pdf"

// refuseSecond ends this process if another one holds the lock of onlyPDF.
func refuseSecond() {
	fd, err := unix.Open(onlyPDF, unix.O_RDONLY, 0) // stays open
	if err == nil {
		err = unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		fmt.Fprintln(os.Stderr, "another process reads a PDF:", err)
		os.Exit(statusFailed)
	}
}

// TestScripts runs the program as people do; testdata/script holds the sessions.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script", UpdateScripts: *update,
		Setup: func(e *testscript.Env) error {
			e.Setenv("HOME", e.WorkDir)
			e.Setenv("XDG_STATE_HOME", e.WorkDir+"/state")
			e.Setenv("LANG", "C")
			return os.MkdirAll(e.WorkDir+"/state", 0o700)
		},
	})
}
