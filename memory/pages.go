package memory

import (
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"io"
)

// wreck reads what can be read of a bbolt file that bbolt itself may not open.
// It trusts nothing: every number is checked before it is used.
//
// A page begins with its number (8 bytes), flags (2), count of elements (2) and
// the number of pages that follow it (4). Elements of a branch are position (4,
// from the element's own start), key size (4), page (8); of a leaf flags (4),
// position, key size, value size (4 each). The value of a bucket is its root
// page (8; 0: the page follows right here) and a sequence (8). Numbers are in
// the byte order of the machine, in practice little endian.
type wreck struct {
	file   io.ReaderAt
	size   int64
	page   int64 // bytes of one
	faults []error
	// seen, if set, has a bit for each page; one that is met twice is a fault.
	seen []uint64
}

const (
	pageHeader   = 16
	branchFlag   = 1
	leafFlag     = 2
	bucketFlag   = 1
	elementSize  = 16
	bucketHeader = 16
	boltMagic    = 0xED0CDAED
	maxDepth     = 64
)

var order = binary.LittleEndian

// root finds the page of the newest transaction whose first page is whole.
func (w *wreck) root() (page uint64, err error) {
	var newest uint64
	err = fmt.Errorf("none of its first pages is whole")
	for _, size := range []int64{4096, 8192, 16384, 65536} {
		for at := range int64(2) {
			root, tx, ok := w.meta(at*size, uint32(size))
			if ok && tx >= newest {
				page, newest, w.page, err = root, tx, size, nil
			}
		}
		if err == nil {
			return page, nil
		}
	}
	return 0, err
}

// meta reads a first page: magic, version, page size, flags (4 each), root
// bucket (16), freelist, end, transaction, checksum (8 each).
func (w *wreck) meta(at int64, size uint32) (root, tx uint64, ok bool) {
	b := make([]byte, pageHeader+64)
	if _, err := w.file.ReadAt(b, at); err != nil {
		return 0, 0, false
	}
	m := b[pageHeader:]
	sum := fnv.New64a()
	sum.Write(m[:56])
	ok = order.Uint32(m) == boltMagic && order.Uint32(m[8:]) == size && order.Uint64(m[56:]) == sum.Sum64()
	return order.Uint64(m[16:]), order.Uint64(m[48:]), ok
}

func (w *wreck) fault(format string, args ...any) {
	if len(w.faults) < maxFaults {
		w.faults = append(w.faults, fmt.Errorf(format, args...))
	}
}

// pair is called for each key that can be read; bucket tells that the value is
// one.
type pair func(key, value []byte, bucket bool)

// walk visits all pairs below a page. What cannot be read is noted and left
// out.
func (w *wreck) walk(page uint64, depth int, use pair) {
	if depth > maxDepth {
		w.fault("page %d: too deep", page)
		return
	}
	b, err := w.read(page)
	if err != nil {
		w.fault("page %d: %w", page, err)
		return
	}
	w.elements(b, page, depth, use)
}

// read returns a page with those that follow it.
func (w *wreck) read(page uint64) ([]byte, error) {
	if page < 2 || page >= uint64(w.size/w.page) {
		return nil, fmt.Errorf("beyond the end of the file")
	}
	head := make([]byte, pageHeader)
	at := int64(page) * w.page
	if _, err := w.file.ReadAt(head, at); err != nil {
		return nil, err
	}
	if got := order.Uint64(head); got != page {
		return nil, fmt.Errorf("it says that it is page %d", got)
	}
	size := (int64(order.Uint32(head[12:])) + 1) * w.page
	if size > w.size-at {
		return nil, fmt.Errorf("%d bytes do not fit into the file", size)
	}
	if !w.first(page, uint64(size/w.page)) {
		return nil, fmt.Errorf("it is used twice")
	}
	b := make([]byte, size)
	if _, err := w.file.ReadAt(b, at); err != nil {
		return nil, err
	}
	return b, nil
}

// first notes that pages are in use; false when one of them was before.
func (w *wreck) first(page, n uint64) bool {
	if w.seen == nil {
		return true
	}
	for p := page; p < page+n; p++ {
		if w.seen[p/64]&(1<<(p%64)) != 0 {
			return false
		}
		w.seen[p/64] |= 1 << (p % 64)
	}
	return true
}

// elements visits what stands in one page.
func (w *wreck) elements(b []byte, page uint64, depth int, use pair) {
	flags, count := order.Uint16(b[8:]), int(order.Uint16(b[10:]))
	if flags != branchFlag && flags != leafFlag {
		w.fault("page %d: it is neither branch nor leaf", page)
		return
	}
	for i := range count {
		at := pageHeader + i*elementSize
		if at+elementSize > len(b) {
			w.fault("page %d: %d elements do not fit", page, count)
			return
		}
		e := b[at:]
		if flags == branchFlag {
			w.walk(order.Uint64(e[8:]), depth+1, use)
			continue
		}
		key, rest, ok := cut(e, order.Uint32(e[4:]), order.Uint32(e[8:]))
		value, _, ok2 := cut(rest, 0, order.Uint32(e[12:]))
		if !ok || !ok2 {
			w.fault("page %d: element %d lies outside of it", page, i)
			continue
		}
		use(key, value, order.Uint32(e)&bucketFlag != 0)
	}
}

// cut takes size bytes from position at.
func cut(b []byte, at, size uint32) (part, rest []byte, ok bool) {
	end := uint64(at) + uint64(size)
	if end > uint64(len(b)) {
		return nil, nil, false
	}
	return b[at:end], b[end:], true
}

// bucket visits the pairs of a bucket, given its value.
func (w *wreck) bucket(name string, value []byte, use pair) {
	if len(value) < bucketHeader {
		w.fault("bucket %s: %d bytes", name, len(value))
		return
	}
	if root := order.Uint64(value); root != 0 {
		w.walk(root, 0, use)
		return
	}
	inline := value[bucketHeader:]
	if len(inline) < pageHeader {
		w.fault("bucket %s: %d bytes", name, len(value))
		return
	}
	w.elements(inline, 0, 0, use)
}
