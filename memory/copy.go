package memory

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"log/slog"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"

	"synthbot/core"
	"synthbot/core/secret"
	"synthbot/memory/bolt"
	"synthbot/memory/kv"
	"synthbot/memory/postgres"
)

// Location is where everything is stored: on a server, or in the file of a data directory.
type Location struct {
	URL secret.Secret // see ServerConfig; empty: Dir is meant
	Dir string
}

// BucketSum is how many pairs a bucket has, and the SHA-256 of its counter and of its keys and values in their order.
type BucketSum struct {
	Bucket string
	Pairs  int
	Sum    [sha256.Size]byte
}

// Copy copies everything from one location to another, which must be empty, reads it back and compares
// it. No other process may use them: the error may wrap core.ErrLocked. progress is called repeatedly
// with a bucket and how many of its pairs were copied. No bot opens a copy that was cut short.
func Copy(ctx context.Context, from, to Location, progress func(string, int)) (sums []BucketSum, err error) {
	if _, err := os.Stat(from.file()); from.URL.IsZero() && err != nil {
		return nil, bolt.FileError(from.file(), err)
	}
	source, err := from.open(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, source.Close()) }()
	copyTo := func(to Location) error {
		target, err := to.open(ctx)
		if err != nil {
			return err
		}
		sums, err = copyVerified(ctx, target, source, progress)
		return errors.Join(err, target.Close())
	}
	if to.URL.IsZero() {
		err = installFile(to.Dir, func(trial string) error { return copyTo(Location{Dir: trial}) })
	} else {
		err = copyTo(to)
	}
	return sums, err
}

func (l Location) file() string { return filepath.Join(l.Dir, FileName) }

func (l Location) open(ctx context.Context) (kv.Engine, error) {
	if !l.URL.IsZero() {
		return postgres.Open(ctx, l.URL.Reveal(), postgres.Options{SoleWorker: true})
	}
	return bolt.Open(l.file(), bolt.Options{Scattered: []string{bucketPassageWords}})
}

func copyVerified(ctx context.Context, to, from kv.Engine, progress func(string, int)) (sums []BucketSum, err error) {
	e := &engine{log: slog.New(slog.DiscardHandler)}
	defer e.recoverPanic(debug.SetPanicOnFault(true), &err)
	before, err := sumsOf(ctx, to)
	if err == nil && len(before) > 0 {
		err = fmt.Errorf("the target: %w, or a copy of one that was cut short: "+
			"choose another one, or delete what is there", ErrNotEmpty)
	}
	if err != nil {
		return nil, err
	}
	source, err := from.Begin(ctx)
	if err != nil {
		return nil, err
	}
	defer source.End()
	if source.Bucket(bucketMeta) == nil {
		return nil, fmt.Errorf("the source: %w", errNotSynthbot)
	}
	if err := kv.Copy(to, metaLast{source}, progress); err != nil {
		return nil, err
	}
	sums, err = sumsOf(ctx, from)
	if err != nil {
		return nil, err
	}
	copied, err := sumsOf(ctx, to)
	if err == nil && !slices.Equal(sums, copied) {
		err = fmt.Errorf("%w: the copy differs from the original", core.ErrDamaged)
	}
	return sums, err
}

// metaLast is a transaction that lists the meta bucket last: without it, a copy is not a database.
type metaLast struct{ kv.Tx }

func (t metaLast) Buckets() []string {
	names := slices.DeleteFunc(t.Tx.Buckets(), func(name string) bool { return name == bucketMeta })
	return append(names, bucketMeta)
}

func sumsOf(ctx context.Context, from kv.Engine) (sums []BucketSum, err error) {
	v, err := from.Begin(ctx)
	if err != nil {
		return nil, err
	}
	defer v.End()
	for _, name := range v.Buckets() {
		b, h := v.Bucket(name), sha256.New()
		sum := BucketSum{Bucket: name}
		addLength(h, b.Sequence())
		c := b.Cursor(nil, nil)
		for k, value := c.Seek(nil); k != nil; k, value = c.Next() {
			for _, part := range [][]byte{k, value} {
				addLength(h, uint64(len(part)))
				h.Write(part)
			}
			sum.Pairs++
		}
		h.Sum(sum.Sum[:0])
		sums = append(sums, sum)
	}
	return sums, nil
}

func addLength(h hash.Hash, n uint64) { h.Write(binary.BigEndian.AppendUint64(nil, n)) }
