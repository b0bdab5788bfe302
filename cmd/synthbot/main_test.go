package main

import (
	"flag"
	"os"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"synthbot": main})
}

var update = flag.Bool("update", false, "write the expected output of scripts")

// TestScripts runs the sessions in testdata/script.
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
