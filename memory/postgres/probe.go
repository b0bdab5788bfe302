package postgres

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"synthbot/core"
)

const maxClockDifference = 2 * time.Second

// Queries of a probe. Their results are texts.
const (
	askServer = `select current_setting('server_version'), (extract(epoch from clock_timestamp()) * 1000)::bigint`
	askSafety = `select current_setting('synchronous_commit'), current_setting('fsync')`
	askCopies = `select count(*), count(*) filter (where sync_state in ('sync', 'quorum')) ` +
		`from pg_stat_replication where sync_state is not null`
	askLog = `select current_setting('log_statement'), current_setting('log_min_duration_statement'), ` +
		`coalesce(current_setting('log_parameter_max_length', true), '-1')`
	askSchema = `select coalesce(has_schema_privilege(current_schema(), 'create'), false)`
	askTables = `select bool_and(has_table_privilege(t, p)) ` +
		`from unnest(array['kv', 'worker', 'part']) t, unnest(array['select', 'insert', 'update', 'delete']) p`
	askWorkers = `select coalesce((select name from worker where until > clock_timestamp() limit 1), 'none')`
)

// Probe checks the database of a URL and returns its findings for an administrator, faults with a fix.
// It blocks for several round trips, and leaves nothing behind in the database. Errors are those of Open.
func Probe(ctx context.Context, url string) ([]core.Finding, error) {
	db, err := newDB(url, Options{JoinOnWrite: true})
	if err != nil {
		return nil, err
	}
	defer db.pool.close()
	hasTables, err := db.inspect(ctx)
	if err != nil {
		return nil, db.openError(err)
	}
	conn, _, err := db.pool.take(ctx)
	if err != nil {
		return nil, db.openError(err)
	}
	defer db.pool.put(conn)
	p := &probe{db: db, conn: conn, hasTables: hasTables}
	p.server(ctx)
	p.rights(ctx)
	p.judge(ctx, "durability", askSafety, judgeSafety)
	p.judge(ctx, "standby", askCopies, judgeCopies)
	p.judge(ctx, "log", askLog, judgeLog)
	if hasTables {
		p.judge(ctx, "worker", askWorkers, judgeWorker)
		p.isolation(ctx)
	}
	return p.found, nil
}

type probe struct {
	db        *DB
	conn      *pgconn.PgConn
	hasTables bool // the tables exist
	found     []core.Finding
}

func (p *probe) add(what string, f core.Finding) {
	f.What = what
	p.found = append(p.found, f)
}

// ask returns the row of a query. If the query fails, it returns nil, and adds a finding about what.
func (p *probe) ask(ctx context.Context, what, sql string) (row []string) {
	all, err := p.conn.Exec(ctx, sql).ReadAll()
	if err != nil {
		fix := fmt.Sprintf("the server does not say: %v", withoutConfig(err))
		p.add(what, core.Finding{Found: "unknown", Fix: fix})
		return nil
	}
	for _, value := range all[0].Rows[0] {
		row = append(row, string(value))
	}
	return row
}

func (p *probe) judge(ctx context.Context, what, sql string, judge func(row []string) core.Finding) {
	row := p.ask(ctx, what, sql)
	if row != nil {
		p.add(what, judge(row))
	}
}

func (p *probe) server(ctx context.Context) {
	before := time.Now()
	row := p.ask(ctx, "server", askServer)
	if row == nil {
		return
	}
	p.add("server", core.Finding{Found: p.db.name + ", version " + row[0]})
	took := time.Since(before)
	there, err := strconv.ParseInt(row[1], 10, 64)
	apart := time.UnixMilli(there).Sub(before.Add(took / 2)).Abs()
	f := core.Finding{Found: fmt.Sprintf("%v from that of this machine", apart.Round(time.Millisecond))}
	if err != nil || apart > maxClockDifference+took {
		f.Fix = "set both clocks by NTP: users see the times of this machine, and the server measures leases"
	}
	p.add("clock", f)
}

