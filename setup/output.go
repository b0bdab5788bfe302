package setup

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"synthbot/daemon"
)

// output writes files, and prints the name of each.
type output struct {
	w       io.Writer
	dry     bool // writes nothing
	written int  // how many files
}

// backUp copies a file that is about to change.
func (o *output) backUp(path string, next []byte) error {
	before, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) || err == nil && bytes.Equal(before, next) {
		return nil
	}
	if err != nil {
		return err
	}
	return o.write(path+".bak", before, 0o600)
}

func (o *output) write(path string, data []byte, mode fs.FileMode) error {
	if o.dry {
		return o.print("would write", path, mode)
	}
	if err := daemon.WriteFile(path, data, mode); err != nil {
		return err
	}
	o.written++
	return o.print("written", path, mode)
}

func (o *output) print(what, path string, mode fs.FileMode) error {
	line := fmt.Sprintf("%-8s %s", what, path)
	if mode != 0 {
		line += fmt.Sprintf(" (%04o)", mode)
	}
	_, err := fmt.Fprintln(o.w, line)
	return err
}
