package postgres

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/jackc/pgx/v5/pgconn"

	"synthbot/memory/kv"
)

const (
	beginView  = "begin isolation level repeatable read read only"
	beginWrite = "begin isolation level serializable"
	upsert     = "insert into kv select * from unnest($1::bytea[], $2::bytea[]) " +
		"on conflict (k) do update set v = excluded.v"
	deleteAll   = "delete from kv where k = any($1)"
	deleteRange = "delete from kv where k >= $1 and k < $2"
)

// First bytes of keys.
const (
	names       = 0x00
	sequences   = 0x01
	markers     = 0x02
	firstBucket = 0x10
	lastBucket  = 0xfe
)

type statement struct {
	sql    string
	params [][]byte // in binary; the server infers their types
}

// tx is a transaction, or a view. It connects with its first statement.
type tx struct {
	db       *DB
	ctx      context.Context
	begin    string
	conn     *pgconn.PgConn
	ids      map[string]byte
	known    map[string][]byte // values that were read or written, by whole key; nil: does not exist
	dirty    map[string][]byte // changes that are not sent yet, by whole key; nil: deleted
	prefetch prefetch
	spans    spans
}

func (db *DB) newTx(ctx context.Context, begin string) *tx {
	t := &tx{db: db, ctx: ctx, begin: begin, known: make(map[string][]byte), dirty: make(map[string][]byte)}
	ids := db.ids.Load()
	if ids != nil {
		t.ids = *ids
	}
	return t
}

// run sends statements in one round trip, preceded by those that begin the transaction and read ahead. It
// returns the results of the statements, or panics with a kv.Fault.
func (t *tx) run(all ...statement) []*pgconn.Result {
	var begin []statement
	var used bool
	if t.conn == nil {
		var err error
		t.conn, used, err = t.db.pool.take(t.ctx)
		if err != nil {
			panic(&kv.Fault{Err: err})
		}
		begin = t.beginStatements()
	}
	ahead := t.prefetch.statements()
	skip := len(begin) + len(ahead)
	t.db.trips.Add(1)
	results, err := t.db.sendPrepared(t.ctx, t.conn, slices.Concat(begin, ahead, all))
	if err == nil {
		t.storePrefetched(t.prefetch, results[len(begin):skip])
		t.prefetch = prefetch{}
		return results[skip:]
	}
	if t.conn.IsClosed() {
		t.db.pool.closeIdle() // the idle connections may be broken, too
		err = &awayError{err}
	}
	// The connection was broken while idle, or switched by a pooler.
	again := used && t.conn.IsClosed() || len(begin) > 0 && isUnprepared(err)
	if again && t.begin == beginView && t.ctx.Err() == nil {
		t.release()
		return t.run(all...)
	}
	panic(&kv.Fault{Err: err})
}

// beginStatements returns the statements that begin the transaction. One that writes checks that no other worker has
// taken over, and the server ends it if this process is suspended.
func (t *tx) beginStatements() []statement {
	all := []statement{{sql: t.begin}}
	if t.begin == beginView {
		return all
	}
	w := t.db.worker
	params := [][]byte{long(w.id.Load()), long(w.barrier.Load()), fmt.Append(nil, w.lease.Milliseconds()/2)}
	return append(all, statement{checkWorker, params})
}

// ask runs statements in one round trip, with a connection from the pool.
func (db *DB) ask(ctx context.Context, all ...statement) ([]*pgconn.Result, error) {
	conn, _, err := db.pool.take(ctx)
	if err != nil {
		return nil, err
	}
	defer db.pool.put(conn)
	return send(ctx, conn, all)
}

func send(ctx context.Context, conn *pgconn.PgConn, all []statement) ([]*pgconn.Result, error) {
	var batch pgconn.Batch
	for _, s := range all {
		batch.ExecParams(s.sql, s.params, nil, inBinary, inBinary)
	}
	return execute(ctx, conn, &batch, len(all))
}

// inBinary selects the binary format for all values.
var inBinary = []int16{1}

// execute runs a batch of count statements.
func execute(ctx context.Context, conn *pgconn.PgConn, batch *pgconn.Batch, count int) ([]*pgconn.Result, error) {
	results, err := conn.ExecBatch(ctx, batch).ReadAll()
	if err == nil && len(results) != count {
		err = fmt.Errorf("the server returned %d results for %d statements", len(results), count)
	}
	return results, err
}

// End implements kv.View. It does not wait for the server.
func (t *tx) End() {
	if t.conn != nil {
		go t.db.pool.end(t.conn)
		t.conn = nil
	}
}

// release ends the transaction. What is not committed is rolled back.
func (t *tx) release() {
	if t.conn != nil {
		t.db.pool.end(t.conn)
		t.conn = nil
	}
}

// get returns the value of a whole key; nil if it does not exist.
func (t *tx) get(key string) []byte {
	value, ok := t.dirty[key]
	if !ok {
		value, ok = t.known[key]
	}
	if !ok {
		t.fetch()
		value, ok = t.known[key]
	}
	if !ok {
		value, ok = t.spans.get([]byte(key))
	}
	if ok {
		return value
	}
	rows := t.run(statement{"select v from kv where k = $1", [][]byte{[]byte(key)}})[0].Rows
	if len(rows) > 0 {
		value = rows[0][0]
	}
	t.known[key] = value
	return value
}

