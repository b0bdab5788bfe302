package memory

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"synthbot/core"
	"synthbot/memory/bolt"
	"synthbot/memory/kv"
)

// WriteTo implements io.WriterTo: it writes a consistent copy of the database to w, while it
// is in use. The copy is first made beside the database, which needs the space.
func (db *DB) WriteTo(w io.Writer) (n int64, err error) {
	n, err = db.engine.spool(w, db.copyTo)
	if err != nil {
		return n, fmt.Errorf("copy of %s: %w", db.engine.name, err)
	}
	return n, nil
}

// copyTo writes a consistent copy, without traces of forgotten people, to a writer that does not block.
func (db *DB) copyTo(w io.Writer) error {
	w = &throttledWriter{Writer: w, resumed: time.Now()}
	return db.view(context.Background(), func(v *view) error {
		hasTraces := v.bucket(bucketMeta).Get([]byte(metaTraces)) != nil
		if file, ok := v.Tx.(io.WriterTo); ok && !hasTraces {
			_, err := file.WriteTo(w)
			return err
		}
		dir, err := db.engine.dir()
		if err != nil {
			return err
		}
		return copyAsFile(v, w, dir)
	})
}

// throttledWriter sleeps after it has written for a while, so that turns hardly notice a backup.
type throttledWriter struct {
	io.Writer
	resumed time.Time // when it was created, or last slept
}

const (
	minBurst = 2 * time.Millisecond // between two sleeps
	maxSleep = 10 * time.Millisecond
)

func (w *throttledWriter) Write(p []byte) (int, error) {
	n, err := w.Writer.Write(p)
	wrote := time.Since(w.resumed)
	if wrote > minBurst {
		time.Sleep(min(2*wrote, maxSleep))
		w.resumed = time.Now()
	}
	return n, err
}

// copyAsFile copies the pairs of a view into a new database file in dir, and writes that to w.
func copyAsFile(v *view, w io.Writer, dir string) (err error) {
	dir, err = os.MkdirTemp(dir, ".spool-*")
	if err != nil {
		return bolt.FileError(dir, err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	name := filepath.Join(dir, FileName)
	file, err := bolt.Open(name, bolt.Options{NoSync: true, Scattered: []string{bucketPassageWords}})
	if err != nil {
		return err
	}
	if err := errors.Join(kv.Copy(file, v, func(string, int) {}), file.Close()); err != nil {
		return err
	}
	made, err := os.Open(name)
	if err != nil {
		return err
	}
	defer made.Close()
	_, err = io.Copy(w, made)
	return err
}

// Backup writes a consistent copy to file (0600), while the database is in use.
// An older file of that name is replaced when the new one is complete.
func (db *DB) Backup(file string) error {
	return bolt.Replace(file, func(f *os.File) error {
		if err := db.copyTo(f); err != nil {
			return fmt.Errorf("copy of %s: %w", db.engine.name, err)
		}
		return nil
	})
}

// CopyStored calls copy with the database of a stopped bot as it is stored, in any format. copy may only call
// WriteTo and Backup. It returns ErrMissing if there is no database.
func CopyStored(dir string, o Options, copy func(*DB) error) error {
	o.BesideBot = true
	db := newDB(filepath.Join(dir, FileName), o)
	if err := openEngine(db, o); err != nil {
		return err
	}
	version, err := db.writer.readMeta()
	switch {
	case err != nil && db.engine.remote:
		err = db.engine.withName(err)
	case err != nil:
		err = bolt.OpenError(db.engine.name, err)
	case version == 0:
		err = ErrMissing
	default:
		err = copy(db)
	}
	return errors.Join(err, db.engine.Close())
}

// ErrNotEmpty is returned if there is a database where one is to be created.
var ErrNotEmpty = errors.New("there is a database already")

// Restore checks a backup from end to end and puts it into dir, which must not hold a database.
func Restore(dir, backup string) error {
	return installFile(dir, func(trial string) error {
		return inOrder(
			func() error { return bolt.CheckPages(backup) },
			func() error { return bolt.Rewrite(filepath.Join(trial, FileName), backup) },
			func() error { return checkCopy(trial, backup) },
		)
	})
}

// installFile moves the database that write creates in a temporary folder into dir, which must not hold one.
func installFile(dir string, write func(trial string) error) error {
	target := filepath.Join(dir, FileName)
	if _, err := os.Lstat(target); err == nil {
		return fmt.Errorf("%s: %w: move it away, or choose another directory", target, ErrNotEmpty)
	}
	_, before := os.Lstat(dir)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return bolt.OpenError(dir, err)
	}
	locked, err := bolt.LockDir(dir)
	if err != nil {
		return bolt.OpenError(dir, err)
	}
	defer locked.Close()
	trial, err := os.MkdirTemp(dir, ".restore-*")
	if err != nil {
		return bolt.OpenError(dir, err)
	}
	err = write(trial)
	if err == nil {
		// A link fails where a rename would replace what appeared meanwhile.
		err = os.Link(filepath.Join(trial, FileName), target)
	}
	err = errors.Join(err, os.RemoveAll(trial))
	if err != nil && before != nil {
		return errors.Join(err, os.Remove(dir)) // MkdirAll created it
	}
	return errors.Join(err, bolt.SyncDir(dir))
}

// checkCopy opens and checks a copy in dir, and gives it a new random name: the original may have used numbers
// since that the copy will use for other entries. Errors name the origin.
func checkCopy(dir, origin string) error {
	db, err := Open(dir, Options{SkipCheck: true})
	if err == nil {
		renamed := db.update(context.Background(), func(t *tx) {
			t.bucket(bucketMeta).Put([]byte(metaName), []byte(rand.Text()))
		})
		err = errors.Join(db.Check(context.Background()), renamed, db.Close())
	}
	if err != nil {
		return fmt.Errorf("%s: %w", origin, err)
	}
	return nil
}

func (db *DB) startCheck(ctx context.Context, o Options) {
	if o.SkipCheck || db.engine.remote || !db.engine.unclean {
		return
	}
	db.starting.Go(func() {
		err := db.Check(ctx)
		switch {
		case err == nil:
			db.log.Info("the database was not closed properly; it is not damaged", "file", db.engine.name)
		case errors.Is(err, core.ErrDamaged):
			db.log.Error("the database is damaged", "err", err)
		}
	})
}

// Displaced reports whether somebody has moved, deleted or replaced the open file of a database. Everything is still
// written to that file.
func Displaced(db *DB) bool {
	file, ok := db.engine.Engine.(*bolt.File)
	return ok && file.Displaced(db.engine.file)
}
