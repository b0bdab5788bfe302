package postgres

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"synthbot/core/loop"
	"synthbot/core/sorting"
	"synthbot/memory/kv"
)

const (
	createParts = `create table if not exists part ` +
		`(name text not null, worker bigint not null, owned boolean not null, primary key (name, worker))`
	listLeases = `select id, name, (extract(epoch from until - clock_timestamp()) * 1000)::bigint from worker ` +
		`where until > '-infinity' order by id`
	listParts  = `select name, worker, owned from part order by name, worker`
	pruneParts = `delete from part where worker not in (select id from worker)`
	insertPart = `insert into part values ($1, $2, $3) on conflict (name, worker) do update set owned = excluded.owned`
	deletePart = `delete from part where name = $1 and worker = $2`
)

// exclusive is the part of a worker that must be alone, such as a command that writes: while it exists,
// no other worker can register.
const exclusive = ""

// parts are the parts of the work that this process wants. Safe for concurrent use.
type parts struct {
	mu       sync.Mutex
	wanted   map[string]*part
	released atomic.Uint64 // counts the parts that this process has given up
	others   bool          // there was another worker at the last check
	recheck  chan struct{} // holds a token if the owners should be checked now
}

// part is a part of the work that this process wants.
type part struct {
	life  context.Context      // of Claim
	owned chan context.Context // receives the context of the work when this process owns the part
	stop  context.CancelFunc   // ends that context; nil: the part is not owned; guarded by parts.mu
}

// apply starts the work on the parts that this process owns according to a snapshot, and stops it on
// others. released is how many were given up before the snapshot: if there were more since, it may be
// outdated, and another check follows.
func (p *parts) apply(released uint64, mine map[string]bool, others bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.others = others
	for name, one := range p.wanted {
		switch {
		case mine[name] && one.stop == nil && released == p.released.Load():
			var work context.Context
			work, one.stop = context.WithCancel(one.life)
			one.owned <- work
		case mine[name] && one.stop == nil:
			loop.Notify(p.recheck)
		case !mine[name] && one.stop != nil:
			one.stop()
		}
	}
}

// pause stops the work on all parts until the next check, if there are workers that may have taken them.
func (p *parts) pause() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, one := range p.wanted {
		if p.others && one.stop != nil {
			one.stop()
		}
	}
}

// Claim implements kv.Shared.
func (db *DB) Claim(ctx context.Context, name string, work func(context.Context) error) error {
	one := &part{life: ctx, owned: make(chan context.Context, 1)}
	db.parts.mu.Lock()
	db.parts.wanted[name] = one
	db.parts.mu.Unlock()
	defer func() {
		db.parts.mu.Lock()
		delete(db.parts.wanted, name)
		db.parts.mu.Unlock()
		db.release(name, one)
	}()
	for {
		loop.Notify(db.parts.recheck)
		select {
		case within := <-one.owned:
			err := work(within)
			lost := within.Err() != nil && ctx.Err() == nil
			if !lost {
				return err
			}
			db.release(name, one)
		case <-ctx.Done():
			return nil
		}
	}
}

// release gives a part up. If that cannot be stored, others take it when the lease has expired.
func (db *DB) release(name string, one *part) {
	defer func() {
		db.parts.mu.Lock()
		defer db.parts.mu.Unlock()
		db.parts.released.Add(1)
		if one.stop != nil {
			one.stop()
			one.stop = nil
		}
		select {
		case <-one.owned: // work has not started
		default:
		}
	}()
	_, _ = db.ask(context.Background(), removePart(name, db.Self()), hint(hintParts)) // see above
}

// snapshot says which workers run, and which parts they want and own.
type snapshot struct {
	workers map[int64]bool // those that run, by id
	dead    bool           // there are workers with expired leases
	wants   map[int64][]string
	owners  map[string]int64
}

func newSnapshot(workers, parts [][][]byte) snapshot {
	s := snapshot{workers: make(map[int64]bool), wants: make(map[int64][]string), owners: make(map[string]int64)}
	for _, row := range workers {
		if row[2][0] != 0 {
			s.workers[numberOf(row[0])] = true
		} else {
			s.dead = true
		}
	}
	for _, row := range parts {
		name, id, owned := string(row[0]), numberOf(row[1]), row[2][0] != 0
		if !s.workers[id] || name == exclusive {
			continue
		}
		s.wants[id] = append(s.wants[id], name)
		if owned {
			s.owners[name] = id
		}
	}
	return s
}

// balanceParts divides the parts as assign says. This worker takes those of its parts that are free, and gives
// up those that others should have or that it no longer wants.
func (db *DB) balanceParts(ctx context.Context, released uint64, now snapshot) error {
	mine, changes := db.divide(now)
	if now.dead || len(changes) > 0 {
		conn, _, err := db.pool.take(ctx)
		if err != nil {
			return err
		}
		defer db.pool.put(conn) // which ends the transaction if it is open
		all, err := send(ctx, conn, []statement{
			{sql: "begin"}, {sql: lockWorkers}, {sql: pruneWorkers}, {sql: pruneParts},
			{sql: listWorkers}, {sql: listParts},
		})
		if err != nil {
			return err
		}
		now = newSnapshot(all[4].Rows, all[5].Rows)
		if !now.workers[db.Self()] {
			return nil // the next renewal finds out whether another worker has taken over
		}
		mine, changes = db.divide(now)
		if _, err := send(ctx, conn, append(changes, statement{sql: "commit"})); err != nil {
			return err
		}
	}
	db.parts.apply(released, mine, len(now.workers) > 1)
	return nil
}

