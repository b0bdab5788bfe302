package postgres

import (
	"context"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"synthbot/core/loop"
)

const (
	channel   = "synthbot"
	hintParts = "parts" // a worker gave parts up, or ended
	ownPrefix = "own "  // of the texts that Hint sends
	listenGap = 2 * time.Second
)

func hint(text string) statement {
	return statement{"select pg_notify('" + channel + "', $1)", [][]byte{[]byte(text)}}
}

// Hint implements kv.Shared.
func (db *DB) Hint(ctx context.Context, text string) error {
	_, err := db.ask(ctx, hint(ownPrefix+text))
	return err
}

// listen receives hints on its own connection until ctx ends. Behind a pooler, none may arrive.
func (db *DB) listen(ctx context.Context) {
	config := db.pool.plain.Copy()
	config.OnNotification = func(_ *pgconn.PgConn, n *pgconn.Notification) {
		text, own := strings.CutPrefix(n.Payload, ownPrefix)
		switch {
		case own:
			db.o.OnHint(text)
		case n.Payload == hintParts:
			loop.Notify(db.parts.recheck)
		}
	}
	for ctx.Err() == nil {
		conn, err := pgconn.ConnectConfig(ctx, config)
		if err == nil {
			_, err = conn.Exec(ctx, "listen "+channel).ReadAll()
			loop.Notify(db.parts.recheck)
			db.o.OnHint("")
			for err == nil {
				err = conn.WaitForNotification(ctx)
			}
			closeConn(conn)
		}
		select {
		case <-time.After(listenGap):
		case <-ctx.Done():
		}
	}
}
