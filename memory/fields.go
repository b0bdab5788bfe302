package memory

import (
	"encoding/binary"
	"errors"
	"time"
)

var errFields = errors.New("broken fields")

// fields is a value under construction: tag, length, bytes, again and again.
// What is zero is left out.
type fields []byte

func (f *fields) text(tag byte, s string) {
	if s == "" {
		return
	}
	*f = append(*f, tag)
	*f = binary.AppendUvarint(*f, uint64(len(s)))
	*f = append(*f, s...)
}

func (f *fields) number(tag byte, n uint64) {
	if n == 0 {
		return
	}
	var b [binary.MaxVarintLen64]byte
	size := binary.PutUvarint(b[:], n)
	*f = append(*f, tag, byte(size))
	*f = append(*f, b[:size]...)
}

// signed writes numbers that may be negative.
func (f *fields) signed(tag byte, n int64) { f.number(tag, uint64(n)<<1^uint64(n>>63)) }

func (f *fields) flag(tag byte, set bool) {
	if set {
		f.number(tag, 1)
	}
}

// time keeps the instant to the nanosecond, without its zone.
func (f *fields) time(tag byte, t time.Time) {
	if t.IsZero() {
		return
	}
	var b [2 * binary.MaxVarintLen64]byte
	size := binary.PutVarint(b[:], t.Unix())
	size += binary.PutUvarint(b[size:], uint64(t.Nanosecond()))
	*f = append(*f, tag, byte(size))
	*f = append(*f, b[:size]...)
}

// group writes fields within a field; an empty one is written too.
func (f *fields) group(tag byte, write func(*fields)) {
	var inner fields
	write(&inner)
	*f = append(*f, tag)
	*f = binary.AppendUvarint(*f, uint64(len(inner)))
	*f = append(*f, inner...)
}

// field is one field that was read. Its text shares memory with the value.
type field struct {
	tag  byte
	text string
}

// each calls use for every field of value, in order.
func each(value string, use func(field) error) error {
	for len(value) > 0 {
		tag := value[0]
		size, n := uvarint(value[1:])
		if n == 0 || size > uint64(len(value)-1-n) {
			return errFields
		}
		end := 1 + n + int(size)
		if err := use(field{tag, value[1+n : end]}); err != nil {
			return err
		}
		value = value[end:]
	}
	return nil
}

// uvarint is binary.Uvarint for a string; of what is none the size is 0.
func uvarint(s string) (value uint64, size int) {
	var shift uint
	for i := range min(len(s), binary.MaxVarintLen64) {
		c := s[i]
		if c < 0x80 {
			if i == binary.MaxVarintLen64-1 && c > 1 {
				break
			}
			return value | uint64(c)<<shift, i + 1
		}
		value |= uint64(c&0x7f) << shift
		shift += 7
	}
	return 0, 0
}

// set reads a number into to.
func (f field) set(to *uint64) error {
	n, size := uvarint(f.text)
	if size != len(f.text) {
		return errFields
	}
	*to = n
	return nil
}

func (f field) setSigned(to *int64) error {
	var n uint64
	err := f.set(&n)
	*to = int64(n>>1) ^ -int64(n&1)
	return err
}

func (f field) setInt(to *int) error {
	var n int64
	err := f.setSigned(&n)
	*to = int(n)
	if int64(*to) != n { // on small machines
		err = errFields
	}
	return err
}

func (f field) setTime(to *time.Time) error {
	raw, size := uvarint(f.text)
	nanos, rest := uvarint(f.text[size:])
	if size == 0 || rest == 0 || size+rest != len(f.text) || nanos >= 1e9 {
		return errFields
	}
	*to = time.Unix(int64(raw>>1)^-int64(raw&1), int64(nanos)).UTC()
	return nil
}