// divide returns which parts this worker owns from now on, and the statements that store what it wants and owns.
func (db *DB) divide(now snapshot) (mine map[string]bool, changes []statement) {
	db.parts.mu.Lock()
	defer db.parts.mu.Unlock()
	me, names := db.Self(), slices.Sorted(maps.Keys(db.parts.wanted))
	before := now.wants[me]
	for _, name := range before {
		if !slices.Contains(names, name) {
			changes = append(changes, removePart(name, me))
		}
	}
	now.wants[me] = names
	target := assign(now.wants, now.owners)
	mine = make(map[string]bool)
	for _, name := range names {
		owner, owned := now.owners[name]
		mine[name] = target[name] == me && (!owned || owner == me)
		keeps := mine[name] || owner == me && db.parts.wanted[name].stop != nil
		if keeps != (owner == me) || !slices.Contains(before, name) {
			changes = append(changes, storeOwnership(name, me, keeps))
		}
	}
	return mine, changes
}

// storeOwnership returns the statement that stores whether a worker owns a part that it wants.
func storeOwnership(name string, id int64, owned bool) statement {
	value := []byte{0}
	if owned {
		value[0] = 1
	}
	return statement{insertPart, [][]byte{[]byte(name), long(id), value}}
}

// removePart returns the statement that removes a part from a worker, which no longer wants it.
func removePart(name string, id int64) statement {
	return statement{deletePart, [][]byte{[]byte(name), long(id)}}
}

// assign returns which worker should own each part. The parts of a group, whose names begin with the same word, are
// divided evenly among the workers that want them, and workers keep what they own if possible. All workers get the
// same result.
func assign(wants map[int64][]string, owners map[string]int64) map[string]int64 {
	groups := make(map[string]map[string][]int64) // who wants each part, by group
	for _, id := range slices.Sorted(maps.Keys(wants)) {
		for _, name := range wants[id] {
			group, _, _ := strings.Cut(name, " ")
			if groups[group] == nil {
				groups[group] = make(map[string][]int64)
			}
			groups[group][name] = append(groups[group][name], id)
		}
	}
	target, total := make(map[string]int64), make(map[int64]int)
	for _, group := range slices.Sorted(maps.Keys(groups)) {
		assignGroup(groups[group], owners, target, total)
	}
	return target
}

// assignGroup is assign for one group. total counts the parts of each worker in all groups.
func assignGroup(wanted map[string][]int64, owners, target map[string]int64, total map[int64]int) {
	owned, has := make(map[int64]int), make(map[int64]int)
	names := slices.Sorted(maps.Keys(wanted))
	for _, name := range names {
		for _, id := range wanted[name] {
			owned[id] += 0
		}
		if slices.Contains(wanted[name], owners[name]) {
			owned[owners[name]]++
		}
	}
	workers := sorting.Sorted(maps.Keys(owned), func(a, b int64) int {
		return cmp.Or(owned[b]-owned[a], total[a]-total[b], cmp.Compare(a, b))
	})
	most := make(map[int64]int) // how many each may keep; the remainder goes to those that own the most
	for i, id := range workers {
		most[id] = len(names) / len(workers)
		if i < len(names)%len(workers) {
			most[id]++
		}
	}
	take := func(name string, id int64) {
		target[name] = id
		has[id]++
		total[id]++
	}
	for _, name := range names {
		id, ok := owners[name]
		if ok && slices.Contains(wanted[name], id) && has[id] < most[id] {
			take(name, id)
		}
	}
	for _, name := range names {
		if _, ok := target[name]; ok {
			continue
		}
		take(name, slices.MinFunc(wanted[name], func(a, b int64) int {
			return cmp.Or(has[a]-has[b], total[a]-total[b], cmp.Compare(a, b))
		}))
	}
}

// OwnsParts implements kv.Shared.
func (db *DB) OwnsParts() bool { return !db.worker.fenced.Load() && !db.worker.overdue() }

// Self implements kv.Shared.
func (db *DB) Self() int64 { return db.worker.id.Load() }

// Workers implements kv.Shared.
func (db *DB) Workers(ctx context.Context) ([]kv.Worker, error) {
	all, err := db.ask(ctx, statement{sql: listLeases}, statement{sql: listParts})
	if err != nil {
		return nil, err
	}
	var workers []kv.Worker
	for _, row := range all[0].Rows {
		w := kv.Worker{ID: numberOf(row[0]), Name: string(row[1])}
		w.Lease = time.Duration(numberOf(row[2])) * time.Millisecond
		for _, part := range all[1].Rows {
			if numberOf(part[1]) == w.ID && part[2][0] != 0 && string(part[0]) != exclusive {
				w.Parts = append(w.Parts, string(part[0]))
			}
		}
		workers = append(workers, w)
	}
	return workers, nil
}
