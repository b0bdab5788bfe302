package memory

import "synthbot/memory/kv"

type (
	// Sharing divides the work of several processes that use the database at the same time.
	Sharing = kv.Shared
	// Worker is such a process.
	Worker = kv.Worker
)

// Shared returns how the work is divided; nil if there can be one process only.
func Shared(db *DB) Sharing { return db.engine.shared }

// OwnsParts reports whether this process certainly still owns its parts of the work.
func OwnsParts(db *DB) bool { return Shared(db) == nil || Shared(db).OwnsParts() }

// raiseBarrier makes other processes apply what this transaction stores before they change anything; see kv.Barrier.
func raiseBarrier(t *tx) {
	if barrier, ok := t.Tx.(kv.Barrier); ok {
		t.fail(bucketMeta, barrier.Barrier())
	}
}
