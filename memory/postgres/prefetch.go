package postgres

import (
	"bytes"
	"cmp"
	"math"
	"slices"

	"github.com/jackc/pgx/v5/pgconn"

	"synthbot/memory/kv"
)

// prefetch is what a transaction fetches with its next read. A whole key begins with its bucket's byte.
type prefetch struct {
	keys   [][]byte // whole keys
	ranges []wholeRange
}

// wholeRange is a kv.Range of whole keys.
type wholeRange struct {
	from, to []byte
	backward bool
	limit    int
}

// Prefetch implements kv.Reader.
func (t *tx) Prefetch(what ...kv.Range) {
	for _, r := range what {
		id, ok := t.ids[r.Bucket]
		if !ok {
			continue
		}
		from := append([]byte{id}, r.From...)
		if r.From == nil && r.To == nil {
			from = []byte(sequenceKey(id))
		}
		if r.To == nil {
			if _, ok := t.known[string(from)]; !ok {
				t.prefetch.keys = append(t.prefetch.keys, from)
			}
			continue
		}
		whole := wholeRange{from, append([]byte{id}, r.To...), r.Backward, cmp.Or(r.Limit, math.MaxInt32)}
		twice := func(o wholeRange) bool {
			return bytes.Equal(o.from, whole.from) && bytes.Equal(o.to, whole.to) && o.backward == whole.backward
		}
		if !slices.ContainsFunc(t.prefetch.ranges, twice) {
			t.prefetch.ranges = append(t.prefetch.ranges, whole)
		}
	}
}

// fetch sends what was announced with Prefetch, if anything.
func (t *tx) fetch() {
	if len(t.prefetch.keys)+len(t.prefetch.ranges) > 0 {
		t.run()
	}
}

func (a *prefetch) statements() (all []statement) {
	if len(a.keys) > 0 {
		all = append(all, statement{"select k, v from kv where k = any($1)", [][]byte{list(a.keys)}})
	}
	for _, r := range a.ranges {
		all = append(all, r.statement())
	}
	return all
}

const (
	readForward  = "select k, v from kv where k >= $1 and k < $2 order by k limit $3::bigint"
	readBackward = "select k, v from kv where k >= $1 and k < $2 order by k desc limit $3::bigint"
)

func (r wholeRange) statement() statement {
	sql := readForward
	if r.backward {
		sql = readBackward
	}
	return statement{sql, [][]byte{r.from, r.to, long(int64(r.limit))}}
}

// storePrefetched keeps the results of what was prefetched.
func (t *tx) storePrefetched(a prefetch, results []*pgconn.Result) {
	before := len(t.spans)
	if len(a.keys) > 0 {
		for _, key := range a.keys {
			t.known[string(key)] = nil
		}
		for _, row := range results[0].Rows {
			t.known[string(row[0])] = row[1]
		}
		results = results[1:]
	}
	for i, r := range a.ranges {
		s := span{r.from, r.to, results[i].Rows}
		n := len(s.rows)
		switch {
		case n < r.limit:
		case r.backward:
			s.from = s.rows[n-1][0]
		default:
			s.to = append(slices.Clone(s.rows[n-1][0]), 0)
		}
		if r.backward {
			slices.Reverse(s.rows)
		}
		t.spans = append(t.spans, s)
	}
	for key, value := range t.dirty {
		t.spans[before:].set([]byte(key), value)
	}
}

// span is all that is stored in a range of whole keys with one first byte, in order.
type span struct {
	from, to []byte // to exclusive
	rows     [][][]byte
}

// covers reports whether a key is in the range, and where in rows it is, or would be.
func (s *span) covers(key []byte) (at int, found, covered bool) {
	if bytes.Compare(key, s.from) < 0 || bytes.Compare(key, s.to) >= 0 {
		return 0, false, false
	}
	at, found = slices.BinarySearchFunc(s.rows, key, compareRow)
	return at, found, true
}

func compareRow(row [][]byte, key []byte) int { return bytes.Compare(row[0], key) }

// spans are what a transaction has read ahead, with its own changes.
type spans []span

// get returns the value of a key; nil if it does not exist. ok is false if no span covers it.
func (s spans) get(key []byte) (value []byte, ok bool) {
	for i := range s {
		at, found, covered := s[i].covers(key)
		if found {
			return s[i].rows[at][1], true
		}
		ok = ok || covered
	}
	return nil, ok
}

// set changes the value of a key; nil deletes it.
func (s spans) set(key, value []byte) {
	for i := range s {
		at, found, covered := s[i].covers(key)
		rows := &s[i].rows
		switch {
		case found && value == nil:
			*rows = slices.Delete(*rows, at, at+1)
		case found:
			(*rows)[at] = [][]byte{key, value}
		case covered && value != nil:
			*rows = slices.Insert(*rows, at, [][]byte{key, value})
		}
	}
}

// read returns known pairs of a range in a direction. all reports whether these are all pairs of the range. ok is
// false if the first ones are not known.
func (s spans) read(from, to []byte, backward bool) (rows [][][]byte, all, ok bool) {
	for _, one := range s {
		begins := bytes.Compare(one.from, from) <= 0
		ends := bytes.Compare(to, one.to) <= 0
		overlap := bytes.Compare(one.from, to) < 0 && bytes.Compare(from, one.to) < 0
		if !overlap || backward && !ends || !backward && !begins {
			continue
		}
		first, last := 0, len(one.rows)
		if begins {
			first, _ = slices.BinarySearchFunc(one.rows, from, compareRow)
		}
		if ends {
			last, _ = slices.BinarySearchFunc(one.rows, to, compareRow)
		}
		all = begins && ends
		if first == last && !all {
			continue
		}
		rows = slices.Clone(one.rows[first:last])
		if backward {
			slices.Reverse(rows)
		}
		return rows, all, true
	}
	return nil, false, false
}
