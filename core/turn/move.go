package turn

import (
	"cmp"
	"context"

	"synthbot/core"
)

// moved is what memory holds of places that moved while this process ran.
type moved struct {
	former map[queue]*worker       // by the new path: the worker of the former path, as long as it runs
	to     map[core.Path]core.Path // by the former path: where the place is now
}

// move is the move of a place to a new path. The two are the same if it is there already.
type move struct{ from, to core.Path }

// findMoves returns the moves among events that are about to be stored.
func (t *Turns) findMoves(ctx context.Context, events []core.Event) (moves []move, err error) {
	for i := range events {
		e := &events[i]
		if e.Kind != core.KindMigration || e.To.IsZero() {
			continue
		}
		var from, to core.Head // both may have moved before
		err = t.store.View(ctx, func(v core.View) (err error) {
			if from, err = v.Head(e.Message.Path); err == nil {
				to, err = v.Head(e.To)
			}
			return err
		})
		if err != nil {
			return nil, err
		}
		moves = append(moves, move{from.Path, to.Path})
	}
	return moves, nil
}

// follow moves what memory holds of places. Workers of the new paths first wait for those of the former paths.
func (t *Turns) follow(moves []move) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, m := range moves {
		if m.from == m.to {
			continue
		}
		for _, commands := range []bool{false, true} {
			p, ok := t.awake[queue{m.from, commands}]
			if ok && t.life != nil {
				t.moved.former[queue{m.to, commands}] = p
			}
		}
		t.attention.move(m)
		for from, to := range t.moved.to {
			if to == m.from {
				t.moved.to[from] = m.to
			}
		}
		t.moved.to[m.from] = m.to
		delete(t.moved.to, m.to)
	}
}

// waitForFormer waits until the worker of the place's former path has ended; false if life ends before.
func (p *worker) waitForFormer() bool {
	t := p.turns
	t.mu.Lock()
	former := t.moved.former[p.queue]
	t.mu.Unlock()
	if former == nil {
		return true
	}
	select {
	case <-former.over:
	case <-t.life.Done():
		return false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.moved.former[p.queue] == former {
		delete(t.moved.former, p.queue)
	}
	return true
}

// judgedAs returns the path by which an event in a place is judged: the present one, but a former one as long as
// the configuration names that.
func (t *Turns) judgedAs(s *setup, place core.Path) core.Path {
	t.mu.Lock()
	place = cmp.Or(t.moved.to[place], place)
	var former []core.Path
	for from, to := range t.moved.to {
		if to == place {
			former = append(former, from)
		}
	}
	t.mu.Unlock()
	for _, from := range former {
		if s.Places.Configured(from) {
			return from
		}
	}
	return place
}
