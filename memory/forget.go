package memory

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"synthbot/core"
)

// Forget deletes all that is stored about a person, a place and all below it, or, for the zero Path, everybody. None of
// it is readable when Forget returns, and the next Compact leaves nothing in the file but keyed hashes of message ids,
// so that a platform that delivers a message again does not bring it back. Ids of group messages that retention deleted
// before stay for 60 days: their authors are not known any more. Writes that began before Forget and concern the person
// are left out; later ones are stored. If the process ends before Forget does, the next Open continues.
//
// For a person, it deletes: their messages and reactions; what the bot answered them, also together with others;
// quotes of either; the journal of the turns that answered them; facts by them or about them; what plugins store
// under their path; the states of the conversations that they took part in; their usage; and their private places
// with all below. Messages of others stay, even if they mention the person. What plugins store about them elsewhere
// is up to the plugins (core.DataKeeper).
func (db *DB) Forget(ctx context.Context, path core.Path) error {
	if err := db.epochs.takeTurn(ctx); err != nil {
		return err
	}
	defer db.epochs.endTurn()
	s := newForgetting(ctx, db, path)
	defer s.end()
	if err := inOrder(s.find, s.begin, s.deleteAll); err != nil {
		return fmt.Errorf("forget %s: %w", path, err)
	}
	return nil
}

// inOrder runs steps until one fails, and returns its error.
func inOrder(steps ...func() error) error {
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// continueForgets prepares the Forgets that ended processes did not finish, so that nothing that is stored from
// now on belongs to them. The function that it returns finishes them.
func (db *DB) continueForgets(ctx context.Context) (erase func()) {
	var all []*forgetting
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
			name, _, _ := bytes.Cut(key[len(metaForget):], []byte(" "))
			bad := path.UnmarshalText(name)
			if bad != nil {
				err = errors.Join(err, bad)
				continue
			}
			s := newForgetting(ctx, db, path)
			s.continued, s.planKey = true, bytes.Clone(key)
			s.loadPlan(v)
			isRunning := slices.ContainsFunc(workers, func(w Worker) bool { return w.ID == s.Worker })
			if !isRunning {
				all = append(all, s)
			}
		}
		return err
	})
	all = slices.DeleteFunc(all, func(s *forgetting) bool {
		failed := s.begin()
		if failed != nil {
			s.end()
		}
		err = errors.Join(err, failed)
		return failed != nil
	})
	return func() {
		for _, s := range all {
			err = errors.Join(err, s.deleteInTurn())
			s.end()
		}
		if err != nil && ctx.Err() == nil {
			db.log.Error("somebody is not forgotten yet; the next start tries again", "err", err)
		}
	}
}

type forgetting struct {
	*subject
	inProgress []core.Path           // the paths that are marked in epochs
	ids        map[core.Path][]place // the paths under which ids are stored, by the place that they lead to
	muted      []sharedMute          // the turns that are muted
	turns      map[core.TurnID]bool  // turns whose journals are deleted; true: they answered the person
	continued  bool                  // a process that has ended began it
	over       bool                  // all of it is deleted, and other processes know that
}

func newForgetting(ctx context.Context, db *DB, path core.Path) *forgetting {
	return &forgetting{
		subject: newSubject(withJobName(ctx, "forget %s", path), db, path), turns: make(map[core.TurnID]bool),
	}
}

// plan is what a Forget found before it deleted anything. It is stored: after a crash, what is left does not
// show to whom it belonged.
type plan struct {
	Whole   map[core.Path]uint64          // places that belong to the subject as a whole, up to that number
	Replies map[core.Path]map[string]bool // ids of what the bot answered the person, by place
	Sources map[core.Path]bool            // paths of ids and aliases that lead to what is deleted
	Worker  int64                         `json:",omitempty"` // the process that forgets them; 0: only one process is possible
}

// metaForget and the path are the key, in the meta bucket, of the plan of a Forget in progress. The name of its process
// follows if there can be several.
const metaForget = "forget "

func planKey(db *DB, path core.Path) []byte {
	key := metaForget + path.String()
	if Shared(db) != nil {
		key += " " + db.epochs.process
	}
	return []byte(key)
}

// loadPlan loads the plan of an interrupted Forget, if there is one. If it cannot be read, Forget starts over.
func (s *subject) loadPlan(v *view) {
	value := v.bucket(bucketMeta).Get(s.planKey)
	if value == nil {
		return
	}
	if err := json.Unmarshal(value, &s.plan); err != nil {
		v.db.logUnreadable(fmt.Errorf("plan to forget %s: %w", s.path, err))
	}
}

func (s *forgetting) storePlan(t *tx) { t.bucket(bucketMeta).Put(s.planKey, core.JSON(s.plan)) }

