package memory

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"slices"

	"synthbot/core"
)

// subject is what an export or Forget covers: a person, a place and all below it, or, with the zero Path, everybody.
type subject struct {
	db     *DB
	ctx    context.Context
	path   core.Path
	person string             // the person's id; empty for a place
	within core.Path          // the places to search
	heads  map[core.Path]head // of these places, when they were last looked up
	plan
	planKey []byte             // as of the first look-up: a place may move later
	spokeIn map[core.Path]bool // places where the person spoke
	newest  core.Message       // the person's last message
}

func newSubject(ctx context.Context, db *DB, path core.Path) *subject {
	s := &subject{db: db, ctx: ctx, path: path, planKey: planKey(db, path), within: path,
		heads: make(map[core.Path]head), spokeIn: make(map[core.Path]bool)}
	s.plan = plan{
		Whole: make(map[core.Path]uint64), Replies: make(map[core.Path]map[string]bool),
		Sources: make(map[core.Path]bool),
	}
	if path.IsPerson() {
		s.person, s.within = path.Elements()[2], interfaceOf(path)
	}
	return s
}

// loadHeads loads the heads of the places to search. Later entries do not belong to the subject.
func (s *subject) loadHeads(v *view) {
	if s.person == "" {
		s.path = v.resolve(s.path).path
		s.within = s.path
	}
	s.heads = maps.Collect(v.headsBelow(s.within))
}

// find finds what belongs to the subject, beginning with the plan of an interrupted Forget.
func (s *subject) find() error {
	err := s.db.read(s.ctx, func(v *view) {
		s.loadHeads(v)
		s.planKey = planKey(s.db, s.path) // where a place is now
		s.loadPlan(v)
	})
	if err != nil {
		return err
	}
	return s.findWhole()
}

// findWhole finds the places that belong to the subject as a whole: for a person, those where they spoke in private. It
// also finds the other places where they spoke, and what the bot answered them.
func (s *subject) findWhole() error {
	if s.person == "" {
		for path, h := range s.heads {
			s.Whole[path] = h.last
		}
		return nil
	}
	from, to := subtree(s.within)
	err := sweep(s.ctx, s.db, bucketLog, from, to, func(k, v []byte) bool {
		l, ok, err := s.readEntry(k, v)
		if !ok || err != nil || !s.concerns(&l) {
			return false
		}
		path := l.Message.Path
		if l.Message.Author.ID != s.person {
			s.addReply(path, l.Message.ID)
			return false
		}
		s.spokeIn[path] = true
		if l.Message.Time.After(s.newest.Time) {
			s.newest = l.Message
		}
		if l.Message.Private {
			s.Whole[path] = s.heads[path].last
		}
		return false
	}, nil)
	for path, h := range s.heads { // so do the places below them
		for above := path.Parent(); !above.IsZero(); above = above.Parent() {
			if _, ok := s.Whole[above]; ok {
				s.Whole[path] = h.last
			}
		}
	}
	return err
}

func (s *subject) addReply(place core.Path, id string) {
	if s.Replies[place] == nil {
		s.Replies[place] = make(map[string]bool)
	}
	s.Replies[place][id] = true
}

// readEntry decodes an entry if it is in a place that belongs to the subject, names the person, or may quote a
// reply to them; ok is false for others. If an entry of such a place cannot be read, ok is true, and only its
// path and number are set.
func (s *subject) readEntry(k, v []byte) (l storedEntry, ok bool, err error) {
	var author codec // the person's id may be stored as a text, or as the number of an author
	authorID(&author, &s.person)
	named := bytes.Contains(v, []byte(s.person)) || bytes.Contains(v, author.out)
	if !named && len(s.Replies)+len(s.Whole) == 0 {
		return storedEntry{}, false, nil
	}
	path, seq, err := parseEntryKey(k)
	_, whole := s.Whole[path]
	if err != nil || seq > s.heads[path].last || !named && !whole && s.Replies[path] == nil {
		return storedEntry{}, false, err
	}
	l, err = decodeEntry(v, path, seq)
	if err != nil {
		l.Message.Path, l.Message.Seq = path, seq
	}
	return l, err == nil || whole, err
}

// concerns reports whether an entry is the person's, answers them, or is in a place that
// belongs to the subject as a whole.
func (s *subject) concerns(l *storedEntry) bool {
	return l.Message.Seq <= s.Whole[l.Message.Path] || l.Message.Author.ID == s.person ||
		slices.Contains(l.answers, s.person)
}

func (s *subject) covers(path core.Path) bool {
	for above := path; !above.IsZero(); above = above.Parent() {
		_, whole := s.Whole[above]
		if whole || s.Sources[above] {
			return true
		}
	}
	return path.Within(s.path)
}

func (s *subject) coversItem(path core.Path, key string) bool {
	return s.covers(path) || s.person != "" && key == s.path.String()
}

func (s *subject) concernsFact(fact core.Fact) bool {
	if s.person == "" {
		return fact.Origin.Within(s.path) || fact.By.Within(s.path)
	}
	_, private := s.Whole[fact.Origin]
	return private || fact.By == s.path || slices.Contains(fact.About, s.path)
}

func (s *subject) wroteFormer(old core.Former) bool { return old.By == s.path }

func (s *subject) isNamed(records []record) bool {
	return s.person != "" && slices.ContainsFunc(records, func(r record) bool {
		return bytes.Contains(r.value, quoted(s.person))
	})
}

// isAnswered reports whether a turn answers the person, or is in a place that belongs to the subject as a whole.
func (s *subject) isAnswered(t *tx, records []record) bool {
	turn := records[0].key.Turn
	last, whole := s.Whole[turn.Path]
	if whole && turn.Seq <= last {
		return true
	}
	if s.person == "" {
		return false
	}
	w, _ := decodeRecord(records[0].value)
	var o core.TurnRecord
	_ = json.Unmarshal(w.Data, &o) // an unreadable one answers nobody
	if slices.Contains(o.Askers, s.person) {
		return true
	}
	first, end := turnKey(turn), seqKey(placeKey(turn.Path), o.Last+w.Shift+1)
	for k, v := range t.bucket(bucketLog).pairs(first, end) {
		l, ok, _ := s.readEntry(k, v)
		answered := l.Due || l.Message.Seq == turn.Seq // a settled entry is no longer due
		if ok && answered && (l.Message.Author.ID == s.person || slices.Contains(l.answers, s.person)) {
			return true
		}
	}
	return false
}

// isNamedIn reports whether a JSON value that cannot be decoded names the subject.
func (s *subject) isNamedIn(value []byte) bool {
	for path := range s.Whole {
		if namesPath(value, path) {
			return true
		}
	}
	return s.path.IsZero() || namesPath(value, s.path)
}
