package rescue

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"go.etcd.io/bbolt"
)

// stored returns a bbolt file with a large bucket, three small ones and a nested one.
func stored(t testing.TB, o *bbolt.Options) (file string) {
	t.Helper()
	file = filepath.Join(t.TempDir(), "x.db")
	db, err := bbolt.Open(file, 0o600, o)
	if err != nil {
		t.Fatal(err)
	}
	err = db.Update(func(tx *bbolt.Tx) error {
		var faults []error
		put := func(bucket string, key, value []byte) {
			b, err := tx.CreateBucketIfNotExists([]byte(bucket))
			faults = append(faults, err, b.Put(key, value))
		}
		for i := range 500 {
			put("log", largeKey(i), bytes.Repeat([]byte("words "), 50))
		}
		put("meta", []byte("a"), []byte("first"))
		put("meta", []byte("b"), nil)
		put("long", []byte("c"), bytes.Repeat([]byte("0123456789"), 1000))
		_, err := tx.CreateBucket([]byte("due"))
		_, err2 := tx.Bucket([]byte("meta")).CreateBucket([]byte("nested"))
		return errors.Join(append(faults, err, err2)...)
	})
	if err := errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
	return file
}

func largeKey(i int) []byte { return fmt.Appendf(nil, "key %03d", i) }

