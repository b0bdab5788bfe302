package postgres

import (
	"context"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"synthbot/core"
)

const (
	maxConnections = 16
	connectTimeout = 5 * time.Second
)

// pool holds the connections that are not in use. Safe for concurrent use.
type pool struct {
	config atomic.Pointer[pgconn.Config]
	plain  *pgconn.Config // without our settings, for poolers
	slots  chan struct{}  // holds a token for each connection in use

	mu     sync.Mutex
	idle   []*pgconn.PgConn
	used   map[*pgconn.PgConn]bool
	closed bool
}

func newPool(plain *pgconn.Config) *pool {
	p := &pool{
		plain: plain, slots: make(chan struct{}, maxConnections), used: make(map[*pgconn.PgConn]bool, maxConnections),
	}
	config := plain.Copy()
	maps.Copy(config.RuntimeParams, settings)
	p.config.Store(config)
	return p
}

// take returns a connection, which the caller puts back. It blocks while all are in use. A connection
// that was used before may be broken.
func (p *pool) take(ctx context.Context) (conn *pgconn.PgConn, used bool, err error) {
	select {
	case p.slots <- struct{}{}:
	case <-ctx.Done():
		return nil, false, ctx.Err()
	}
	p.mu.Lock()
	closed := p.closed
	n := len(p.idle)
	if n > 0 {
		conn, p.idle = p.idle[n-1], p.idle[:n-1]
	}
	p.mu.Unlock()
	used = conn != nil
	switch {
	case closed:
		err = core.ErrClosed
	case conn == nil:
		conn, err = p.connect(ctx)
	}
	if err != nil {
		<-p.slots
		return nil, false, err
	}
	p.mu.Lock()
	p.used[conn] = true
	p.mu.Unlock()
	return conn, used, nil
}

func (p *pool) connect(ctx context.Context) (*pgconn.PgConn, error) {
	conn, err := pgconn.ConnectConfig(ctx, p.config.Load())
	if codeOf(err) == protocolViolation { // a pooler, which rejects the settings
		p.config.Store(p.plain)
		conn, err = pgconn.ConnectConfig(ctx, p.plain)
	}
	if err != nil {
		return nil, &awayError{err}
	}
	return conn, nil
}

// put takes a connection back, or closes it if it cannot be used again.
func (p *pool) put(conn *pgconn.PgConn) {
	defer func() { <-p.slots }()
	p.mu.Lock()
	delete(p.used, conn)
	keep := !p.closed && !conn.IsClosed() && conn.TxStatus() == 'I'
	if keep {
		p.idle = append(p.idle, conn)
	}
	p.mu.Unlock()
	if !keep {
		closeConn(conn)
	}
}

// end rolls back what was not committed, and takes a connection back.
func (p *pool) end(conn *pgconn.PgConn) {
	if !conn.IsClosed() && conn.TxStatus() != 'I' {
		_, _ = conn.Exec(context.Background(), "rollback").ReadAll() // if it fails, put closes the connection
	}
	p.put(conn)
}

// closeIdle closes the idle connections after the server has gone away.
func (p *pool) closeIdle() {
	p.mu.Lock()
	idle := p.idle
	p.idle = nil
	p.mu.Unlock()
	for _, conn := range idle {
		closeConn(conn)
	}
}

// breakUsed breaks the connections in use, so that nothing waits for minutes on a network that drops packets.
func (p *pool) breakUsed() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for conn := range p.used {
		_ = conn.Conn().Close() // it is abandoned anyway
	}
}

// close waits for the connections in use, then closes all.
func (p *pool) close() {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	for range maxConnections {
		p.slots <- struct{}{}
	}
	p.closeIdle()
	for range maxConnections {
		<-p.slots
	}
}

func closeConn(conn *pgconn.PgConn) {
	ctx, cancel := context.WithTimeout(context.Background(), connectTimeout)
	defer cancel()
	_ = conn.Close(ctx) // it is abandoned anyway
}
