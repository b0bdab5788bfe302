package memory

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
)

// spool lets write go to a file without a name beside the database, and then
// copies it to w: whoever takes w in may be slow, and what write reads is not to
// be held for him. What only grows in memory is written at once.
func (db *DB) spool(w io.Writer, write func(io.Writer) error) (n int64, err error) {
	if b, ok := w.(*bytes.Buffer); ok {
		before := b.Len()
		err := write(b)
		return int64(b.Len() - before), err
	}
	f, err := os.CreateTemp(filepath.Dir(db.file.name), ".spool-*")
	if err != nil {
		return 0, fullError(filepath.Dir(db.file.name), err)
	}
	defer f.Close()
	if os.Remove(f.Name()) != nil { // where a file that is open keeps its name
		defer func() { err = errors.Join(err, f.Close(), os.Remove(f.Name())) }()
	}
	if err := write(f); err != nil {
		return 0, db.writeError(err)
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return 0, err
	}
	return io.Copy(w, f)
}
