package postgres

import (
	"context"
	"strings"
	"synthbot/core/loop"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

const (
	channel   = "synthbot"
	hintParts = "parts" // somebody gave parts up, or ended
	ownPrefix = "own "  // of what Hint says
	listenGap = 2 * time.Second
)

// hint is the statement that says something to all who listen.
func hint(text string) statement {
	return statement{"select pg_notify('" + channel + "', $1)", [][]byte{[]byte(text)}, []uint32{oidText}}
}

// Hint implements kv.Shared.
func (db *DB) Hint(ctx context.Context, text string) error {
	conn, _, err := db.pool.take(ctx)
	if err != nil {
		return err
	}
	defer db.pool.put(conn)
	_, err = send(ctx, conn, []statement{hint(ownPrefix + text)})
	return err
}

// listen takes hints on a connection of its own until ctx ends. Behind a pooler none may come.
func (db *DB) listen(ctx context.Context) {
	config := db.pool.plain.Copy()
	config.OnNotification = func(_ *pgconn.PgConn, n *pgconn.Notification) {
		text, own := strings.CutPrefix(n.Payload, ownPrefix)
		switch {
		case own:
			db.o.OnHint(text)
		case n.Payload == hintParts:
			loop.Notify(db.parts.look)
		}
	}
	for ctx.Err() == nil {
		conn, err := pgconn.ConnectConfig(ctx, config)
		if err == nil {
			_, err = conn.Exec(ctx, "listen "+channel).ReadAll()
			loop.Notify(db.parts.look)
			db.o.OnHint("")
			for err == nil {
				err = conn.WaitForNotification(ctx)
			}
			hangUp(conn)
		}
		select {
		case <-time.After(listenGap):
		case <-ctx.Done():
		}
	}
}
