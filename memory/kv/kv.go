// Package kv defines the key-value store on which package memory is built. Its engines are memory/bolt, a file, and
// memory/postgres, a database that several processes share. It does not know what the keys and values mean.
package kv

import (
	"context"
	"time"
)

// Engine is an open store: named buckets of key-value pairs, ordered by key. It is safe for concurrent
// use. Its errors wrap core.ErrClosed after Close, and core.ErrFull if the disk is full.
//
// Methods that read return no errors. An engine that cannot read panics, and the caller of Begin or Update recovers.
// The value of the panic is a *Fault if the engine knows the cause. Any other value means that the store is damaged.
type Engine interface {
	// Begin returns a snapshot of the store. The caller ends it.
	Begin(ctx context.Context) (View, error)
	// Update calls f in a transaction that sees its own changes. It returns nil when they are durable. If it returns an
	// error, such as f's, nothing has changed, unless the connection broke during the commit. If another process
	// changed what f read, Update calls f again. Concurrent calls wait for each other.
	Update(f func(Tx) error) error
	// Compact rewrites what is stored without traces of deleted data, and returns its size in bytes before and
	// after. It calls last at its end, with a transaction.
	Compact(ctx context.Context, last func(Tx) error) (before, after int64, err error)
	// Close blocks until all views have ended.
	Close() error
}

// Shared is implemented by an Engine that several processes can use at the same time. Their work is
// divided into parts. At most one process owns a part.
type Shared interface {
	// Claim asks for a part and calls work whenever this process gets it. It blocks until ctx ends, and then
	// returns nil. The context of work ends early if another process is to get the part, which waits
	// until work has returned. If work returns before its context ends, Claim returns its error. Parts
	// whose names begin with the same word are divided evenly among the processes that claim them.
	Claim(ctx context.Context, part string, work func(context.Context) error) error
	// OwnsParts reports whether this process certainly still owns its parts, by its own clock. It does not block.
	OwnsParts() bool
	// Self returns the number of this process, which no other process ever gets. It is 0 before the
	// process first writes.
	Self() int64
	// Workers lists the processes that use the store.
	Workers(ctx context.Context) ([]Worker, error)
	// Hint sends a text to all processes, including this one. It may get lost.
	Hint(ctx context.Context, text string) error
}

// Barrier is implemented by a Tx that changes a Shared engine.
type Barrier interface {
	// Barrier makes every other process handle this transaction before it changes anything else. A change
	// in progress there counts as earlier, or fails and is made again. Before its next change, that process
	// calls the function it was opened with for barriers, which reads what this transaction stored.
	Barrier() error
}

// Worker is a process that uses a shared store.
type Worker struct {
	ID    int64
	Name  string
	Lease time.Duration // until it expires; 0 or less: another process may take over
	Parts []string      // that it owns, in order
}

// Fault is the value with which an engine panics if it cannot read.
type Fault struct{ Err error }

// MaxKey is the length of the longest key that any engine stores.
const MaxKey = 32768

// View is a read-only snapshot. It is taken at the latest when the first Get or Seek returns. It is for one goroutine.
type View interface {
	Tx
	End()
}

// Tx is a transaction, for one goroutine. The caller must not modify the slices that it returns. They are
// valid until the transaction ends or, in one that writes, until the next change.
type Tx interface {
	// Buckets returns the names of all buckets, in order.
	Buckets() []string
	// Bucket returns a bucket; nil if there is none.
	Bucket(name string) Bucket
	// MakeBucket creates a bucket unless it exists.
	MakeBucket(name string) error
	// DropBucket deletes a bucket with all that it holds, if it exists. Buckets are made and dropped while
	// nothing else uses the store.
	DropBucket(name string) error
}

// Bucket is an ordered map with a counter.
type Bucket interface {
	// Get returns the value of a key; nil if there is none. An empty value may be nil, too.
	Get(key []byte) []byte
	// Put stores a pair. It returns an error if the key is empty, or longer than the engine can store.
	Put(key, value []byte) error
	// Delete removes a key, if it exists.
	Delete(key []byte) error
	// Cursor returns a cursor for the keys from one to another, exclusive. A nil from means from the first key, a nil
	// to means through the last. Engines need not enforce the limits: the cursor may also return keys outside of them.
	Cursor(from, to []byte) Cursor
	// NextSequence increments the counter and returns it.
	NextSequence() (uint64, error)
	Sequence() uint64
	SetSequence(n uint64) error
}

// Cursor moves through a bucket. Each method returns the pair at its new position; a nil key if there is none. It may
// miss changes made after it was created. After a Delete in the same transaction, Prev and Before must not be used.
type Cursor interface {
	// Seek moves to the key, or else to the first key after it.
	Seek(key []byte) (k, v []byte)
	// Before moves to the last key before the given one; nil: to the last key.
	Before(key []byte) (k, v []byte)
	Next() (k, v []byte)
	Prev() (k, v []byte)
}

// Prefetcher is implemented by a Tx that can read ahead. It changes only the speed.
type Prefetcher interface {
	// Prefetch announces what will be read. It is fetched together with the next read.
	Prefetch(what ...Range)
}

// Range is a part of a bucket: the key From, or the keys From until To. Without both it is the bucket's counter.
type Range struct {
	Bucket   string
	From, To []byte // To nil: the key From alone
	Backward bool   // the last pairs, not the first ones
	Limit    int    // of pairs; 0: all
}
