package commands

import (
	"context"
	"os"
	"runtime/debug"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"synthbot/core/coretest"
	"synthbot/daemon"
)

// TestMain runs the program instead of the tests if a test starts this binary as synthbot.
func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == daemon.PdfCommand { // the daemon starts itself to read a PDF
		programMain()
	}
	debug.SetGCPercent(coretest.Sample(100, 400)) // collecting garbage takes a fifth of the time
	testscript.Main(m, map[string]func(){"synthbot": programMain})
}

func programMain() {
	e := &daemon.Env{In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Getenv: os.Getenv, Clock: time.Now}
	os.Exit(Main(context.Background(), e, os.Args[1:], 20*time.Second, 15*time.Second))
}
