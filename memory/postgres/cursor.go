package postgres

import (
	"bytes"
	"slices"
)

// How many pairs a cursor reads at once: few at first, then more.
const (
	firstRead   = 16
	longestRead = 512
)

// cursor is a kv.Cursor over a range of whole keys with one first byte.
type cursor struct {
	tx       *tx
	from, to []byte     // to exclusive
	rows     [][][]byte // keys and values of the last read, in its direction
	at       int        // index of the current pair in rows; len(rows): none
	backward bool       // the direction of the last read
	limit    int        // of the last read; more than len(rows) if nothing follows
}

// read reads up to limit pairs between two keys in a direction, and moves to the first of them.
func (c *cursor) read(from, to []byte, backward bool, limit int) (k, v []byte) {
	c.tx.fetch()
	if rows, all, ok := c.tx.spans.read(from, to, backward); ok {
		c.rows, c.at, c.backward, c.limit = rows, 0, backward, len(rows)
		if all {
			c.limit++
		}
		return c.here()
	}
	for key := range c.tx.dirty {
		if key[0] == c.from[0] {
			c.tx.flush("")
			break
		}
	}
	c.rows = c.tx.run(wholeRange{from, to, backward, limit}.statement())[0].Rows
	c.at, c.backward, c.limit = 0, backward, limit
	return c.here()
}

func (c *cursor) here() (k, v []byte) {
	if c.at >= len(c.rows) {
		return nil, nil
	}
	return c.rows[c.at][0][1:], c.rows[c.at][1]
}

func (c *cursor) Seek(key []byte) (k, v []byte) {
	from := slices.Concat(c.from[:1], key)
	if bytes.Compare(from, c.from) < 0 {
		from = c.from
	}
	return c.read(from, c.to, false, firstRead)
}

func (c *cursor) Before(key []byte) (k, v []byte) {
	to := slices.Concat(c.from[:1], key)
	if key == nil || bytes.Compare(to, c.to) > 0 {
		to = c.to
	}
	return c.read(c.from, to, true, firstRead)
}

func (c *cursor) Next() (k, v []byte) { return c.step(false) }

func (c *cursor) Prev() (k, v []byte) { return c.step(true) }

func (c *cursor) step(backward bool) (k, v []byte) {
	if c.at >= len(c.rows) {
		return nil, nil
	}
	present, limit := c.rows[c.at][0], firstRead
	if backward == c.backward {
		c.at++
		if c.at < len(c.rows) || len(c.rows) < c.limit {
			return c.here()
		}
		limit = min(4*c.limit, longestRead)
	}
	if backward {
		return c.read(c.from, present, true, limit)
	}
	return c.read(append(slices.Clone(present), 0), c.to, false, limit)
}
