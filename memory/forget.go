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
	s := newSubject(withJobName(ctx, "forget %s", path), db, path)
	defer func() { s.db.epochs.end(s.inProgress) }()
	if err := s.begin(); err != nil {
		return fmt.Errorf("forget %s: %w", path, err)
	}
	steps := []func() error{
		// The log comes late, and what shows that a place was private comes last: if Forget is
		// interrupted, the next one finds the places by it.
		s.journals, s.facts, s.plugins, s.states, s.usage, s.entries, s.aliases, s.lastEntries, s.files,
	}
	for _, step := range steps {
		if err := step(); err != nil {
			return fmt.Errorf("forget %s: %w", path, err)
		}
	}
	return nil
}

// files deletes what else may hold the person: copies that upgrades left, and names of jobs.
func (s *subject) files() error {
	suffixes := []string{stuckSuffix}
	for version := 1; version < schema; version++ {
		suffixes = append(suffixes, versionSuffix+strconv.Itoa(version))
	}
	var errs []error
	for _, suffix := range suffixes {
		err := os.Remove(s.db.file.name + suffix)
		if !errors.Is(err, fs.ErrNotExist) {
			s.db.log.Info("a file is deleted, since somebody is forgotten", "file", s.db.file.name+suffix, "err", err)
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// begin begins a new epoch, takes a snapshot, and mutes the running turns. The places that
// are deleted as a whole are searched before and after: the search is long, and a turn may
// end meanwhile.
func (s *subject) begin() error {
	if err := s.find(); err != nil {
		return err
	}
	err := s.db.update(s.ctx, func(t *tx) {
		s.markInProgress()
		t.finish() // writes of others in this transaction count
		s.lookUp(t)
		t.bucket(bucketMeta).Put([]byte(metaTraces), []byte("1"))
		t.forgotten().addSalt()
		s.recordRequest(t)
		s.mute(t)
	})
	if err != nil {
		return err
	}
	err = s.findWhole()
	s.markInProgress()
	return errors.Join(err, s.findSources())
}

// markInProgress begins the epoch in which the person and these places are forgotten, so
// that nothing of them comes back. It is called again when more places are known.
func (s *subject) markInProgress() {
	e := &s.db.epochs
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, path := range append(slices.Collect(maps.Keys(s.whole)), s.path) {
		if !s.inProgress[path] {
			s.inProgress[path] = true
			e.forgottenIn[path] = e.now
			e.inProgress[path]++
		}
	}
}

// findSources finds the paths that lead to what is deleted. A place that moved with one
// above it has no alias of its own, but ids are stored under its path.
func (s *subject) findSources() error {
	return s.db.view(s.ctx, func(v *view) error {
		s.ids = v.idSources()
		for _, from := range append(v.placesIn(bucketIDs), v.placesIn(bucketAliases)...) {
			if s.holds(v.resolve(from).path) {
				s.sources[from] = true
			}
		}
		return nil
	})
}

// entries deletes the person's entries, but for those that show that a place was private, and
// removes the person from the entries of others.
func (s *subject) entries() error {
	from, to := subtree(s.within)
	err := sweep(s.ctx, s.db, bucketLog, from, to, func(k, v []byte) bool {
		l, ok, _ := s.read(k, v)
		return ok && s.proof[l.Message.Path] != l.Message.Seq && (s.concerns(&l) || s.clean(&l))
	}, func(t *tx, k, v []byte) {
		l, _, _ := s.read(k, v)
		if s.concerns(&l) {
			s.removeEntry(t, &l)
		} else {
			s.clean(&l)
			t.rewrite(&l)
		}
	})
	if err != nil {
		return err
	}
	return correctHeadTimes(s.ctx, s.db, maps.Keys(s.heads))
}

// removeEntry deletes an entry with its ids.
func (s *subject) removeEntry(t *tx, l *storedEntry) {
	for _, p := range s.ids[l.Message.Path] {
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
func (s *subject) clean(l *storedEntry) bool {
	_, reacted := l.reactors[s.person]
	if reacted {
		unreact(l, s.person, "")
	}
	quote := l.Message.ReplyTo
	quoted := quote != nil && (quote.From.ID == s.person || s.replies[l.Message.Path][quote.ID])
	if quoted {
		l.Message.ReplyTo = &core.Quote{ID: l.Message.ReplyTo.ID}
	}
	passedOn := dropForeign(&l.Message, func(o core.Foreign) bool { return o.From.ID == s.person })
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
func (s *subject) lastEntries() error {
	longest := func(a, b core.Path) int { return cmp.Compare(len(b.String()), len(a.String())) }
	places := slices.SortedFunc(maps.Keys(s.whole), longest)
	return changeAll(s.ctx, s.db, places, func(t *tx, path core.Path) {
		p := place{path: path, key: placeKey(path)}
		if l, ok := t.entry(p, s.proof[path]); ok {
			s.removeEntry(t, &l)
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
func (s *subject) aliases() error {
	for from := range s.sources {
		start, all := placeKey(from), func([]byte, []byte) bool { return true }
		err := sweep(s.ctx, s.db, bucketIDs, start, after(start), all, func(t *tx, k, v []byte) {
			if !t.hasEntry(k, v) {
				t.forgotten().replaceID(k)
			}
		})
		if err != nil {
			return err
		}
	}
	return s.db.update(s.ctx, func(t *tx) {
		moved := t.placesIn(bucketAliases)
		gone := slices.DeleteFunc(slices.Clone(moved), func(from core.Path) bool { return !s.sources[from] })
		if len(gone) == 0 {
			return
		}
		before := make(map[core.Path]place)
		for _, from := range append(t.placesIn(bucketIDs), moved...) {
			if !s.sources[from] {
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
func (s *subject) facts() error {
	unreadable := make(map[string]bool)
	err := sweep(s.ctx, s.db, bucketFacts, nil, nil, func(k, v []byte) bool {
		fact, err := decodeFact(k, v)
		if err != nil {
			return s.path.IsZero() || namesPath(v, s.path)
		}
		return s.concernsFact(fact) || slices.ContainsFunc(fact.Former, s.saidBefore)
	}, func(t *tx, k, v []byte) {
		fact, err := decodeFact(k, v)
		switch {
		case err != nil:
			unreadable[string(k)] = true
			t.bucket(bucketFacts).Delete(k)
		case s.concernsFact(fact):
			t.facts().dropFact(fact)
		default:
			rest := fact
			rest.Former = slices.DeleteFunc(slices.Clone(fact.Former), s.saidBefore)
			t.facts().replaceFact(fact, rest)
		}
	})
	if err != nil || len(unreadable) == 0 {
		return err
	}
	of := func(k, _ []byte) bool { return unreadable[string(k[max(0, len(k)-8):])] }
	err = deleteWhere(s.ctx, s.db, bucketWords, nil, nil, of)
	return errors.Join(err, deleteWhere(s.ctx, s.db, bucketVectors, nil, nil, of))
}

func (s *subject) plugins() error {
	return deleteWhere(s.ctx, s.db, bucketPlugins, nil, nil, func(k, v []byte) bool {
		_, rest, _ := bytes.Cut(k, []byte{ending})
		path, key, _ := cutItem(rest)
		return s.holds(path) || s.person != "" && key == s.path.String()
	})
}

func (s *subject) states() error {
	return deleteWhere(s.ctx, s.db, bucketStates, nil, nil, func(k, _ []byte) bool {
		path, _ := placeOf(k)
		return s.holds(path) || s.spokeIn[path]
	})
}

// usage deletes what the person used. What their places cost is added to the interface
// instead: the money is spent, and budgets must not have room again.
func (s *subject) usage() error {
	return sweep(s.ctx, s.db, bucketUsage, nil, nil, func(k, v []byte) bool {
		u, _ := readUse(k, v)
		return s.holds(u.Person)
	}, func(t *tx, k, v []byte) {
		t.bucket(bucketUsage).Delete(k)
		u, _ := readUse(k, v)
		place := interfaceOf(u.Person)
		if !u.Person.IsPerson() && !s.holds(place) {
			u.Person = place
			t.addUse(u)
		}
	})
}

// mute mutes the unfinished turns that answer the person. Only places with a journal are
// searched.
func (s *subject) mute(t *tx) {
	for _, path := range t.placesIn(bucketJournal) {
		if !path.Within(s.within) {
			continue
		}
		place := placeKey(path)
		from := seqKey(place, s.heads[path].answered+1)
		for turn, records := range t.turns(from, after(place)) {
			if !s.isNamed(records) && !s.isAnswered(t, records) {
				continue
			}
			names := []core.TurnID{turn} // from before its place moved, too
			for _, from := range t.placesIn(bucketAliases) {
				p := t.resolve(from)
				if p.path == path && turn.Seq > p.shift {
					names = append(names, core.TurnID{Path: from, Seq: turn.Seq - p.shift})
				}
			}
			s.db.epochs.mute(turn, names)
		}
	}
}

// journals deletes the journals of the turns that answer or name the person.
func (s *subject) journals() error {
	answers := make(map[core.TurnID]bool)
	err := s.db.view(s.ctx, func(v *view) error {
		for turn, records := range v.turns(subtree(s.within)) {
			answered := s.isAnswered(&v.tx, records)
			if answered || s.isNamed(records) {
				answers[turn] = answered
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	return changeAll(s.ctx, s.db, slices.Collect(maps.Keys(answers)), func(t *tx, turn core.TurnID) {
		if answers[turn] {
			for _, r := range t.records(turn) {
				s.removeSent(t, r)
			}
		}
		t.deleteBelow(bucketJournal, turnKey(turn))
	})
}

// removeSent deletes the message that a part of a turn sent to the person. Only entries of
// older versions need it: newer ones name the person that they answer.
func (s *subject) removeSent(t *tx, r record) {
	var sent core.Sent
	w, err := decodeRecord(r.value)
	if err != nil || r.key.Part == 0 || json.Unmarshal(w.Data, &sent) != nil {
		return
	}
	p := t.resolve(sent.Path)
	seq, known := t.findID(p, sent.ID)
	if known {
		s.addReply(p.path, sent.ID)
		t.remove(p.key, seq)
	}
}