// announceBegun stores the plan, for a process that continues, and tells others whom they must not store any more.
func (s *forgetting) announceBegun(t *tx, begun []core.Path, muted []sharedMute) {
	if Shared(s.db) != nil {
		s.storePlan(t)
		announce(t, sharedEpoch{Plan: string(s.planKey), Begun: begun, Muted: muted})
	}
}

func (s *forgetting) announceOver(t *tx) {
	announce(t, sharedEpoch{Plan: string(s.planKey), Over: true})
}

// deleteInTurn is deleteAll for a Forget of an ended process.
func (s *forgetting) deleteInTurn() error {
	if err := s.db.epochs.takeTurn(s.ctx); err != nil {
		return err
	}
	defer s.db.epochs.endTurn()
	return s.deleteAll()
}

func (s *forgetting) deleteAll() error {
	storePlan := func() error { return s.db.update(s.ctx, s.storePlan) }
	dropPlan := func() error {
		err := s.db.update(s.ctx, func(t *tx) {
			t.bucket(bucketMeta).Delete(s.planKey)
			s.announceOver(t)
		})
		s.over = err == nil
		return err
	}
	return inOrder(
		// The log comes late: journals and states that belong to a person are found by it.
		s.findAll, storePlan, s.deleteJournals, s.deleteFacts, s.deleteDocuments, s.deleteItems, s.deleteStates,
		s.deleteUsage, s.deleteEntries, s.deleteAliases, s.deleteHeads, s.deleteFiles, dropPlan,
	)
}

// begin marks what was found as being forgotten, in all processes, which store nothing of it from then on.
func (s *forgetting) begin() error {
	s.Worker = 0 // the plan may come from a database of several processes
	if Shared(s.db) != nil {
		s.Worker = Shared(s.db).Self()
	}
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
func (s *forgetting) markInProgress() (begun []core.Path) {
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

// recordRequest stores when the person asked to be forgotten, by the platform's clock: their last message is the
// request, if it is new. The request for everybody has the time of this machine.
func (s *forgetting) recordRequest(t *tx) {
	if s.continued || s.person == "" && !s.path.IsZero() {
		return
	}
	at := t.now.Add(-s.newest.Ahead)
	if t.now.Sub(s.newest.SentAt()).Abs() < requestAge {
		at = s.newest.Time
	}
	second := binary.AppendUvarint(nil, uint64(max(at.Unix(), 0)))
	t.bucket(bucketGone).Put(t.forgotten().requestKey(s.path), second)
	if s.person != "" && !t.forgotten().isOlder(s.within, at) {
		t.bucket(bucketGone).Put(t.forgotten().requestKey(s.within), second)
	}
}

// mute mutes the unfinished turns that answer the person, also under the paths with which they began if their places
// moved since. Writers wait for it, so it goes through the journal once.
func (s *forgetting) mute(t *tx) {
	former := make(map[core.Path][]place)
	s.muted = nil
	for _, from := range s.db.epochs.moved {
		p := t.resolve(from)
		former[p.path] = append(former[p.path], p)
	}
	var path core.Path
	var h head
	for turn, records := range t.turns(subtree(s.within)) {
		if turn.Path != path {
			path = turn.Path
			h, _ = t.readHead(placeKey(path))
			s.heads[path] = h
		}
		if turn.Seq > h.answered && (s.person == "" || s.isNamed(records) || s.isAnswered(t, records)) {
			s.muteTurn(turn, former[path])
		}
	}
}

// muteTurn mutes a turn, also under the ids with which it began at the former paths of its place.
func (s *forgetting) muteTurn(turn core.TurnID, former []place) {
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

// findAll searches again, for what turns have added meanwhile, and finds the ids, aliases and turns of the subject.
func (s *forgetting) findAll() error {
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
		// A place that moved with one above it has no alias of its own, but ids are stored under its path.
		for _, from := range append(v.placesIn(bucketIDs, core.Path{}), v.placesIn(bucketAliases, core.Path{})...) {
			if s.covers(v.resolve(from).path) {
				s.Sources[from] = true
			}
		}
		s.findTurns(v)
	})
}

func (s *forgetting) findTurns(v *view) {
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

// end ends the epoch in which the subject is forgotten.
func (s *forgetting) end() {
	if len(s.inProgress) == 0 {
		return
	}
	if !s.over && Shared(s.db) != nil { // Forget has failed
		if err := s.db.update(context.WithoutCancel(s.ctx), s.announceOver); err != nil {
			s.db.log.Error("other processes still treat somebody as being forgotten", "path", s.path, "err", err)
		}
	}
	e := &s.db.epochs
	e.mu.Lock()
	defer e.mu.Unlock()
	e.end(s.inProgress)
}
