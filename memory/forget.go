package memory

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strconv"

	"synthbot/core"
)

// Forget deletes all that is stored of a person, of a place and all below it, or, for the
// zero Path, of everybody. Nothing of it is readable when Forget returns, and the next
// Compact leaves nothing in the file but keyed hashes of message ids, so that a platform
// that delivers a message again does not bring it back. Ids of group messages that retention
// deleted before stay for 60 days: their authors are not known any more. Writes that began
// before Forget and concern the person are left out; later ones are stored.
//
// Of a person it deletes: their messages and reactions; what the bot answered them, also
// together with others; quotes of either; the journal of the turns that answered them; facts
// by them or about them; what plugins store under their path; the states of the
// conversations that they took part in; their usage; and, as a whole, their private places
// with all below. Messages of others stay, even if they mention the person. What plugins
// store of them elsewhere is up to the plugins (core.DataKeeper).
func (db *DB) Forget(ctx context.Context, path core.Path) error {
	f := newForgetting(withJobName(ctx, "forget %s", path), db, path)
	defer func() { f.db.epochs.end(f.inProgress) }()
	if err := f.begin(); err != nil {
		return fmt.Errorf("forget %s: %w", path, err)
	}
	steps := []func() error{
		// The log comes late, and what shows that a place was private comes last: if Forget is
		// interrupted, the next one finds the places by it.
		f.journals, f.facts, f.plugins, f.states, f.usage, f.entries, f.aliases, f.lastEntries, f.files,
	}
	for _, step := range steps {
		if err := step(); err != nil {
			return fmt.Errorf("forget %s: %w", path, err)
		}
	}
	return nil
}

