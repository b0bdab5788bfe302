// Package rescue reads bbolt files page by page, without bbolt, which trusts its files: a damaged page ends the whole
// process, or makes it read forever. So this package checks a backup before bbolt opens it, and a file that was not
// closed properly while it is in use. It also reads the intact pairs of a damaged file, for users who have no backup.
//
// The package does not repair files, does not know what the pairs mean, and does not
// read free pages: a restored file is a new one, which has none.
//
// # The format
//
// A page begins with its number (8 bytes), flags (2), count of elements (2) and the number of pages that follow it (4).
// Elements of a branch are position (4, from the element's own start), key size (4), page (8); of a leaf flags (4),
// position, key size, value size (4 each). The value of a bucket is its root page (8; 0: the page follows right here)
// and a sequence (8). Numbers are in the byte order of the machine, in practice little endian.
package rescue

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"os"
	"slices"
)

// MaxFaults bounds how many faults one reading returns.
const MaxFaults = 20

const (
	pageHeader   = 16
	branchFlag   = 1
	leafFlag     = 2
	bucketFlag   = 1
	elementSize  = 16
	bucketHeader = 16
)

var order = binary.LittleEndian

// ErrBroken is the error for a file of which nothing can be read.
var ErrBroken = errors.New("none of its first pages is intact")

// File is a bbolt file at one transaction. It trusts nothing: every number is checked
// before it is used. Check and Pairs read a File once, for one goroutine.
type File struct {
	reader io.ReaderAt
	closer io.Closer
	size   int64
	page   int64  // bytes of a page
	root   uint64 // page of the bucket that lists the buckets
	faults []error
	seen   []uint64 // a bit for each page that was read: a page is read once, whatever leads to it
}

// Open opens a file that nobody writes to, at the newest transaction whose first page is intact. The caller closes it.
func Open(name string) (*File, error) {
	opened, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	info, err := opened.Stat()
	if err == nil {
		for _, page := range []int64{4096, 8192, 16384, 65536} {
			f := At(opened, info.Size(), page, 0)
			f.closer = opened
			if f.findRoot() {
				return f, nil
			}
		}
		err = ErrBroken
	}
	return nil, errors.Join(err, opened.Close())
}

// At returns a file that is in use, as the transaction with this root page sees it.
func At(reader io.ReaderAt, size, page int64, root uint64) *File {
	return &File{reader: reader, size: size, page: page, root: root}
}

// Close closes a file that Open returned.
func (f *File) Close() error { return f.closer.Close() }

// findRoot looks for first pages of this size. A first page has magic, version, page size, flags (4 each), root bucket
// (16), list of free pages, end, transaction and checksum (8 each).
func (f *File) findRoot() (found bool) {
	var newest uint64
	for number := range int64(2) {
		page := make([]byte, pageHeader+64)
		if _, err := f.reader.ReadAt(page, number*f.page); err != nil {
			continue
		}
		meta := page[pageHeader:]
		sum := fnv.New64a()
		sum.Write(meta[:56])
		transaction := order.Uint64(meta[48:])
		intact := int64(order.Uint32(meta[8:])) == f.page && order.Uint64(meta[56:]) == sum.Sum64()
		if intact && transaction >= newest {
			f.root, newest, found = order.Uint64(meta[16:]), transaction, true
		}
	}
	return found
}

// Check reads everything in use and returns what is wrong: each page must have the right number and type and be
// used once, and the keys of a bucket must rise.
func (f *File) Check() []error {
	var last []byte
	var before string
	return f.Pairs(nil, func(bucket string, key, _ []byte) {
		if bucket != before {
			before, last = bucket, nil
		}
		if bytes.Compare(last, key) >= 0 {
			f.addFault("bucket %s: key %q does not follow %q", bucket, key, last)
		}
		last = key
	})
}

// Pairs calls use for each pair of these buckets (nil: all) that can be read, and returns
// faults for the rest. The caller may keep key and value.
func (f *File) Pairs(buckets []string, use func(bucket string, key, value []byte)) []error {
	f.walk(f.root, func(name, value []byte, isBucket bool) {
		bucket := string(name)
		if !isBucket || buckets != nil && !slices.Contains(buckets, bucket) {
			return
		}
		f.bucket(bucket, value, func(key, value []byte, nested bool) {
			if !nested {
				use(bucket, key, value)
			}
		})
	})
	return f.faults
}

func (f *File) addFault(format string, args ...any) {
	if len(f.faults) < MaxFaults {
		f.faults = append(f.faults, fmt.Errorf(format, args...))
	}
}

func (f *File) walk(page uint64, use func(key, value []byte, isBucket bool)) {
	b, err := f.readPage(page)
	if err != nil {
		f.addFault("page %d: %w", page, err)
		return
	}
	f.elements(b, page, use)
}

func (f *File) readPage(page uint64) ([]byte, error) {
	head := make([]byte, pageHeader)
	at := int64(page) * f.page
	if _, err := f.reader.ReadAt(head, at); err != nil {
		return nil, err
	}
	got := order.Uint64(head)
	if got != page {
		return nil, fmt.Errorf("it says that it is page %d", got)
	}
	size := (int64(order.Uint32(head[12:])) + 1) * f.page
	if size > f.size-at {
		return nil, fmt.Errorf("%d bytes do not fit into the file", size)
	}
	if !f.markRead(page, uint64(size/f.page)) {
		return nil, errors.New("it is used twice")
	}
	b := make([]byte, size)
	if _, err := f.reader.ReadAt(b, at); err != nil {
		return nil, err
	}
	return b, nil
}

func (f *File) markRead(page, n uint64) bool {
	if f.seen == nil {
		f.seen = make([]uint64, f.size/f.page/64+1)
	}
	if (page+n-1)/64 >= uint64(len(f.seen)) {
		return false
	}
	for p := page; p < page+n; p++ {
		if f.seen[p/64]&(1<<(p%64)) != 0 {
			return false
		}
		f.seen[p/64] |= 1 << (p % 64)
	}
	return true
}

func (f *File) elements(b []byte, page uint64, use func(key, value []byte, isBucket bool)) {
	flags, count := order.Uint16(b[8:]), int(order.Uint16(b[10:]))
	if flags != branchFlag && flags != leafFlag {
		f.addFault("page %d: it is neither branch nor leaf", page)
		return
	}
	for i := range count {
		at := pageHeader + i*elementSize
		if at+elementSize > len(b) {
			f.addFault("page %d: %d elements do not fit", page, count)
			return
		}
		e := b[at:]
		if flags == branchFlag {
			f.walk(order.Uint64(e[8:]), use)
			continue
		}
		start := uint64(order.Uint32(e[4:]))
		middle := start + uint64(order.Uint32(e[8:]))
		end := middle + uint64(order.Uint32(e[12:]))
		if end > uint64(len(e)) {
			f.addFault("page %d: element %d lies outside of it", page, i)
			continue
		}
		use(e[start:middle], e[middle:end], order.Uint32(e)&bucketFlag != 0)
	}
}

func (f *File) bucket(name string, value []byte, use func(key, value []byte, isBucket bool)) {
	switch {
	case len(value) >= bucketHeader && order.Uint64(value) != 0:
		f.walk(order.Uint64(value), use)
	case len(value) < bucketHeader+pageHeader:
		f.addFault("bucket %s: %d bytes", name, len(value))
	default: // its page follows
		f.elements(value[bucketHeader:], 0, use)
	}
}
