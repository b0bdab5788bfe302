package memory

import (
	"bytes"
	"context"
	"crypto/rand"
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

// Forget deletes all that is stored about a person, a place and all below it, or, for the zero Path, everybody.
// None of it is readable when Forget returns, and the next Compact leaves nothing in the file but keyed hashes of
// message ids, so that a platform that delivers a message again does not bring it back. Ids of group messages that
// retention deleted before stay for 60 days: their authors are not known any more. Writes that began before Forget
// and concern the person are left out; later ones are stored. If the process ends before Forget does, the next Open
// continues.
//
// For a person, it deletes: their messages and reactions; what the bot answered them, also together with others;
// quotes of either; the journal of the turns that answered them; facts by them or about them; what plugins store
// under their path; the states of the conversations that they took part in; their usage; and their private places
// with all below. Messages of others stay, even if they mention the person. What plugins store about them elsewhere
// is up to the plugins (core.DataKeeper).
func (db *DB) Forget(ctx context.Context, path core.Path) error {
	s := newSubject(withJobName(ctx, "forget %s", path), db, path)
	defer s.end()
	for _, step := range []func() error{s.find, s.begin, s.deleteAll} {
		if err := step(); err != nil {
			return fmt.Errorf("forget %s: %w", path, err)
		}
	}
	return nil
}

// continueForgets prepares the Forgets that ended processes did not finish, so that nothing that is stored from
// now on belongs to them. The function that it returns finishes them.
func (db *DB) continueForgets(ctx context.Context) (erase func()) {
	var all []*subject
	var workers []Worker
	var err error
	if Shared(db) != nil {
		workers, err = Shared(db).Workers(ctx)
	}
	if err != nil {
		db.log.Warn("unfinished deletions of people are looked for later", "file", db.engine.name, "err", err)
		return func() {}
	}
	err = db.view(ctx, func(v *view) (err error) {
		for key := range v.bucket(bucketMeta).prefixed([]byte(metaForget)) {
			var path core.Path
			bad := path.UnmarshalText(key[len(metaForget):])
			if bad != nil {
				err = errors.Join(err, bad)
				continue
			}
			s := newSubject(withJobName(ctx, "forget %s", path), db, path)
			s.continued = true
			s.loadPlan(v)
			isRunning := slices.ContainsFunc(workers, func(w Worker) bool { return w.ID == s.Worker })
			if !isRunning {
				all = append(all, s)
			}
		}
		return err
	})
	all = slices.DeleteFunc(all, func(s *subject) bool {
		failed := s.begin()
		if failed != nil {
			s.end()
		}
		err = errors.Join(err, failed)
		return failed != nil
	})
	return func() {
		for _, s := range all {
			err = errors.Join(err, s.deleteAll())
			s.end()
		}
		if err != nil && ctx.Err() == nil {
			db.log.Error("somebody is not forgotten yet; the next start tries again", "err", err)
		}
	}
}

// metaForget and the path are the key, in the meta bucket, of the plan of a Forget in progress.
const metaForget = "forget "

// plan is what a Forget found before it deleted anything. It is stored: after a crash, what is left does not
// show to whom it belonged.
type plan struct {
	Whole   map[core.Path]uint64          // places that belong to the subject as a whole, up to that number
	Replies map[core.Path]map[string]bool // ids of what the bot answered the person, by place
	Sources map[core.Path]bool            // paths of ids and aliases that lead to what is deleted
	Worker  int64                         `json:",omitempty"` // the process that forgets them; 0: only one process is possible
}

func (s *subject) planKey() []byte { return []byte(metaForget + s.path.String()) }

// loadPlan loads the plan of an interrupted Forget, if there is one. If it cannot be read, Forget starts over.
func (s *subject) loadPlan(v *view) {
	value := v.bucket(bucketMeta).Get(s.planKey())
	if value == nil {
		return
	}
	if err := json.Unmarshal(value, &s.plan); err != nil {
		v.db.logUnreadable(fmt.Errorf("plan to forget %s: %w", s.path, err))
	}
}

func (s *subject) storePlan(t *tx) { t.bucket(bucketMeta).Put(s.planKey(), core.JSON(s.plan)) }

// announceBegun stores the plan, so that another process can continue, and tells the others whom they must not store
// any more.
func (s *subject) announceBegun(t *tx, begun []core.Path, muted []sharedMute) {
	if Shared(s.db) != nil {
		s.storePlan(t)
		announce(t, sharedEpoch{Subject: s.path, Begun: begun, Muted: muted})
	}
}

func (s *subject) deleteAll() error {
	storePlan := func() error { return s.db.update(s.ctx, s.storePlan) }
	dropPlan := func() error {
		err := s.db.update(s.ctx, func(t *tx) {
			t.bucket(bucketMeta).Delete(s.planKey())
			announce(t, sharedEpoch{Subject: s.path, Over: true})
		})
		s.over = err == nil
		return err
	}
	steps := []func() error{
		// The log comes late: journals and states that belong to a person are found by it.
		s.findAll, storePlan, s.deleteJournals, s.deleteFacts, s.deleteDocuments, s.deleteItems, s.deleteStates,
		s.deleteUsage, s.deleteEntries, s.deleteAliases, s.deleteHeads, s.deleteFiles, dropPlan,
	}
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// findAll searches again, for what turns have added meanwhile, and then finds the ids, aliases and turns that
// belong to the subject.
func (s *subject) findAll() error {
	if err := s.findWhole(); err != nil {
		return err
	}
	begun := s.markInProgress()
	if len(begun) > 0 {
		err := s.db.update(s.ctx, func(t *tx) { s.announceBegun(t, begun, nil) })
		if err != nil {
			return err
		}
	}
	return s.db.read(s.ctx, func(v *view) {
		s.ids = v.idSources()
		// A place that moved with one above it has no alias of its own, but ids are stored under
		// its path.
		for _, from := range append(v.placesIn(bucketIDs, core.Path{}), v.placesIn(bucketAliases, core.Path{})...) {
			if s.covers(v.resolve(from).path) {
				s.Sources[from] = true
			}
		}
		s.findTurns(v)
	})
}

// deleteFiles deletes files that may contain the person: backups of upgrades, and the names of blocked jobs.
func (s *subject) deleteFiles() error {
	suffixes := []string{stuckSuffix}
	for version := 1; version < schema; version++ {
		suffixes = append(suffixes, versionSuffix+strconv.Itoa(version))
	}
	var errs []error
	for _, suffix := range suffixes {
		file := s.db.engine.file + suffix
		err := os.Remove(file)
		switch {
		case err == nil:
			s.db.log.Info("a file is deleted, since somebody is forgotten", "file", file)
		case !errors.Is(err, fs.ErrNotExist):
			s.db.log.Warn("a file of somebody who is forgotten cannot be deleted", "file", file, "err", err)
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// begin marks what was found as being forgotten, in all processes, and takes a snapshot of the heads. From then on,
// no process stores anything of it.
func (s *subject) begin() error {
	s.Worker = workerID(s.db)
	begun := s.markInProgress()
	return updateAndView(s.ctx, s.db, func(t *tx) {
		t.writeHeads() // so that entries of other jobs in this transaction count
		// It differs each time, so that a running compaction notices.
		t.bucket(bucketMeta).Put([]byte(metaTraces), []byte(rand.Text()))
		t.forgotten().addSalt()
		s.recordRequest(t)
		s.mute(t)
		s.announceBegun(t, begun, s.muted)
	}, s.loadHeads)
}

// markInProgress marks the person, and the places found so far, as being forgotten, so that this
// process stores nothing of them. It returns those that are new: later calls know more places.
func (s *subject) markInProgress() (begun []core.Path) {
	begun = []core.Path{s.path}
	if s.person != "" { // else they are below the path
		begun = slices.AppendSeq(begun, maps.Keys(s.Whole))
	}
	begun = slices.DeleteFunc(begun, func(path core.Path) bool { return slices.Contains(s.inProgress, path) })
	s.inProgress = append(s.inProgress, begun...)
	e := &s.db.epochs
	e.mu.Lock()
	e.begin(begun)
	e.mu.Unlock()
	return begun
}

// end ends the epoch in which the subject is forgotten.
func (s *subject) end() {
	if len(s.inProgress) == 0 {
		return
	}
	if !s.over && Shared(s.db) != nil { // Forget has failed
		over := func(t *tx) { announce(t, sharedEpoch{Subject: s.path, Over: true}) }
		if err := s.db.update(context.WithoutCancel(s.ctx), over); err != nil {
			s.db.log.Error("other processes still treat somebody as being forgotten", "path", s.path, "err", err)
		}
	}
	e := &s.db.epochs
	e.mu.Lock()
	defer e.mu.Unlock()
	e.end(s.inProgress)
}

func (s *subject) findTurns(v *view) {
	for turn, records := range v.turns(subtree(s.within)) {
		answered := s.isAnswered(&v.tx, records)
		if !answered && !s.isNamed(records) {
			continue
		}
		s.turns[turn] = answered
		for _, r := range records {
			p, sent, _, known := v.sentBy(r)
			if answered && known {
				s.addReply(p.path, sent.ID)
			}
		}
	}
}

// deleteEntries deletes the person's entries, and removes the person from the entries of others.
func (s *subject) deleteEntries() error {
	from, to := subtree(s.within)
	err := sweep(s.ctx, s.db, bucketLog, from, to, func(k, v []byte) bool {
		l, ok, _ := s.readEntry(k, v)
		return ok && (s.concerns(&l) || s.redact(&l))
	}, func(t *tx, k, v []byte) {
		l, _, _ := s.readEntry(k, v)
		if !s.concerns(&l) {
			s.redact(&l)
			t.rewrite(&l)
			return
		}
		for _, p := range s.ids[l.Message.Path] {
			seq, known := t.findID(p, l.Message.ID)
			if known && seq == l.Message.Seq {
				t.forgotten().replaceID(p.ids, shortID(l.Message.ID))
			}
		}
		t.remove(placeKey(l.Message.Path), l.Message.Seq)
	})
	if err != nil {
		return err
	}
	return correctHeadTimes(s.ctx, s.db, maps.Keys(s.heads))
}

// redact removes from somebody else's entry: quotes and forwards of the person, quotes of what the bot answered
// them, and their reactions. It reports whether there were any.
func (s *subject) redact(l *storedEntry) bool {
	_, reacted := l.reactors[s.person]
	if reacted {
		unreact(l, s.person, "")
	}
	quote := l.Message.ReplyTo
	quoted := quote != nil && (quote.From.ID == s.person || s.Replies[l.Message.Path][quote.ID])
	if quoted {
		l.Message.ReplyTo = &core.Quote{ID: quote.ID}
	}
	passedOn := dropForeign(&l.Message, func(o core.Foreign) bool { return o.From.ID == s.person })
	return reacted || quoted || passedOn
}

func dropForeign(m *core.Message, gone func(core.Foreign) bool) (changed bool) {
	before := len(m.Foreign)
	m.Foreign = slices.DeleteFunc(slices.Clone(m.Foreign), gone)
	return len(m.Foreign) < before
}

// deleteHeads deletes the heads of whole places. Their numbers are not used again: a turn may still run there,
// and platforms know messages by their turn's number.
func (s *subject) deleteHeads() error {
	return changeAll(s.ctx, s.db, slices.Collect(maps.Keys(s.Whole)), func(t *tx, path core.Path) {
		dropHead(t, placeKey(path))
	})
}

// dropHead deletes the head of a place that is empty now.
func dropHead(t *tx, place []byte) {
	h := t.head(place)
	if h.count > 0 {
		return
	}
	t.db.epochs.raiseFloor(h.last)
	t.floor = t.db.epochs.floor.Load() // others write in this transaction
	*h = head{}
	raiseBarrier(t) // until they know the floor
	t.bucket(bucketMeta).Put([]byte(metaFloor), strconv.AppendUint(nil, t.floor, 10))
}

// deleteAliases deletes the aliases that led to the deleted places, and the ids under them. Other
// paths that led through one of them to a place that stays get an alias of their own.
func (s *subject) deleteAliases() error {
	for from := range s.Sources {
		start := placeKey(from)
		err := changeFound(s.ctx, s.db, func(v *view) (all []knownID) {
			for _, value := range v.bucket(bucketIDs).prefixed(start) {
				for run := (idRun{bytes: value}); run.next(); {
					all = append(all, knownID{id: bytes.Clone(run.last.id), seq: run.last.seq})
				}
			}
			return all
		}, func(t *tx, id knownID) {
			if !t.hasEntry(t.resolve(from), id.seq) {
				t.forgotten().replaceID(start, id.id)
			}
		})
		err = errors.Join(err, deleteWhere(s.ctx, s.db, bucketIDs, start, prefixEnd(start), func(_, v []byte) bool {
			return checkRun(v) != nil
		}))
		if err != nil {
			return err
		}
	}
	err := changeFound(s.ctx, s.db, func(v *view) []core.Path {
		all := append(v.placesIn(bucketIDs, core.Path{}), v.placesIn(bucketAliases, core.Path{})...)
		return slices.DeleteFunc(all, func(from core.Path) bool {
			return s.Sources[from] || !s.usesDeletedAlias(v, from)
		})
	}, func(t *tx, from core.Path) {
		p := t.resolve(from)
		t.addAlias(from, alias{To: p.path, Shift: p.shift})
	})
	if err != nil {
		return err
	}
	return deleteWhere(s.ctx, s.db, bucketAliases, nil, nil, func(k, _ []byte) bool {
		from, _ := parsePlace(k)
		return s.Sources[from]
	})
}

// usesDeletedAlias reports whether a path leads through an alias that is deleted.
func (s *subject) usesDeletedAlias(v *view, path core.Path) bool {
	for range maxHops {
		a, moved := v.followAlias(path)
		if !moved || s.Sources[a.from] {
			return moved
		}
		path = a.To
	}
	return false
}

// deleteFacts deletes facts by the person, about them, or of the deleted places. If others have
// replaced a fact since, it deletes only the person's former texts.
func (s *subject) deleteFacts() error {
	unreadable := make(map[string]bool)
	err := sweep(s.ctx, s.db, bucketFacts, nil, nil, func(k, v []byte) bool {
		fact, err := decodeFact(k, v)
		if err != nil {
			unreadable[string(k)] = s.isNamedIn(v)
			return false
		}
		return s.concernsFact(fact) || slices.ContainsFunc(fact.Former, s.wroteFormer)
	}, func(t *tx, k, v []byte) {
		fact, err := decodeFact(k, v)
		switch {
		case err != nil: // since it was read
		case s.concernsFact(fact):
			t.facts().dropFact(fact)
		default:
			rest := fact
			rest.Former = slices.DeleteFunc(slices.Clone(fact.Former), s.wroteFormer)
			t.facts().replaceFact(fact, rest)
		}
	})
	of := func(k, _ []byte) bool { return unreadable[string(k[max(0, len(k)-8):])] }
	// The fact comes last: it shows to whom the rest belongs.
	for _, bucket := range []string{bucketWords, bucketVectors, bucketFacts} {
		if err == nil && len(unreadable) > 0 {
			err = deleteWhere(s.ctx, s.db, bucket, nil, nil, of)
		}
	}
	return err
}

// deleteDocuments deletes the index of documents, if everything is forgotten.
func (s *subject) deleteDocuments() error {
	if !s.path.IsZero() {
		return nil
	}
	var errs []error
	for _, bucket := range []string{bucketPassageWords, bucketPassages, bucketDocuments} {
		errs = append(errs, deleteWhere(s.ctx, s.db, bucket, nil, nil, nil))
	}
	from, to := subtree(core.MustPath(passageRoot))
	for _, bucket := range []string{bucketVectors, bucketSketches} {
		errs = append(errs, deleteWhere(s.ctx, s.db, bucket, from, to, nil))
	}
	return errors.Join(errs...)
}

func (s *subject) deleteItems() error {
	return deleteWhere(s.ctx, s.db, bucketPlugins, nil, nil, func(k, v []byte) bool {
		_, rest, _ := bytes.Cut(k, []byte{terminator})
		path, key, _ := cutOrigin(rest)
		return s.covers(path) || s.person != "" && string(key) == s.path.String()
	})
}

func (s *subject) deleteStates() error {
	return deleteWhere(s.ctx, s.db, bucketStates, nil, nil, func(k, _ []byte) bool {
		path, _ := parsePlace(k)
		return s.covers(path) || s.spokeIn[path]
	})
}

// deleteUsage deletes what the person used. What their places cost is added to the interface
// instead: the money is spent, and budgets must not have room again.
func (s *subject) deleteUsage() error {
	return sweep(s.ctx, s.db, bucketUsage, nil, nil, func(k, v []byte) bool {
		u, _ := readUse(k, v)
		return s.covers(u.Person)
	}, func(t *tx, k, v []byte) {
		t.bucket(bucketUsage).Delete(k)
		u, _ := readUse(k, v)
		place := interfaceOf(u.Person)
		if !u.Person.IsPerson() && !s.covers(place) {
			u.Person = place
			t.addUse(u)
		}
	})
}

// mute mutes the unfinished turns that answer the person, also under the paths with which
// they began if their places moved since. Writers wait for it: only places with a journal are
// searched.
func (s *subject) mute(t *tx) {
	former := make(map[core.Path][]place)
	s.muted = nil
	for _, from := range s.db.epochs.moved {
		p := t.resolve(from)
		former[p.path] = append(former[p.path], p)
	}
	for _, path := range t.placesIn(bucketJournal, core.Path{}) {
		if !path.Within(s.within) {
			continue
		}
		place := placeKey(path)
		h, _ := t.readHead(place)
		s.heads[path] = h
		for turn, records := range t.turns(seqKey(place, h.answered+1), prefixEnd(place)) {
			if s.person != "" && !s.isNamed(records) && !s.isAnswered(t, records) {
				continue
			}
			s.muteTurn(turn, former[path])
		}
	}
}

// muteTurn mutes a turn, also under the ids with which it began at the former paths of its place.
func (s *subject) muteTurn(turn core.TurnID, former []place) {
	names := []core.TurnID{turn}
	for _, p := range former {
		if turn.Seq > p.shift {
			names = append(names, core.TurnID{Path: p.from, Seq: turn.Seq - p.shift})
		}
	}
	e := &s.db.epochs
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, name := range names {
		e.muted[name] = muted{turn, e.now}
		s.muted = append(s.muted, sharedMute{name.Path, name.Seq, turn.Path, turn.Seq})
	}
}

// deleteJournals deletes the journals of the turns that answer or name the person, and what the
// turns sent that answer them. Only entries of older versions need that: newer ones name the
// person that they answer.
func (s *subject) deleteJournals() error {
	return changeAll(s.ctx, s.db, slices.Collect(maps.Keys(s.turns)), func(t *tx, turn core.TurnID) {
		for _, r := range t.records(turn) {
			p, _, seq, known := t.sentBy(r)
			if s.turns[turn] && known {
				t.remove(p.key, seq)
			}
		}
		t.deleteBelow(bucketJournal, turnKey(turn))
	})
}

// sentBy returns the message that a part of a turn sent, if it is known.
func (t *tx) sentBy(r record) (p place, sent core.Sent, seq uint64, known bool) {
	w, _ := decodeRecord(r.value)
	if r.key.Part == 0 || json.Unmarshal(w.Data, &sent) != nil {
		return place{}, core.Sent{}, 0, false
	}
	p = t.resolve(sent.Path)
	seq, known = t.findID(p, sent.ID)
	return p, sent, seq, known
}
