package memory

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strconv"

	"synthbot/core"
)

// These are the steps of a Forget that delete. Each finds what belongs to the subject in one bucket, and deletes it
// in short transactions.

// deleteJournals deletes the journals of the turns that answer or name the person, and what the turns sent that answer
// them. Only entries of older versions need that: newer ones name the person that they answer.
func (s *forgetting) deleteJournals() error {
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

func (t *tx) sentBy(r record) (p place, sent core.Sent, seq uint64, known bool) {
	w, _ := decodeRecord(r.value)
	if r.key.Part == 0 || json.Unmarshal(w.Data, &sent) != nil {
		return place{}, core.Sent{}, 0, false
	}
	p = t.resolve(sent.Path)
	seq, known = t.findID(p, sent.ID)
	return p, sent, seq, known
}

// deleteFacts deletes facts that concern the subject. Of those that others have replaced since, it deletes only the
// person's former texts.
func (s *forgetting) deleteFacts() error {
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
func (s *forgetting) deleteDocuments() error {
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

func (s *forgetting) deleteItems() error {
	return deleteWhere(s.ctx, s.db, bucketPlugins, nil, nil, func(k, v []byte) bool {
		_, rest, _ := bytes.Cut(k, []byte{terminator})
		path, key, _ := cutOrigin(rest)
		return s.coversItem(path, string(key))
	})
}

func (s *forgetting) deleteStates() error {
	return deleteWhere(s.ctx, s.db, bucketStates, nil, nil, func(k, _ []byte) bool {
		path, _ := parsePlace(k)
		return s.covers(path) || s.spokeIn[path]
	})
}

// deleteUsage adds what the person's places cost to the interface: the money is spent, and budgets stay used.
func (s *forgetting) deleteUsage() error {
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

// deleteEntries deletes the person's entries, and removes the person from the entries of others.
func (s *forgetting) deleteEntries() error {
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
func (s *forgetting) redact(l *storedEntry) bool {
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

// deleteAliases deletes the aliases that led to the deleted places, and the ids under them. Other
// paths that led through one of them to a place that stays get an alias of their own.
func (s *forgetting) deleteAliases() error {
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

func (s *forgetting) usesDeletedAlias(v *view, path core.Path) bool {
	for range maxHops {
		a, moved := v.followAlias(path)
		if !moved || s.Sources[a.from] {
			return moved
		}
		path = a.To
	}
	return false
}

// deleteHeads deletes the heads of whole places. Their numbers are not used again: a turn may still run there,
// and platforms know messages by their turn's number.
func (s *forgetting) deleteHeads() error {
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
	*h = head{}
	raiseBarrier(t) // until they know the floor
	t.bucket(bucketMeta).Put([]byte(metaFloor), strconv.AppendUint(nil, t.db.epochs.floor.Load(), 10))
}

// deleteFiles deletes files that may contain the person: backups of upgrades, and the names of blocked jobs.
func (s *forgetting) deleteFiles() error {
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
