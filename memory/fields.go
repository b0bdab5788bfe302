package memory

import (
	"encoding/binary"
	"errors"
	"maps"
	"slices"
	"strconv"
	"time"

	"synthbot/core"
)

var errFields = errors.New("broken fields")

// codec writes or reads the fields of a value. Each is a tag byte, a length and its bytes. One function
// describes the fields of a type, and serves both directions. Zero values are left out.
type codec struct {
	out     []byte // what was written
	reading bool
	value   string // the encoded fields; pos to end is left to read
	pos     int
	end     int
	err     error // the first one while reading
}

func (c *codec) read(value []byte, describe func()) error {
	c.reading, c.value = true, string(value)
	c.readTo(len(value), describe)
	return c.err
}

// readTo reads the fields up to end. It calls describe again while fields are left,
// which may be in any order, and skips those that describe does not name.
func (c *codec) readTo(end int, describe func()) {
	outer := c.end
	c.end = end
	for c.pos < end {
		before := c.pos
		describe()
		if c.pos == before {
			c.readField()
		}
	}
	c.end = outer
}

func (c *codec) isNext(tag byte) bool { return c.pos < c.end && c.value[c.pos] == tag }

func (c *codec) next(tag byte) (value string, ok bool) {
	if !c.isNext(tag) {
		return "", false
	}
	return c.readField()
}

// readField reads the next field. It ends the reading if the length is broken.
func (c *codec) readField() (value string, ok bool) {
	start := c.pos + 1
	size, n := uvarint(c.value[start:c.end])
	start += n
	if n == 0 || size > uint64(c.end-start) {
		c.pos = c.end
		c.fail(errFields)
		return "", false
	}
	c.pos = start + int(size)
	return c.value[start:c.pos], true
}

func (c *codec) fail(err error) {
	if c.err == nil {
		c.err = err
	}
}

func (c *codec) writeField(tag byte, value []byte) {
	c.out = binary.AppendUvarint(append(c.out, tag), uint64(len(value)))
	c.out = append(c.out, value...)
}

func text[S ~string](c *codec, tag byte, s *S) {
	if c.reading || *s != "" {
		textOrEmpty(c, tag, s)
	}
}

// textOrEmpty is text that also writes an empty one.
func textOrEmpty[S ~string](c *codec, tag byte, s *S) {
	if !c.reading {
		c.writeField(tag, []byte(*s))
	} else if value, ok := c.next(tag); ok {
		*s = S(value)
	}
}

func (c *codec) path(tag byte, p *core.Path) {
	if !c.reading {
		s := p.String()
		text(c, tag, &s)
	} else if value, ok := c.next(tag); ok {
		c.fail(p.UnmarshalText([]byte(value)))
	}
}

// number is for numbers that are never negative.
func (c *codec) number(tag byte, n *uint64) {
	if !c.reading {
		if *n != 0 {
			c.writeField(tag, binary.AppendUvarint(nil, *n))
		}
	} else if value, ok := c.next(tag); ok {
		read, size := uvarint(value)
		if size != len(value) {
			c.fail(errFields)
		}
		*n = read
	}
}

// id is for texts that often are numbers. Those are written with the second tag, in half the bytes.
func (c *codec) id(tag, numberTag byte, s *string) {
	var n uint64
	if !c.reading {
		n, _ = strconv.ParseUint(*s, 10, 64)
		if strconv.FormatUint(n, 10) != *s {
			n = 0
		}
	}
	if n == 0 && !c.isNext(numberTag) {
		text(c, tag, s)
		return
	}
	c.number(numberTag, &n)
	if c.reading {
		*s = strconv.FormatUint(n, 10)
	}
}

// signed is for numbers that may be negative.
func signed[N ~int | ~int64](c *codec, tag byte, n *N) {
	raw := uint64(*n)<<1 ^ uint64(int64(*n)>>63)
	c.number(tag, &raw)
	value := unzigzag(raw)
	*n = N(value)
	if int64(*n) != value { // on small machines
		c.fail(errFields)
	}
}

func unzigzag(n uint64) int64 { return int64(n>>1) ^ -int64(n&1) }

// decimal is for fractions that may be unknown: nil is left out, zero is not.
func (c *codec) decimal(tag byte, n **float64) {
	if !c.reading {
		if *n != nil {
			c.writeField(tag, strconv.AppendFloat(nil, **n, 'g', -1, 64))
		}
	} else if value, ok := c.next(tag); ok {
		read, err := strconv.ParseFloat(value, 64)
		c.fail(err)
		*n = &read
	}
}

func (c *codec) flag(tag byte, set *bool) {
	if !c.reading {
		if *set {
			c.writeField(tag, nil)
		}
	} else if _, ok := c.next(tag); ok {
		*set = true
	}
}

// time keeps the instant to the nanosecond, without its zone.
func (c *codec) time(tag byte, t *time.Time) {
	if !c.reading {
		if !t.IsZero() {
			c.writeField(tag, binary.AppendUvarint(binary.AppendVarint(nil, t.Unix()), uint64(t.Nanosecond())))
		}
		return
	}
	value, ok := c.next(tag)
	if !ok {
		return
	}
	seconds, size := uvarint(value)
	nanos, rest := uvarint(value[size:])
	if size == 0 || rest == 0 || size+rest != len(value) || nanos >= 1e9 {
		c.fail(errFields)
	}
	*t = time.Unix(unzigzag(seconds), int64(nanos)).UTC()
}

// group is a field that contains fields. An empty one is written, too.
func (c *codec) group(tag byte, describe func()) {
	if c.reading {
		value, _ := c.next(tag)
		end := c.pos
		c.pos -= len(value)
		c.readTo(end, describe)
		return
	}
	start := len(c.out)
	describe()
	size := binary.AppendUvarint([]byte{tag}, uint64(len(c.out)-start))
	c.out = slices.Insert(c.out, start, size...)
}

func repeated[E any](c *codec, tag byte, all *[]E, one func(*E)) {
	for i := range *all {
		if !c.reading {
			one(&(*all)[i])
		}
	}
	for c.isNext(tag) {
		*all = append(*all, *new(E))
		one(&(*all)[len(*all)-1])
	}
}

// texts is a field for each text, which may be empty.
func (c *codec) texts(tag byte, all *[]string) {
	repeated(c, tag, all, func(s *string) { textOrEmpty(c, tag, s) })
}

// mapped is a group for each key, in order. Its first field is the key.
func mapped[V any](c *codec, tag byte, all *map[string]V, value func(*V)) {
	pair := func(k string, v V) {
		c.group(tag, func() {
			text(c, 1, &k)
			value(&v)
		})
		if c.reading {
			if *all == nil {
				*all = make(map[string]V)
			}
			(*all)[k] = v
		}
	}
	if !c.reading {
		for _, k := range slices.Sorted(maps.Keys(*all)) {
			pair(k, (*all)[k])
		}
	}
	for c.isNext(tag) {
		pair("", *new(V))
	}
}

// uvarint is binary.Uvarint for a string; the size is 0 if there is none.
func uvarint(s string) (value uint64, size int) {
	value, size = binary.Uvarint([]byte(s[:min(len(s), binary.MaxVarintLen64)]))
	return value, max(size, 0)
}
