package bolt

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"

	"synthbot/core"
	"synthbot/memory/rescue"
)

// OpenError adds the likely cause and the fix to an error of opening a file.
func OpenError(name string, err error) error {
	switch {
	case errors.Is(err, berrors.ErrTimeout), errors.Is(err, core.ErrLocked):
		return fmt.Errorf("%s: %w: most likely another synthbot runs with this data directory; "+
			"stop it, or give this one its own bot.data_dir", name, core.ErrLocked)
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS):
		return fmt.Errorf("%s: %w: this user must be able to read and write it; change its permissions, "+
			"or set another bot.data_dir", name, withoutPath(err))
	case errors.Is(err, syscall.ENOTDIR), errors.Is(err, syscall.EISDIR), errors.Is(err, fs.ErrExist):
		return fmt.Errorf("%s: %w: something else has this name; "+
			"move it away, or set another bot.data_dir", name, withoutPath(err))
	case isFull(err):
		return fmt.Errorf("%s: %w: make room, or set another bot.data_dir", name, core.ErrFull)
	case errors.Is(err, core.ErrDamaged), errors.Is(err, berrors.ErrInvalid), errors.Is(err, berrors.ErrChecksum),
		errors.Is(err, berrors.ErrVersionMismatch):
		return DamagedError(name, err)
	}
	return fmt.Errorf("%s: %w", name, withoutPath(err))
}

// DamagedError adds the fix to the error of a damaged file.
func DamagedError(name string, err error) error {
	if !errors.Is(err, core.ErrDamaged) {
		err = fmt.Errorf("%w: %w", core.ErrDamaged, err)
	}
	return fmt.Errorf("%s: %w: it is not a database of synthbot, or the disk lost a part of it; "+
		"move it away and restore a backup, "+
		"or save what can be read of it with `synthbot restore --salvage`", name, err)
}

// PanicError returns the error for a panic of a function that reads pages. What Go says about a wrong index or address
// in them would not help a user.
func PanicError(v any) error {
	if _, ok := v.(runtime.Error); ok {
		return core.ErrDamaged
	}
	return fmt.Errorf("%w: %v", core.ErrDamaged, v)
}

func withoutPath(err error) error {
	var e *fs.PathError
	if errors.As(err, &e) {
		return e.Err
	}
	return err
}

// FileError adds the file's name to an error, and core.ErrFull if the disk is full.
func FileError(file string, err error) error {
	if err == nil {
		return nil
	}
	if isFull(err) {
		err = core.ErrFull
	}
	return fmt.Errorf("%s: %w", file, withoutPath(err))
}

func fullError(err error) error {
	if err != nil && isFull(err) {
		return fmt.Errorf("%w: %w", core.ErrFull, err)
	}
	return err
}

// isFull reports whether an error means a full disk, also if bbolt kept only its text.
func isFull(err error) bool {
	if errors.Is(err, berrors.ErrMaxSizeReached) {
		return true
	}
	for _, e := range []syscall.Errno{syscall.ENOSPC, syscall.EDQUOT, syscall.EFBIG} {
		if strings.Contains(err.Error(), e.Error()) {
			return true
		}
	}
	return false
}

// LockDir locks a directory, as an open File does with its own until it is closed: the lock of a database moves with
// the file, and a second database in its place would replace what is still written to the first. The error may be
// core.ErrLocked. Closing dir unlocks it.
func LockDir(name string) (dir *os.File, err error) {
	dir, err = os.Open(name)
	if err != nil {
		return nil, err
	}
	for began := time.Now(); isLocked(dir); time.Sleep(lockPause) {
		if time.Since(began) > lockWait {
			dir.Close()
			return nil, core.ErrLocked
		}
	}
	return dir, nil
}

// isNamed reports whether a name leads to an open file.
func isNamed(name string, file *os.File) bool {
	named, err := os.Stat(name)
	opened, err2 := file.Stat()
	return err == nil && err2 == nil && os.SameFile(named, opened)
}

// Replace writes a file (0600) beside its name, syncs it and renames it.
func Replace(file string, write func(*os.File) error) error {
	f, err := os.CreateTemp(filepath.Dir(file), "."+filepath.Base(file)+".*")
	if err != nil {
		return FileError(file, err)
	}
	err = errors.Join(write(f), f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), file)
	}
	if err != nil {
		return errors.Join(FileError(file, err), os.Remove(f.Name()))
	}
	return SyncDir(filepath.Dir(file))
}

// KeepOwner gives a file the mode of another one and, if the process runs as root, its owner. Otherwise, a
// command run by root could leave a database that the bot must not open.
func KeepOwner(file, other string) error {
	info, err := os.Stat(other)
	if err != nil {
		return FileError(other, err)
	}
	return FileError(file, errors.Join(giveToOwner(file, info), os.Chmod(file, info.Mode().Perm())))
}

// SyncDir makes the names in a directory durable.
func SyncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return fmt.Errorf("%s: %w", dir, withoutPath(err))
	}
	return errors.Join(d.Sync(), d.Close())
}

const maxFaults = 3 // that CheckPages names

// CheckPages reports what is wrong with the pages of a closed file.
func CheckPages(file string) error {
	f, err := rescue.Open(file)
	switch {
	case errors.Is(err, rescue.ErrBroken):
		return DamagedError(file, err)
	case err != nil:
		return fmt.Errorf("%s: %w", file, withoutPath(err))
	}
	defer f.Close()
	faults := f.Check()
	if len(faults) > 0 {
		return DamagedError(file, errors.Join(faults[:min(len(faults), maxFaults)]...))
	}
	return nil
}

const rewriteStep = 4 << 20

// Rewrite copies the buckets of a closed file with intact pages into a new one. It does not read the list of
// free pages, which may be damaged.
func Rewrite(to, from string) error {
	source, err := bbolt.Open(from, 0o600, &bbolt.Options{ReadOnly: true, Timeout: lockWait})
	if err != nil {
		return OpenError(from, err)
	}
	target, err := bbolt.Open(to, 0o600, &bbolt.Options{NoSync: true})
	if err == nil {
		err = errors.Join(bbolt.Compact(target, source, rewriteStep), target.Sync(), target.Close())
	}
	return errors.Join(FileError(to, err), source.Close())
}

// Salvage calls add with the pairs of some buckets that can be read from a closed, damaged file, and returns
// the first faults.
func Salvage(file string, buckets []string, add func(bucket string, key, value []byte)) (faults []error, err error) {
	f, err := rescue.Open(file)
	if err != nil {
		return nil, fmt.Errorf("%s: nothing can be saved: %w", file, withoutPath(err))
	}
	defer f.Close()
	return f.Pairs(buckets, add), nil
}
