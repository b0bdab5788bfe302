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
	seen   []uint64 // a bit for each page that was read: once is enough, whatever leads there
	// Of the newest transaction, once root has found it.
	free uint64 // the page of the list of free pages
	end  uint64 // pages from here on were never used
}

const (
	pageHeader   = 16
	branchFlag   = 1
	leafFlag     = 2
	freeFlag     = 16
	noFreeList   = 1<<64 - 1 // as its page: there is none
	manyFree     = 0xFFFF    // as the count: the true one stands before the first
	bucketFlag   = 1
	elementSize  = 16
	bucketHeader = 16
)

var order = binary.LittleEndian

// root finds the page of the newest transaction whose first page is whole.
func (w *wreck) root() (page uint64, err error) {
	var newest uint64
	err = fmt.Errorf("none of its first pages is whole")
	for _, size := range []int64{4096, 8192, 16384, 65536} {
		for at := range int64(2) {
			m, ok := w.meta(at*size, uint32(size))
			if ok && m.tx >= newest {
				page, newest, w.page, err = m.root, m.tx, size, nil
				w.free, w.end = m.free, m.end
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
func (w *wreck) meta(at int64, size uint32) (found meta, ok bool) {
	b := make([]byte, pageHeader+64)
	if _, err := w.file.ReadAt(b, at); err != nil {
		return meta{}, false
	}
	m := b[pageHeader:]
	sum := fnv.New64a()
	sum.Write(m[:56])
	ok = order.Uint32(m[8:]) == size && order.Uint64(m[56:]) == sum.Sum64()
	return meta{order.Uint64(m[16:]), order.Uint64(m[32:]), order.Uint64(m[40:]), order.Uint64(m[48:])}, ok
}

// meta is what a first page says.
type meta struct{ root, free, end, tx uint64 }

// freePages checks the list of free pages, after all that is in use was walked:
// each page is either in use or free, and none both. A list begins with how many
// there are, where the page's header has no room for that; each is a number of
// eight bytes.
func (w *wreck) freePages() {
	if w.free == noFreeList {
		return
	}
	b, err := w.read(w.free)
	if err != nil {
		w.fault("list of free pages, page %d: %w", w.free, err)
		return
	}
	numbers, n := b[pageHeader:], uint64(order.Uint16(b[10:]))
	if n == manyFree {
		numbers, n = numbers[8:], order.Uint64(numbers)
	}
	if order.Uint16(b[8:]) != freeFlag || n > uint64(len(numbers)/8) {
		w.fault("list of free pages, page %d: it is none, or its %d numbers do not fit", w.free, n)
		return
	}
	for i := range n {
		if page := order.Uint64(numbers[8*i:]); page < 2 || page >= w.end || !w.first(page, 1) {
			w.fault("page %d is said to be free, and is none or in use", page)
		}
	}
	for page := uint64(2); page < min(w.end, uint64(len(w.seen))*64); page++ {
		if w.first(page, 1) {
			w.fault("page %d is neither in use nor free", page)
		}
	}
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
func (w *wreck) walk(page uint64, use pair) {
	b, err := w.read(page)
	if err != nil {
		w.fault("page %d: %w", page, err)
		return
	}
	w.elements(b, page, use)
}

// read returns a page with those that follow it.
func (w *wreck) read(page uint64) ([]byte, error) {
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
		w.seen = make([]uint64, w.size/w.page/64+1)
	}
	if (page+n-1)/64 >= uint64(len(w.seen)) {
		return false
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
func (w *wreck) elements(b []byte, page uint64, use pair) {
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
			w.walk(order.Uint64(e[8:]), use)
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
		w.walk(root, use)
		return
	}
	inline := value[bucketHeader:]
	if len(inline) < pageHeader {
		w.fault("bucket %s: %d bytes", name, len(value))
		return
	}
	w.elements(inline, 0, use)
}
