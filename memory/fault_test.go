package memory

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"unsafe"

	"go.etcd.io/bbolt"

	"synthbot/core"
	"synthbot/core/coretest"
	"synthbot/memory/bolt"
	"synthbot/memory/kv"
)

// disk lets writes and syncs of bbolt's file fail. bbolt only accepts an *os.File, so disk sets
// bbolt's own test hook by reflection. It makes a sync fail by replacing the descriptor with
// /dev/zero, which can be written but not synced.
type disk struct {
	t      *testing.T
	handle *os.File

	mu    sync.Mutex
	write func(buf []byte, at int64) (int, error) // nil: write to the file
}

// onWrite replaces the function that writes; nil restores it.
func (d *disk) onWrite(f func(buf []byte, at int64) (int, error)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.write = f
}

// part returns a field of a database's bolt engine.
func part[T any](db *DB, name string) *T {
	field := reflect.ValueOf(db.engine.Engine.(*bolt.File)).Elem().FieldByName(name)
	return (*T)(unsafe.Pointer(field.UnsafeAddr()))
}

func boltOf(db *DB) *bbolt.DB  { return *part[*bbolt.DB](db, "bolt") }
func handleOf(db *DB) *os.File { return *part[*os.File](db, "handle") }

// interceptWrites returns a disk between bbolt and the database's file.
func interceptWrites(t *testing.T, db *DB) *disk {
	t.Helper()
	d := &disk{t: t, handle: handleOf(db)}
	boltOf(db).NoSync, boltOf(db).NoGrowSync = false, false
	hook := reflect.ValueOf(boltOf(db)).Elem().FieldByName("ops").FieldByName("writeAt")
	hook = reflect.NewAt(hook.Type(), unsafe.Pointer(hook.UnsafeAddr())).Elem()
	real := d.handle.WriteAt
	hook.Set(reflect.ValueOf(func(buf []byte, at int64) (int, error) {
		d.mu.Lock()
		write := d.write
		d.mu.Unlock()
		if write != nil {
			return write(buf, at)
		}
		return real(buf, at)
	}))
	return d
}

// unsynced makes syncs fail until heal is called.
func (d *disk) unsynced() (heal func()) {
	fd := int(d.handle.Fd())
	kept, err := syscall.Dup(fd)
	if err != nil {
		d.t.Fatal(err)
	}
	zero, err := os.OpenFile("/dev/zero", os.O_RDWR, 0)
	if err != nil {
		d.t.Fatal(err)
	}
	if err := syscall.Dup3(int(zero.Fd()), fd, 0); err != nil {
		d.t.Fatal(err)
	}
	zero.Close()
	return sync.OnceFunc(func() {
		if err := syscall.Dup3(kept, fd, 0); err != nil {
			d.t.Fatal(err)
		}
		syscall.Close(kept)
	})
}

// isMeta reports whether an offset is in the meta pages.
func isMeta(at int64) bool { return at < 2*4096 }

// commitN commits message n.
func commitN(db *DB, n int) error {
	return db.Commit(context.Background(), &core.Batch{Append: []core.Entry{message(kitchen, fmt.Sprint(n),
		fmt.Sprint(n))}})
}

