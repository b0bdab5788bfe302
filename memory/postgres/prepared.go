package postgres

import (
	"context"
	"crypto/sha256"
	"fmt"

	"github.com/jackc/pgx/v5/pgconn"
)

// settings apply to every connection. Statements are planned once for all parameters. The table may be empty at that
// time, and then the server would prefer a sequential scan to the index. Views may be idle for any time.
var settings = map[string]string{
	"plan_cache_mode":                     "force_generic_plan",
	"enable_seqscan":                      "off",
	"jit":                                 "off",
	"idle_in_transaction_session_timeout": "0",
}

// isUnprepared reports whether a statement was not prepared, or already was: a pooler has switched the
// connection to another server process.
func isUnprepared(err error) bool {
	code := codeOf(err)
	return code == "26000" || code == "42P05"
}

// prepare returns the description of a statement, which it prepares if the connection does not know it.
func prepare(ctx context.Context, conn *pgconn.PgConn, s *statement) (*pgconn.StatementDescription, error) {
	prepared := conn.CustomData() // *pgconn.StatementDescription by SQL
	if d, ok := prepared[s.sql].(*pgconn.StatementDescription); ok {
		return d, nil
	}
	name := fmt.Sprintf("synthbot_%x", sha256.Sum256([]byte(s.sql)))[:32] // the same in all processes
	d, err := conn.Prepare(ctx, name, s.sql, nil)
	if err == nil {
		prepared[s.sql] = d
	}
	return d, err
}

// sendPrepared runs statements of a transaction in one round trip. A connection prepares each of them
// when it first sends it. After an error for which isUnprepared reports true, the transaction can be
// retried: from then on statements are sent unprepared.
func (db *DB) sendPrepared(ctx context.Context, conn *pgconn.PgConn, all []statement) ([]*pgconn.Result, error) {
	if db.unprepared.Load() {
		return send(ctx, conn, all)
	}
	var batch pgconn.Batch
	var results []*pgconn.Result
	var err error
	for i := 0; err == nil && i < len(all); i++ {
		s := &all[i]
		var d *pgconn.StatementDescription
		d, err = prepare(ctx, conn, s)
		if err == nil {
			batch.ExecStatement(d, s.params, inBinary, inBinary)
		}
	}
	if err == nil {
		results, err = execute(ctx, conn, &batch, len(all))
	}
	if isUnprepared(err) {
		db.unprepared.Store(true)
		db.log.Info("pooler detected: statements are sent unprepared", "file", db.name)
	}
	return results, err
}