func content(t testing.TB, file string) []byte {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func write(t testing.TB, content []byte) (file string) {
	t.Helper()
	file = filepath.Join(t.TempDir(), "x.db")
	if err := os.WriteFile(file, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func opened(t testing.TB, file string) *File {
	t.Helper()
	f, err := Open(file)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

// TestPairs: all pairs of the requested buckets are read, with any page size.
func TestPairs(t *testing.T) {
	for _, size := range []int{4096, 8192, 16384, 65536} {
		file := stored(t, &bbolt.Options{PageSize: size})
		counts := make(map[string]int)
		var small []string
		faults := opened(t, file).Pairs([]string{"log", "meta", "due", "none"}, func(bucket string, key, value []byte) {
			if bucket == "log" && (string(key) != string(largeKey(counts[bucket])) || len(value) != 300) {
				t.Errorf("unexpected value of %d bytes at %q", len(value), key)
			}
			if counts[bucket]++; bucket == "meta" {
				small = append(small, string(key), string(value))
			}
		})
		if len(faults) > 0 || counts["log"] != 500 || len(counts) != 2 || strings.Join(small, " ") != "a first b " {
			t.Errorf("pages of %d: unexpected faults %v, counts %v or pairs %q", size, faults, counts, small)
		}
		if faults := opened(t, file).Check(); len(faults) > 0 {
			t.Errorf("pages of %d: unexpected faults %v", size, faults)
		}
	}
}

// TestCheck: keys out of order and invalid pages are reported as faults.
func TestCheck(t *testing.T) {
	file := stored(t, nil)
	whole, used := content(t, file), opened(t, file)
	if faults := used.Check(); len(faults) > 0 {
		t.Fatal(faults)
	}
	for says, change := range map[string]func(page []byte) bool{
		"does not follow":         func(p []byte) bool { return swap(p, largeKey(2)) },
		"neither branch nor leaf": func(p []byte) bool { return flags(p) == leafFlag && set16(p[8:], 5) },
		"elements do not fit": func(p []byte) bool {
			return bytes.Contains(p, []byte("long")) && clean(p[pageHeader:]) && set16(p[10:], 5000)
		},
		"lies outside":              func(p []byte) bool { return flags(p) == leafFlag && count(p) > 0 && set16(p[pageHeader+8:], 60000) },
		"it says that it is page 1": func(p []byte) bool { return flags(p) == leafFlag && set16(p, 1) },
		"do not fit into the file":  func(p []byte) bool { return flags(p) == leafFlag && set16(p[12:], 60000) },
		"EOF":                       func(p []byte) bool { return flags(p) == branchFlag && set16(p[pageHeader+8:], 60000) },
		"bucket meta: 8 bytes":      func(p []byte) bool { return bucketSize(p, "meta", 8) },
		"bucket due: 20 bytes":      func(p []byte) bool { return bucketSize(p, "due", 20) },
		"element 1 lies outside": func(p []byte) bool {
			return flags(p) == leafFlag && count(p) > 1 && set16(p[pageHeader+elementSize+12:], 60000)
		},
		"": func(p []byte) bool { return flags(p) == branchFlag && set16(p[10:], 5000) },
		"used twice": func(p []byte) bool {
			return flags(p) == branchFlag && copy(p[pageHeader+8:pageHeader+16], p[pageHeader+24:]) > 0
		},
	} {
		broken := bytes.Clone(whole)
		changed := false
		for at := 2 * 4096; at < len(broken); at += 4096 {
			number := uint64(at / 4096)
			isUsed := used.seen[number/64]&(1<<(number%64)) != 0
			if page := broken[at : at+4096]; isUsed && order.Uint64(page) == number && change(page) {
				changed = true
				break
			}
		}
		faults := opened(t, write(t, broken)).Check()
		if !changed || len(faults) == 0 || len(faults) > MaxFaults || !strings.Contains(fmt.Sprint(faults), says) {
			t.Errorf("the faults %v lack %q (changed: %t)", faults, says, changed)
		}
	}
}

func flags(page []byte) uint16 { return order.Uint16(page[8:]) }

func count(page []byte) uint16 { return order.Uint16(page[10:]) }

func set16(b []byte, n uint16) bool {
	order.PutUint16(b, n)
	return true
}

// bucketSize changes the length of a bucket's value.
func bucketSize(page []byte, name string, size uint16) bool {
	for i := range int(count(page)) {
		e := page[pageHeader+i*elementSize:]
		start, length := order.Uint32(e[4:]), order.Uint32(e[8:])
		if string(e[start:start+length]) == name && order.Uint32(e)&bucketFlag != 0 {
			return set16(e[12:], size)
		}
	}
	return false
}

func clean(b []byte) bool {
	clear(b)
	return true
}

// swap overwrites a key of a page with the next one.
func swap(page, key []byte) bool {
	at := bytes.Index(page, key)
	if at < 0 {
		return false
	}
	page[at+len(key)-1]++
	return true
}

// TestNewest: the newest transaction is read from either meta page, and the one before it if the
// newest is broken.
func TestNewest(t *testing.T) {
	file := stored(t, nil)
	db, err := bbolt.Open(file, 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	entries := func(content []byte) (n int) {
		opened(t, write(t, content)).Pairs([]string{"log"}, func(string, []byte, []byte) { n++ })
		return n
	}
	for i := range 4 {
		id := 0
		err := db.Update(func(tx *bbolt.Tx) error {
			id = tx.ID()
			return tx.Bucket([]byte("log")).Put(fmt.Append(nil, "new ", i), nil)
		})
		if err != nil {
			t.Fatal(err)
		}
		now := content(t, file)
		if n := entries(now); n != 501+i {
			t.Errorf("%d entries after transaction %d, want %d", n, id, 501+i)
		}
		order.PutUint64(now[id%2*4096+pageHeader+16:], 3) // breaks its root
		if n := entries(now); n != 500+i {
			t.Errorf("%d entries before transaction %d, want %d", n, id, 500+i)
		}
	}
}

// TestOpenFails: an unreadable or missing file is an error.
func TestOpenFails(t *testing.T) {
	noise := write(t, []byte(strings.Repeat("this is no database", 10000)))
	for file, wanted := range map[string]error{noise: ErrBroken, noise + "x": os.ErrNotExist, write(t, nil): ErrBroken} {
		if _, err := Open(file); !errors.Is(err, wanted) {
			t.Errorf("got %v, want %v", err, wanted)
		}
	}
}

// brokenAt is a file of which a part cannot be read.
type brokenAt struct {
	*bytes.Reader
	at, length int64
}

func (b brokenAt) ReadAt(p []byte, at int64) (int, error) {
	if at == b.at && int64(len(p)) == b.length {
		return 0, syscall.EIO
	}
	return b.Reader.ReadAt(p, at)
}

// TestSectorsThatCannotBeRead: each unreadable sector is one fault.
func TestSectorsThatCannotBeRead(t *testing.T) {
	file := stored(t, nil)
	whole, root := bytes.NewReader(content(t, file)), opened(t, file).root
	for _, length := range []int64{pageHeader, 4096} {
		f := At(brokenAt{whole, int64(root) * 4096, length}, whole.Size(), 4096, root)
		if faults := f.Check(); len(faults) != 1 || !errors.Is(faults[0], syscall.EIO) {
			t.Errorf("got %v, want the fault of the disk", faults)
		}
	}
	if faults := At(whole, whole.Size(), 4096, root).Check(); len(faults) > 0 {
		t.Error(faults)
	}
}

// FuzzFile: reading a file of random bytes ends without a panic.
func FuzzFile(f *testing.F) {
	whole := content(f, stored(f, nil))
	f.Add(whole[:12*4096], uint64(3))
	overflown := bytes.Clone(whole[:4*4096])
	binary.LittleEndian.PutUint64(overflown[3*4096:], 1<<52+3)
	f.Add(overflown, uint64(1<<52+3))
	f.Fuzz(func(_ *testing.T, content []byte, root uint64) {
		for _, name := range []string{"", "log"} {
			f := At(bytes.NewReader(content), int64(len(content)), 4096, root)
			if f.findRoot(); name == "" {
				f.Check()
			} else {
				f.Pairs([]string{name}, func(string, []byte, []byte) {})
			}
		}
	})
}