func (p *probe) rights(ctx context.Context) {
	schema := p.ask(ctx, "rights", askSchema)
	tables := []string{"t"}
	if p.hasTables {
		tables = p.ask(ctx, "rights", askTables)
	}
	switch {
	case schema == nil || tables == nil:
	case schema[0] != "t":
		p.add("rights", core.Finding{Found: "no tables can be made", Fatal: true,
			Fix: "grant create and usage on the schema to this user, or correct search_path"})
	case tables[0] != "t":
		p.add("rights", core.Finding{Found: "the tables cannot be used", Fatal: true,
			Fix: "grant select, insert, update, delete on kv, worker, part to this user, or let them own these"})
	default:
		p.add("rights", core.Finding{Found: "tables can be made and used"})
	}
}

func judgeSafety(row []string) core.Finding {
	switch {
	case row[1] != "on":
		return core.Finding{Found: "fsync is " + row[1],
			Fix: "turn it on: a crash of the machine may damage the whole database"}
	case row[0] == "off":
		return core.Finding{Found: "synchronous_commit is off",
			Fix: "turn it on for this database or user: a crash loses messages that were acknowledged"}
	}
	return core.Finding{Found: "synchronous_commit is " + row[0]}
}

func judgeCopies(row []string) core.Finding {
	switch {
	case row[0] == "0":
		return core.Finding{Found: "none that this user can see"}
	case row[1] == "0":
		return core.Finding{Found: row[0] + ", none of them synchronous", Fix: "set synchronous_standby_names: " +
			"if one of them takes over, messages that were acknowledged may be lost"}
	}
	return core.Finding{Found: row[1] + " synchronous of " + row[0]}
}

func judgeLog(row []string) core.Finding {
	all := row[0] == "all" || row[0] == "mod" || row[1] != "-1"
	if all && row[2] != "0" {
		return core.Finding{Found: "the server logs statements with their values",
			Fix: "set log_parameter_max_length = 0, or log fewer statements: else its log holds what users write"}
	}
	return core.Finding{Found: "the server does not log values"}
}

func judgeWorker(row []string) core.Finding { return core.Finding{Found: row[0] + " runs"} }

func (p *probe) isolation(ctx context.Context) {
	err := p.skew(ctx)
	switch {
	case codeOf(err) == serializationFailure:
		p.add("isolation", core.Finding{Found: "transactions are serialisable"})
	case err == nil:
		p.add("isolation", core.Finding{Found: "transactions are not serialisable", Fatal: true,
			Fix: "use PostgreSQL itself, or a service that offers this level; a pooler must be in transaction mode"})
	default:
		fix := fmt.Sprintf("it cannot be tried: %v", withoutConfig(err))
		p.add("isolation", core.Finding{Found: "unknown", Fix: fix})
	}
}

// skew runs two transactions, each of which reads what the other one writes (write skew), and deletes
// what they wrote. It returns an error if they cannot both commit.
func (p *probe) skew(ctx context.Context) (err error) {
	other, _, err := p.db.pool.take(ctx)
	if err != nil {
		return err
	}
	defer p.db.pool.put(other)
	keys := [][]byte{append([]byte{markers}, rand.Text()...), append([]byte{markers}, rand.Text()...)}
	remove := statement{deleteAll, [][]byte{list(keys)}}
	defer func() {
		_, failed := send(ctx, p.conn, []statement{remove})
		err = errors.Join(err, failed)
	}()
	conns := []*pgconn.PgConn{p.conn, other}
	for i, conn := range conns {
		look := statement{"select v from kv where k = $1", [][]byte{keys[1-i]}}
		add := statement{"insert into kv values ($1, '')", [][]byte{keys[i]}}
		_, failed := send(ctx, conn, []statement{{sql: beginWrite}, look, add})
		err = errors.Join(err, failed)
	}
	for _, conn := range conns {
		_, failed := send(ctx, conn, []statement{{sql: "commit"}})
		err = errors.Join(err, failed)
	}
	return err
}