// put changes the value of a whole key; nil deletes it. It is sent with the next flush.
func (t *tx) put(key string, value []byte) {
	t.dirty[key] = value
	t.spans.set([]byte(key), value)
}

// flush sends the changes, and a last statement unless it is "".
func (t *tx) flush(last string) {
	t.prefetch = prefetch{}
	var all []statement
	var keys, values, deleted [][]byte
	for _, key := range slices.Sorted(maps.Keys(t.dirty)) { // the same order everywhere, against deadlocks
		value := t.dirty[key]
		if value == nil {
			deleted = append(deleted, []byte(key))
		} else {
			keys, values = append(keys, []byte(key)), append(values, value)
		}
	}
	if len(keys) > 0 {
		all = append(all, statement{upsert, [][]byte{list(keys), list(values)}})
	}
	if len(deleted) > 0 {
		all = append(all, statement{deleteAll, [][]byte{list(deleted)}})
	}
	if last != "" {
		all = append(all, statement{sql: last})
	}
	if len(all) > 0 {
		t.run(all...)
	}
	maps.Copy(t.known, t.dirty)
	clear(t.dirty)
}

// list encodes an array of values of type bytea.
func list(all [][]byte) []byte {
	b := binary.BigEndian.AppendUint32(nil, 1) // dimensions
	b = binary.BigEndian.AppendUint32(b, 0)    // no nulls
	b = binary.BigEndian.AppendUint32(b, 17)   // the type bytea
	b = binary.BigEndian.AppendUint32(b, uint32(len(all)))
	b = binary.BigEndian.AppendUint32(b, 1) // the first index
	for _, one := range all {
		b = binary.BigEndian.AppendUint32(b, uint32(len(one)))
		b = append(b, one...)
	}
	return b
}

func (t *tx) Buckets() []string { return slices.Sorted(maps.Keys(t.ids)) }

func (t *tx) Bucket(name string) kv.Bucket {
	id, ok := t.ids[name]
	if !ok {
		return nil
	}
	return bucket{t, id}
}

func (t *tx) Barrier() error {
	t.run(statement{raiseBarrier, [][]byte{long(t.db.Self())}})
	return nil
}

func (t *tx) MakeBucket(name string) error {
	if _, ok := t.ids[name]; ok {
		return nil
	}
	t.readIDs() // another process may make buckets, too
	if _, ok := t.ids[name]; ok {
		return nil
	}
	id := byte(firstBucket)
	for _, used := range t.ids {
		id = max(id, used+1)
	}
	if id > lastBucket {
		return fmt.Errorf("bucket %s: too many buckets", name)
	}
	t.ids = maps.Clone(t.ids)
	t.ids[name] = id
	t.put(string(rune(names))+name, []byte{id})
	return nil
}

func (t *tx) DropBucket(name string) error {
	id, ok := t.ids[name]
	if !ok {
		return nil
	}
	t.flush("")
	t.run(statement{deleteRange, [][]byte{{id}, {id + 1}}})
	t.known, t.spans, t.ids = make(map[string][]byte), nil, maps.Clone(t.ids)
	delete(t.ids, name)
	t.put(string(rune(names))+name, nil)
	t.put(sequenceKey(id), nil)
	return nil
}

// readIDs adds the stored buckets to those that this transaction has created.
func (t *tx) readIDs() {
	ids := maps.Clone(t.ids)
	if ids == nil {
		ids = make(map[string]byte)
	}
	c := &cursor{tx: t, from: []byte{names}, to: []byte{names + 1}}
	for k, v := c.Seek(nil); k != nil; k, v = c.Next() {
		ids[string(k)] = v[0]
	}
	t.ids = ids
}

func sequenceKey(id byte) string { return string([]byte{sequences, id}) }

type bucket struct {
	tx *tx
	id byte
}

func (b bucket) key(key []byte) string { return string(append([]byte{b.id}, key...)) }

func (b bucket) Get(key []byte) []byte { return b.tx.get(b.key(key)) }

func (b bucket) Put(key, value []byte) error {
	switch {
	case len(key) == 0:
		return errors.New("the key is empty")
	case len(key) > maxKey:
		return fmt.Errorf("key too large: %d bytes, at most %d can be stored", len(key), maxKey)
	}
	b.tx.put(b.key(key), append([]byte{}, value...))
	return nil
}

func (b bucket) Delete(key []byte) error {
	b.tx.put(b.key(key), nil)
	return nil
}

func (b bucket) Sequence() uint64 {
	value := b.tx.get(sequenceKey(b.id))
	if len(value) != 8 {
		return 0
	}
	return binary.BigEndian.Uint64(value)
}

func (b bucket) SetSequence(n uint64) error {
	b.tx.put(sequenceKey(b.id), binary.BigEndian.AppendUint64(nil, n))
	return nil
}

func (b bucket) NextSequence() (uint64, error) {
	n := b.Sequence() + 1
	return n, b.SetSequence(n)
}

func (b bucket) Cursor(from, to []byte) kv.Cursor {
	c := &cursor{tx: b.tx, from: append([]byte{b.id}, from...), to: []byte{b.id + 1}}
	if to != nil {
		c.to = append([]byte{b.id}, to...)
	}
	return c
}