// holds checks that the database holds all acknowledged messages.
func holds(t *testing.T, db *DB, acknowledged []int) {
	t.Helper()
	err := db.view(t.Context(), func(v *view) error {
		for _, n := range acknowledged {
			e, ok, err := v.Entry(kitchen, fmt.Sprint(n))
			if err != nil || !ok || e.Message.Text != fmt.Sprint(n) {
				t.Errorf("message %d: %t, %v", n, ok, err)
			}
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// crash returns a directory with a copy of the file, as a dying process would leave it.
func crash(t *testing.T, db *DB) (dir string) {
	t.Helper()
	dir = t.TempDir()
	content, err := os.ReadFile(db.engine.name)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, FileName), content, 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestWritesFail lets each write of some commits fail, in several ways. Acknowledged messages stay,
// failed commits return an error, and reading and later writing work.
func TestWritesFail(t *testing.T) {
	commits := coretest.Sample(60, 12)
	for name, fail := range map[string]func(real func([]byte, int64) (int, error), buf []byte, at int64) (int, error){
		"no space": func(_ func([]byte, int64) (int, error), _ []byte, _ int64) (int, error) { return 0, syscall.ENOSPC },
		"i/o":      func(_ func([]byte, int64) (int, error), _ []byte, _ int64) (int, error) { return 0, syscall.EIO },
		"short": func(real func([]byte, int64) (int, error), buf []byte, at int64) (int, error) {
			n, _ := real(buf[:len(buf)/2], at)
			return n, syscall.EIO
		},
		"noise": func(real func([]byte, int64) (int, error), buf []byte, at int64) (int, error) {
			n, _ := real(bytes.Repeat([]byte{0xaa}, len(buf)/3), at)
			return n, syscall.EIO
		},
	} {
		t.Run(name, func(t *testing.T) {
			db := open(t, t.TempDir())
			d := interceptWrites(t, db)
			var acknowledged []int
			for n := range commits {
				left := n % 12 // writes before the one that fails
				d.onWrite(func(buf []byte, at int64) (int, error) {
					if left--; left < 0 {
						return fail(handleOf(db).WriteAt, buf, at)
					}
					return handleOf(db).WriteAt(buf, at)
				})
				err := commitN(db, n)
				d.onWrite(nil)
				switch {
				case err == nil:
					acknowledged = append(acknowledged, n)
				case name == "no space" && !errors.Is(err, core.ErrFull):
					t.Errorf("message %d: %v is not ErrFull", n, err)
				case !strings.Contains(err.Error(), db.engine.name):
					t.Errorf("message %d: %v does not name the file", n, err)
				}
				holds(t, db, acknowledged)
				if n%12 == 5 {
					after := open(t, crash(t, db))
					holds(t, after, acknowledged)
				}
				if err := db.space.recovered(t); err != nil {
					t.Fatal(err)
				}
				if err := commitN(db, 1000+n); err != nil {
					t.Fatalf("the commit failed after the disk recovered: %v", err)
				}
				acknowledged = append(acknowledged, 1000+n)
			}
			if len(acknowledged) == commits {
				t.Error("nothing was acknowledged while some writes failed")
			}
			holds(t, db, acknowledged)
		})
	}
}

// TestDataSyncFails: if the sync before the meta page fails, nothing of the commit is visible.
func TestDataSyncFails(t *testing.T) {
	db := open(t, t.TempDir())
	d := interceptWrites(t, db)
	if err := commitN(db, 1); err != nil {
		t.Fatal(err)
	}
	var heal func()
	d.onWrite(func(buf []byte, at int64) (int, error) {
		n, err := handleOf(db).WriteAt(buf, at)
		if heal == nil {
			heal = d.unsynced()
		}
		return n, err
	})
	err := commitN(db, 2)
	heal()
	if d.onWrite(nil); err == nil {
		t.Fatal("acknowledged without a sync")
	}
	db.view(t.Context(), func(v *view) error {
		if _, ok, err := v.Entry(kitchen, "2"); ok || err != nil {
			t.Errorf("the failed message is visible: %t, %v", ok, err)
		}
		return nil
	})
	if err := commitN(db, 2); err != nil {
		t.Fatal(err)
	}
	holds(t, db, []int{1, 2})
}

// TestLastSyncFails: if the meta page is written but not synced, readers already see the commit, so
// it must be completed before the next write.
func TestLastSyncFails(t *testing.T) {
	db := open(t, t.TempDir())
	d := interceptWrites(t, db)
	if err := commitN(db, 1); err != nil {
		t.Fatal(err)
	}
	heal := func() {}
	d.onWrite(func(buf []byte, at int64) (int, error) {
		n, err := handleOf(db).WriteAt(buf, at)
		if isMeta(at) {
			heal = d.unsynced()
		}
		return n, err
	})
	if err := commitN(db, 2); err == nil {
		t.Fatal("acknowledged without a sync")
	}
	d.onWrite(nil)
	if err := commitN(db, 3); err == nil {
		t.Fatal("acknowledged while nothing can be synced")
	}
	heal()
	if err := commitN(db, 3); err != nil {
		t.Fatal(err)
	}
	if *part[int](db, "unsynced") != 0 {
		t.Error("the incomplete commit was not completed")
	}
	b := &core.Batch{Append: []core.Entry{message(kitchen, "2", "2")}}
	if err := db.Commit(t.Context(), b); err != nil || !b.Known[0] {
		t.Errorf("the commit that readers saw must be known: got %v, %v", b.Known, err)
	}
	holds(t, db, []int{1, 2, 3})
	holds(t, open(t, crash(t, db)), []int{1, 2, 3})
}

// triggered is a log handler that calls do.
type triggered struct {
	slog.Handler
	do func()
}

func (h triggered) Handle(ctx context.Context, r slog.Record) error {
	h.do()
	return h.Handler.Handle(ctx, r)
}

// TestLastSyncFailsOnce: a commit succeeds if the second attempt to sync works.
func TestLastSyncFailsOnce(t *testing.T) {
	db := open(t, t.TempDir())
	d := interceptWrites(t, db)
	heal := func() {}
	d.onWrite(func(buf []byte, at int64) (int, error) {
		n, err := handleOf(db).WriteAt(buf, at)
		if isMeta(at) {
			heal = d.unsynced()
		}
		return n, err
	})
	*part[*slog.Logger](db, "log") = slog.New(triggered{complaints{slog.DiscardHandler, t}, func() { heal() }})
	if err := commitN(db, 1); err != nil {
		t.Errorf("got error %v although the second sync worked", err)
	}
	d.onWrite(nil)
	holds(t, db, []int{1})
}

// TestOneThatIsTooLargeFailsAlone: if one of several jobs does not fit the disk, the others are
// still written.
func TestOneThatIsTooLargeFailsAlone(t *testing.T) {
	bubble(t, Options{}, func(t *testing.T, _ string, db *DB) {
		d := interceptWrites(t, db)
		d.onWrite(func(buf []byte, at int64) (int, error) {
			if len(buf) > 1<<16 {
				return 0, syscall.ENOSPC
			}
			return handleOf(db).WriteAt(buf, at)
		})
		letGo := hold(db)
		var all sync.WaitGroup
		for n := range 10 {
			all.Go(func() {
				if err := commitN(db, n); err != nil {
					t.Errorf("message %d: %v", n, err)
				}
			})
		}
		all.Go(func() {
			large := message(kitchen, "large", strings.Repeat("x", 1<<20))
			if err := db.Commit(t.Context(), &core.Batch{Append: []core.Entry{large}}); !errors.Is(err, core.ErrFull) {
				t.Errorf("the large job: got %v, want ErrFull", err)
			}
		})
		synctest.Wait()
		letGo()
		all.Wait()
		d.onWrite(nil)
	})
}

// TestFullDisk fills a real, small file system, reads while it is full, makes room and continues.
// It is skipped without the right to mount one.
func TestFullDisk(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=6m"); err != nil {
		t.Skip("cannot mount a small file system: ", err)
	}
	t.Cleanup(func() { syscall.Unmount(dir, syscall.MNT_DETACH) })
	ballast := filepath.Join(dir, "ballast")
	if err := os.WriteFile(ballast, make([]byte, 3<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	fillUp(t, dir, func(db *DB) {
		finishWhileFull(t, db)
		if err := os.Remove(ballast); err != nil {
			t.Fatal(err)
		}
	})
}

// recovered makes the database notice at once that the disk has room.
func (r *diskSpace) recovered(t *testing.T) error {
	if r.full.Load() && !r.probe(t.Context()) {
		return errors.New("there is room, but it is not found")
	}
	return nil
}

// finishWhileFull checks that a full disk refuses anything new but takes the ends of turns.
func finishWhileFull(t *testing.T, db *DB) {
	t.Helper()
	for n := range 20 {
		end := core.Batch{Finishing: true, Append: []core.Entry{message(kitchen, fmt.Sprint("end ", n), strings.Repeat("words ", 4000))}}
		if err := db.Commit(t.Context(), &end); err != nil {
			t.Errorf("end of turn %d: unexpected error %v", n, err)
		}
		if err := commitN(db, 20_000+n); !errors.Is(err, core.ErrFull) {
			t.Errorf("a full disk took something new: %v", err)
		}
	}
}

// fillUp writes until the disk is full, makes room, and writes again.
func fillUp(t *testing.T, dir string, room func(*DB)) {
	t.Helper()
	db := open(t, dir)
	var acknowledged []int
	fillOnce := func(from int) (n int) {
		for n = from; ; n++ {
			e := message(kitchen, fmt.Sprint(n), fmt.Sprint(n))
			e.Data = strings.Repeat("filling ", 2000)
			err := db.Commit(t.Context(), &core.Batch{Append: []core.Entry{e}})
			if errors.Is(err, core.ErrFull) {
				return n
			}
			if err != nil || n > 10000 {
				t.Fatalf("message %d: %v", n, err)
			}
			acknowledged = append(acknowledged, n)
		}
	}
	n := fillOnce(0)
	for range 3 {
		holds(t, db, acknowledged)
		fillOnce(n)
	}
	room(db)
	if err := db.space.recovered(t); err != nil {
		t.Fatal(err)
	}
	if more := fillOnce(n); more <= n {
		t.Error("nothing was written after room was made")
	}
	holds(t, db, acknowledged)
}

// TestFileSizeLimit lets the kernel refuse to let the file grow. It needs a process of its own.
func TestFileSizeLimit(t *testing.T) {
	const variable = "SYNTHBOT_TEST_FILE_SIZE"
	if os.Getenv(variable) == "" {
		self := exec.Command(os.Args[0], "-test.run=^TestFileSizeLimit$", "-test.v")
		self.Env = append(os.Environ(), variable+"=1")
		if out, err := self.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		return
	}
	signal.Ignore(syscall.SIGXFSZ)
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
		t.Fatal(err)
	}
	setLimit := func(size uint64) {
		if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: size, Max: limit.Max}); err != nil {
			t.Fatal(err)
		}
	}
	setLimit(4096)
	dir := t.TempDir()
	for _, err := range []error{core.ErrFull, core.ErrFull, nil} {
		if err == nil {
			setLimit(2 << 20)
		}
		db, got := Open(dir, Options{})
		if !errors.Is(got, err) {
			t.Errorf("a new database: got %v, want %v", got, err)
		}
		files, _ := os.ReadDir(dir)
		if err != nil && len(files) > 0 {
			t.Errorf("%v is left", files)
		}
		if got == nil {
			if err := db.Close(); err != nil {
				t.Error(err)
			}
		}
	}
	fillUp(t, t.TempDir(), func(*DB) { setLimit(4 << 20) })
	setLimit(limit.Cur)
}

// blind is an engine whose views cannot be read.
type blind struct {
	*bolt.File
	open int // views that have not ended
}

func (b *blind) Begin(ctx context.Context) (kv.View, error) {
	v, err := b.File.Begin(ctx)
	if err == nil {
		b.open++
	}
	return blindView{v, b}, err
}

type blindView struct {
	kv.View
	engine *blind
}

func (v blindView) Bucket(string) kv.Bucket { panic(&kv.Fault{Err: syscall.EIO}) }

func (v blindView) End() {
	v.engine.open--
	v.View.End()
}

// TestUnreadableViewEnds: a view whose first read fails is ended. Otherwise bbolt could not free
// later pages.
func TestUnreadableViewEnds(t *testing.T) {
	db := furnished(t, t.TempDir())
	file := db.engine.Engine.(*bolt.File)
	engine := &blind{File: file}
	db.engine.Engine = engine
	err := updateAndView(t.Context(), db, func(*tx) {}, func(*view) { t.Error("the view could be read") })
	db.engine.Engine = file
	if !errors.Is(err, syscall.EIO) || engine.open != 0 {
		t.Errorf("got error %v with %d open views, want none", err, engine.open)
	}
}
