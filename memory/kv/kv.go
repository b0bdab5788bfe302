// Package kv is the interface between package memory and the engines that store its pairs:
// memory/bolt, a file, and memory/postgres, a database that several processes share.
// It does not know what the keys and values mean.
package kv

import (
	"context"
	"time"
)

// Engine is an open ordered map: named buckets of pairs in the order of their keys. It is safe
// for concurrent use. After Close its errors wrap core.ErrClosed; they wrap core.ErrFull if
// there is no space left.
//
// Reading has no error. An engine that cannot read panics, and what calls Begin or Update
// recovers: with a *Fault if it has an error to tell, otherwise the map is damaged.
type Engine interface {
	// Begin begins a view of the map at one moment. The caller ends it.
	Begin(ctx context.Context) (View, error)
	// Update calls f in a transaction that sees its own changes. It returns when they are
	// durable, or with f's error, and then nothing has changed. One goroutine calls it. If
	// others changed what f read, f is called again.
	Update(f func(Tx) error) error
	// Close waits for views to end.
	Close() error
}

// Shared is the ability of an Engine to be used by several processes at the same time. Each part of
// their work is done by one of them.
type Shared interface {
	// Own calls work while this process owns a part, and again when it does once more. It blocks
	// until ctx ends, and returns nil then, or until work returns while its own context lasts, and
	// returns its error. That context ends when another process is to have the part, which waits
	// until work has returned. A process that wants a part says so as long as Own runs. Parts whose
	// names begin with the same word are divided evenly.
	Own(ctx context.Context, part string, work func(context.Context) error) error
	// Holds reports whether nobody else can have taken over what this process owns, as far as it knows
	// by its own clock. It asks nobody.
	Holds() bool
	// Self is the number of this process among all that have ever used the map; 0: none yet.
	Self() int64
	// Workers lists the processes that use the map.
	Workers(ctx context.Context) ([]Worker, error)
	// Hint says something to all processes, also to this one. It may be lost.
	Hint(ctx context.Context, text string) error
}

// Barrier is the ability of a Tx of a Shared engine to stop the others.
type Barrier interface {
	// Barrier lets the transaction wait for those that other processes have begun. Theirs begin
	// anew afterwards, and what they do at a barrier comes before.
	Barrier() error
}

// Worker is a process that uses a map with others.
type Worker struct {
	ID    int64
	Name  string
	Lease time.Duration // for which it counts as alive; 0 or less: it may be replaced
	Parts []string      // that it owns, in order
}

// Fault is the panic of an engine that cannot read for the reason Err.
type Fault struct{ Err error }

// MaxKey is the length of the longest key that any engine stores.
const MaxKey = 32768

// View is a read of the map at one moment, between its beginning and the end of its first Get
// or Seek. It is for one goroutine, and must not change anything.
type View interface {
	Tx
	End()
}

// Tx is a transaction, for one goroutine. What it returns is valid until it ends, or in a
// transaction that writes until the next change, and must not be changed.
type Tx interface {
	// Buckets returns the names of all buckets, in order.
	Buckets() []string
	// Bucket returns a bucket; nil if there is none.
	Bucket(name string) Bucket
	// MakeBucket makes a bucket unless there is one.
	MakeBucket(name string) error
	// DropBucket deletes a bucket with its pairs.
	DropBucket(name string) error
}

// Bucket is an ordered map with a counter.
type Bucket interface {
	// Get returns the value of a key; nil if there is none. An empty value may be nil, too.
	Get(key []byte) []byte
	// Put refuses an empty key, and one that is longer than the engine can store.
	Put(key, value []byte) error
	Delete(key []byte) error
	// Cursor returns a cursor for the keys from one to another, exclusive; nil: from the first,
	// through the last. It may also go beyond.
	Cursor(from, to []byte) Cursor
	// NextSequence raises the counter by one and returns it.
	NextSequence() (uint64, error)
	Sequence() uint64
	SetSequence(n uint64) error
}

// Cursor walks through a bucket. Each method returns the pair at which the cursor then is; a
// nil key if there is none. Changes that are made meanwhile may be missed. In a transaction that
// has deleted, Prev and Before must not be used.
type Cursor interface {
	// Seek goes to the key, or else to the first one after it.
	Seek(key []byte) (k, v []byte)
	// Before goes to the last key before this one; nil: to the last of all.
	Before(key []byte) (k, v []byte)
	Next() (k, v []byte)
	Prev() (k, v []byte)
}

// Reader is the ability of a Tx to fetch at once what will be read. Only speed depends on it.
type Reader interface {
	// Ahead says what will be read. It is fetched together with the next read.
	Ahead(what ...Range)
}

// Range is a part of a bucket, which exists: a key, or keys from one to another, exclusive. Without
// both it is the bucket's counter.
type Range struct {
	Bucket   string
	From, To []byte // To nil: the key From alone
	Backward bool   // the last pairs, not the first ones
	Limit    int    // of pairs; 0: all
}