// files deletes what else may hold the person: copies that upgrades left, and names of jobs.
func (f *forgetting) files() error {
	suffixes := []string{stuckSuffix}
	for version := 1; version < schema; version++ {
		suffixes = append(suffixes, versionSuffix+strconv.Itoa(version))
	}
	var errs []error
	for _, suffix := range suffixes {
		err := os.Remove(f.db.file.name + suffix)
		if !errors.Is(err, fs.ErrNotExist) {
			f.db.log.Info("a file is deleted, since somebody is forgotten", "file", f.db.file.name+suffix, "err", err)
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// forgetting is one Forget.
type forgetting struct {
	*subject
	inProgress map[core.Path]bool    // what is marked in epochs
	ids        map[core.Path][]place // the paths under which ids are stored, by the place that they lead to
	sources    map[core.Path]bool    // paths of ids and aliases that lead to what is deleted
}

func newForgetting(ctx context.Context, db *DB, path core.Path) *forgetting {
	return &forgetting{subject: newSubject(ctx, db, path), inProgress: make(map[core.Path]bool),
		sources: make(map[core.Path]bool)}
}

// begin begins a new epoch, takes a snapshot, and mutes the running turns. The places that
// are deleted as a whole are searched before and after: the search is long, and a turn may
// end meanwhile.
func (f *forgetting) begin() error {
	if err := f.find(); err != nil {
		return err
	}
	err := f.db.update(f.ctx, func(t *tx) {
		f.markInProgress()
		t.finish() // writes of others in this transaction count
		f.lookUp(t)
		t.bucket(bucketMeta).Put([]byte(metaTraces), []byte("1"))
		t.forgotten().addSalt()
		f.recordRequest(t)
		f.mute(t)
	})
	if err != nil {
		return err
	}
	err = f.findWhole()
	f.markInProgress()
	return errors.Join(err, f.findSources())
}

// markInProgress begins the epoch in which the person and these places are forgotten, so
// that nothing of them comes back. It is called again when more places are known.
func (f *forgetting) markInProgress() {
	e := &f.db.epochs
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, path := range append(slices.Collect(maps.Keys(f.whole)), f.path) {
		if !f.inProgress[path] {
			f.inProgress[path] = true
			e.forgottenIn[path] = e.now
			e.inProgress[path]++
		}
	}
}

// findSources finds the paths that lead to what is deleted. A place that moved with one
// above it has no alias of its own, but ids are stored under its path.
func (f *forgetting) findSources() error {
	return f.db.view(f.ctx, func(v *view) error {
		f.ids = v.idSources()
		for _, from := range append(v.placesIn(bucketIDs), v.placesIn(bucketAliases)...) {
			if f.isForgotten(v.resolve(from).path) {
				f.sources[from] = true
			}
		}
		return nil
	})
}

// entries deletes the person's entries, but for those that show that a place was private, and
// removes the person from the entries of others.
func (f *forgetting) entries() error {
	from, to := subtree(f.within)
	err := sweep(f.ctx, f.db, bucketLog, from, to, func(k, v []byte) bool {
		l, ok, _ := f.read(k, v)
		return ok && f.proof[l.Message.Path] != l.Message.Seq && (f.concerns(&l) || f.clean(&l))
	}, func(t *tx, k, v []byte) {
		l, _, _ := f.read(k, v)
		if f.concerns(&l) {
			f.removeEntry(t, &l)
		} else {
			f.clean(&l)
			t.rewrite(&l)
		}
	})
	if err != nil {
		return err
	}
	return correctHeadTimes(f.ctx, f.db, maps.Keys(f.heads))
}

// removeEntry deletes an entry with its ids.
func (f *forgetting) removeEntry(t *tx, l *storedEntry) {
	for _, p := range f.ids[l.Message.Path] {
		key := idKey(p.ids, l.Message.ID)
		seq, size := uvarint(string(t.bucket(bucketIDs).Get(key)))
		if size > 0 && seq+p.shift == l.Message.Seq {
			t.forgotten().replaceID(key)
		}
	}
	t.remove(placeKey(l.Message.Path), l.Message.Seq)
}

// clean removes quotes and forwarded texts of the person, quotes of what the bot answered
// them, and their reactions from somebody else's entry.
func (f *forgetting) clean(l *storedEntry) bool {
	_, reacted := l.reactors[f.person]
	if reacted {
		unreact(l, f.person, "")
	}
	quote := l.Message.ReplyTo
	quoted := quote != nil && (quote.From.ID == f.person || f.replies[l.Message.Path][quote.ID])
	if quoted {
		l.Message.ReplyTo = &core.Quote{ID: l.Message.ReplyTo.ID}
	}
	passedOn := dropForeign(&l.Message, func(o core.Foreign) bool { return o.From.ID == f.person })
	return reacted || quoted || passedOn
}

// dropForeign removes the foreign texts that gone reports.
func dropForeign(m *core.Message, gone func(core.Foreign) bool) (changed bool) {
	before := len(m.Foreign)
	m.Foreign = slices.DeleteFunc(slices.Clone(m.Foreign), gone)
	return len(m.Foreign) < before
}

// lastEntries deletes what is left of whole places, those below others first. Their numbers
// are not given again: a turn may still run there, and platforms know messages by their
// turn's number.
func (f *forgetting) lastEntries() error {
	longest := func(a, b core.Path) int { return cmp.Compare(len(b.String()), len(a.String())) }
	places := slices.SortedFunc(maps.Keys(f.whole), longest)
	return changeAll(f.ctx, f.db, places, func(t *tx, path core.Path) {
		p := place{path: path, key: placeKey(path)}
		if l, ok := t.entry(p, f.proof[path]); ok {
			f.removeEntry(t, &l)
		}
		dropHead(t, p.key)
	})
}

// dropHead deletes the head of a place that is empty now.
func dropHead(t *tx, place []byte) {
	h := t.head(place)
	if h.count > 0 {
		return
	}
	t.db.epochs.floor = max(t.db.epochs.floor, h.last)
	t.floor = t.db.epochs.floor // others write in this transaction
	*h = head{}
	t.bucket(bucketMeta).Put([]byte(metaFloor), strconv.AppendUint(nil, t.floor, 10))
}

// aliases deletes the aliases that led to the deleted places, and the ids under them. Other
// paths that led through one of them to a place that stays get an alias of their own.
func (f *forgetting) aliases() error {
	for from := range f.sources {
		start, all := placeKey(from), func([]byte, []byte) bool { return true }
		err := sweep(f.ctx, f.db, bucketIDs, start, after(start), all, func(t *tx, k, v []byte) {
			if !t.hasEntry(k, v) {
				t.forgotten().replaceID(k)
			}
		})
		if err != nil {
			return err
		}
	}
	return f.db.update(f.ctx, func(t *tx) {
		moved := t.placesIn(bucketAliases)
		gone := slices.DeleteFunc(slices.Clone(moved), func(from core.Path) bool { return !f.sources[from] })
		if len(gone) == 0 {
			return
		}
		before := make(map[core.Path]place)
		for _, from := range append(t.placesIn(bucketIDs), moved...) {
			if !f.sources[from] {
				before[from] = t.resolve(from)
			}
		}
		for _, from := range gone {
			t.bucket(bucketAliases).Delete(placeKey(from))
		}
		for from, p := range before {
			if t.resolve(from).path != p.path {
				t.addAlias(from, alias{To: p.path, Shift: p.shift})
			}
		}
	})
}

// facts deletes facts by the person, about them, or of the deleted places. Of facts that
// others have replaced since, only the person's former texts are deleted.
func (f *forgetting) facts() error {
	unreadable := make(map[string]bool)
	err := sweep(f.ctx, f.db, bucketFacts, nil, nil, func(k, v []byte) bool {
		fact, err := decodeFact(k, v)
		if err != nil {
			return f.path.IsZero() || namesPath(v, f.path)
		}
		return f.concernsFact(fact) || slices.ContainsFunc(fact.Former, f.saidBefore)
	}, func(t *tx, k, v []byte) {
		fact, err := decodeFact(k, v)
		switch {
		case err != nil:
			unreadable[string(k)] = true
			t.bucket(bucketFacts).Delete(k)
		case f.concernsFact(fact):
			t.facts().dropFact(fact)
		default:
			rest := fact
			rest.Former = slices.DeleteFunc(slices.Clone(fact.Former), f.saidBefore)
			t.facts().replaceFact(fact, rest)
		}
	})
	if err != nil || len(unreadable) == 0 {
		return err
	}
	of := func(k, _ []byte) bool { return unreadable[string(k[max(0, len(k)-8):])] }
	err = deleteWhere(f.ctx, f.db, bucketWords, nil, nil, of)
	return errors.Join(err, deleteWhere(f.ctx, f.db, bucketVectors, nil, nil, of))
}

// isForgotten reports whether what is stored under a path is deleted.
func (f *forgetting) isForgotten(path core.Path) bool {
	for above := path; !above.IsZero(); above = above.Parent() {
		if f.sources[above] {
			return true
		}
	}
	return f.holds(path)
}

func (f *forgetting) plugins() error {
	return deleteWhere(f.ctx, f.db, bucketPlugins, nil, nil, func(k, v []byte) bool {
		_, rest, _ := bytes.Cut(k, []byte{ending})
		path, key, _ := cutItem(rest)
		return f.isForgotten(path) || f.person != "" && key == f.path.String()
	})
}

func (f *forgetting) states() error {
	return deleteWhere(f.ctx, f.db, bucketStates, nil, nil, func(k, _ []byte) bool {
		path, _ := placeOf(k)
		return f.isForgotten(path) || f.spokeIn[path]
	})
}

// usage deletes what the person used. What their places cost is added to the interface
// instead: the money is spent, and budgets must not have room again.
func (f *forgetting) usage() error {
	return sweep(f.ctx, f.db, bucketUsage, nil, nil, func(k, v []byte) bool {
		u, _ := readUse(k, v)
		return f.isForgotten(u.Person)
	}, func(t *tx, k, v []byte) {
		t.bucket(bucketUsage).Delete(k)
		u, _ := readUse(k, v)
		place := interfaceOf(u.Person)
		if !u.Person.IsPerson() && !f.isForgotten(place) {
			u.Person = place
			t.addUse(u)
		}
	})
}

// mute mutes the unfinished turns that answer the person. Only places with a journal are
// searched.
func (f *forgetting) mute(t *tx) {
	for _, path := range t.placesIn(bucketJournal) {
		if !path.Within(f.within) {
			continue
		}
		place := placeKey(path)
		from := seqKey(place, f.heads[path].answered+1)
		for turn, records := range t.turns(from, after(place)) {
			if !f.isNamed(records) && !f.isAnswered(t, records) {
				continue
			}
			names := []core.TurnID{turn} // from before its place moved, too
			for _, from := range t.placesIn(bucketAliases) {
				p := t.resolve(from)
				if p.path == path && turn.Seq > p.shift {
					names = append(names, core.TurnID{Path: from, Seq: turn.Seq - p.shift})
				}
			}
			f.db.epochs.mute(turn, names)
		}
	}
}

// journals deletes the journals of the turns that answer or name the person.
func (f *forgetting) journals() error {
	answers := make(map[core.TurnID]bool)
	err := f.db.view(f.ctx, func(v *view) error {
		for turn, records := range v.turns(subtree(f.within)) {
			answered := f.isAnswered(&v.tx, records)
			if answered || f.isNamed(records) {
				answers[turn] = answered
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	return changeAll(f.ctx, f.db, slices.Collect(maps.Keys(answers)), func(t *tx, turn core.TurnID) {
		if answers[turn] {
			for _, r := range t.records(turn) {
				f.removeSent(t, r)
			}
		}
		t.deleteBelow(bucketJournal, turnKey(turn))
	})
}

// removeSent deletes the message that a part of a turn sent to the person. Only entries of
// older versions need it: others hold whom they answer.
func (f *forgetting) removeSent(t *tx, r record) {
	var sent core.Sent
	w, err := decodeRecord(r.value)
	if err != nil || r.key.Part == 0 || json.Unmarshal(w.Data, &sent) != nil {
		return
	}
	p := t.resolve(sent.Path)
	seq, known := t.findID(p, sent.ID)
	if known {
		f.addReply(p.path, sent.ID)
		t.remove(p.key, seq)
	}
}
