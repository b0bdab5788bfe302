package memory

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"synthbot/core"
)

// Forget takes away all that is kept of a person, of a place and all below it,
// or, for the zero Path, of everybody. Nothing of it is readable when Forget
// returns, and nothing is left in the file after the next Compact but keyed
// hashes of message ids: what a platform delivers again must not bring the
// person back. Ids of messages in groups that retention took before stay as they are
// for 60 days: nothing says any more whose they were. What is written while Forget runs,
// of what was said before, is left out; what is said afterwards is kept.
//
// Of a person go: what they said and put on messages; what the bot answered them, also
// as one of several; quotes of either; the journal of the turns that answered them;
// facts by them or about them, with their vectors; what plugins keep under their path;
// what the conversations are about that they took part in; what they used; and, as a
// whole, their private places with all below. What others said stays, even if it
// mentions them. What a plugin keeps of them elsewhere is its own business
// (core.DataKeeper).
func (db *DB) Forget(ctx context.Context, path core.Path) error {
	f := &forgetting{db: db, ctx: working(ctx, "forget %s", path), path: path}
	defer func() { f.db.epochs.end(f.going) }()
	if err := f.begin(); err != nil {
		return fmt.Errorf("forget %s: %w", path, err)
	}
	steps := []func() error{
		f.copies, f.journals, f.logs, f.times, f.placesWhole, f.aliases, f.facts, f.plugins, f.states, f.usage,
	}
	for _, step := range steps {
		if err := step(); err != nil {
			return fmt.Errorf("forget %s: %w", path, err)
		}
	}
	return db.blocked.drop()
}

// copies takes away what an upgrade left beside the file, which holds the forgotten
// person, too.
func (f *forgetting) copies() error {
	dir, name := filepath.Split(f.db.file.name)
	files, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, file := range files {
		if strings.HasPrefix(file.Name(), name+versionSuffix) {
			f.db.log.Info("the copy from before an upgrade goes, since somebody is forgotten", "file", file.Name())
			err = errors.Join(err, os.Remove(filepath.Join(dir, file.Name())))
		}
	}
	return err
}

// forgetting is one Forget on its way.
type forgetting struct {
	db      *DB
	ctx     context.Context
	path    core.Path
	going   map[core.Path]bool    // what the epochs know to be going
	person  string                // their id; empty for a place
	within  core.Path             // where to look
	heads   map[core.Path]head    // as it was when it began
	whole   map[core.Path]uint64  // places that go as a whole, up to that number
	ids     map[core.Path][]place // the paths that ids are stored under, by where they lead
	sources map[core.Path]bool    // those of them, and of aliases, that lead to what goes
	spoke   map[core.Path]bool    // places where the person spoke
	newest  core.Message          // the last that the person said
	// replies holds, by place, the ids of what the bot answered the person.
	replies map[core.Path]map[string]bool
}

// begin raises the epoch, notes what is there at that moment, and mutes the turns
// that run. The places that go as a whole are looked for before and after: the
// search is long, and a turn may end while it goes on.
func (f *forgetting) begin() error {
	f.within, f.whole = f.path, make(map[core.Path]uint64)
	f.spoke, f.replies = make(map[core.Path]bool), make(map[core.Path]map[string]bool)
	if f.path.IsPerson() {
		f.person, f.within = f.path.Elements()[2], interfaceOf(f.path)
	}
	snapshot := func(t *tx) {
		if f.person == "" {
			f.path = t.resolve(f.path).path
			f.within = f.path
		}
		f.heads = t.headsBelow(f.within)
	}
	if err := f.db.view(f.ctx, func(v *view) error { snapshot(&v.tx); return nil }); err != nil {
		return err
	}
	if err := f.findWhole(); err != nil {
		return err
	}
	err := f.db.write(f.ctx, &job{run: func(t *tx) error {
		f.begun()
		t.finish() // what others wrote in this very transaction counts
		snapshot(t)
		t.bucket(bucketMeta).Put([]byte(metaUntidy), []byte("1"))
		t.addSalt()
		f.date(t)
		f.mute(t)
		return nil
	}})
	if err != nil {
		return err
	}
	err = f.findWhole()
	f.begun()
	return errors.Join(err, f.findSources())
}

// begun begins the epoch in which the person is forgotten, with the places that go as a
// whole: nothing that a turn makes of what was said there comes back. It is called
// again when more of them are known.
func (f *forgetting) begun() {
	if f.going == nil {
		f.going = make(map[core.Path]bool)
		f.db.epochs.next()
	}
	going := slices.Collect(maps.Keys(f.whole))
	for _, path := range append(going, f.path) {
		if !f.going[path] {
			f.going[path] = true
			f.db.epochs.begin(path)
		}
	}
}

// findWhole finds the places that go as a whole.
func (f *forgetting) findWhole() error {
	if f.person != "" {
		return f.findPrivate()
	}
	for path, h := range f.heads {
		f.whole[path] = h.last
	}
	return nil
}

// findSources finds the paths that lead, or led, to what goes. A place that moved
// with one above it has no alias of its own, but ids are stored under its path.
func (f *forgetting) findSources() error {
	f.sources = make(map[core.Path]bool)
	return f.db.view(f.ctx, func(v *view) error {
		f.ids = v.idSources()
		for _, from := range append(v.placesIn(bucketIDs), v.placesIn(bucketAliases)...) {
			if f.goes(v.resolve(from).path) {
				f.sources[from] = true
			}
		}
		return nil
	})
}

// findPrivate finds the places where the person spoke, those where they spoke with the
// bot alone, and what the bot answered them.
func (f *forgetting) findPrivate() error {
	from, to := subtree(f.within)
	err := sweep(f.ctx, f.db, bucketLog, from, to, func(k, v []byte) bool {
		l, ok := f.read(k, v)
		if !ok || !f.concerns(&l) {
			return false
		}
		path := l.Message.Path
		if l.Message.Author.ID == f.person {
			f.spoke[path] = true
			if l.Message.Time.After(f.newest.Time) {
				f.newest = l.Message
			}
		} else {
			f.addReply(path, l.Message.ID)
		}
		if l.Message.Private && l.Message.Author.ID == f.person {
			f.whole[path] = f.heads[path].last
		}
		return false
	}, nil)
	for path, h := range f.heads { // what is below such a place goes with it
		for above := path.Parent(); !above.IsZero(); above = above.Parent() {
			_, whole := f.whole[above]
			if whole {
				f.whole[path] = h.last
			}
		}
	}
	return err
}

// addReply notes what the bot answered the person.
func (f *forgetting) addReply(place core.Path, id string) {
	if f.replies[place] == nil {
		f.replies[place] = make(map[string]bool)
	}
	f.replies[place][id] = true
}

// read decodes an entry that mentions the person, or may quote what the bot answered
// them, and was there in the beginning.
func (f *forgetting) read(k, v []byte) (line, bool) {
	if len(f.replies) == 0 && !bytes.Contains(v, []byte(f.person)) {
		return line{}, false
	}
	path, seq, err := entryOf(k)
	if err != nil || seq > f.heads[path].last || f.replies[path] == nil && !bytes.Contains(v, []byte(f.person)) {
		return line{}, false
	}
	l, err := decodeLine(v, path, seq)
	return l, err == nil
}

// concerns reports whether an entry was said or done by the person, answers them, or is
// in a place that goes as a whole.
func (f *forgetting) concerns(l *line) bool {
	return l.Message.Seq <= f.whole[l.Message.Path] || l.Message.Author.ID == f.person ||
		slices.Contains(l.answers, f.person)
}

// logs takes out the person's entries, and the person out of the entries of others.
func (f *forgetting) logs() error {
	if f.person == "" {
		return nil
	}
	if err := f.hashOwn(); err != nil {
		return err
	}
	from, to := subtree(f.within)
	return sweep(f.ctx, f.db, bucketLog, from, to, func(k, v []byte) bool {
		l, ok := f.read(k, v)
		return ok && (f.concerns(&l) || f.blank(&l))
	}, func(t *tx, k, v []byte) {
		l, _ := f.read(k, v)
		p := place{path: l.Message.Path, key: placeKey(l.Message.Path)}
		if f.concerns(&l) {
			for _, id := range f.idsOf(t, &l.Message) {
				t.bucket(bucketIDs).Delete(id)
			}
			t.remove(p, l.Message.Seq)
		} else {
			f.blank(&l)
			t.rewrite(p, &l)
		}
	})
}

// hashOwn hashes the ids of the entries that go. The ids themselves go with the
// entries: whenever the process dies, the next Forget finds them.
func (f *forgetting) hashOwn() error {
	var own []core.Message
	from, to := subtree(f.within)
	err := sweep(f.ctx, f.db, bucketLog, from, to, func(k, v []byte) bool {
		if l, ok := f.read(k, v); ok && f.concerns(&l) {
			own = append(own, core.Message{Path: l.Message.Path, ID: l.Message.ID, Seq: l.Message.Seq})
		}
		return false
	}, nil)
	if err != nil {
		return err
	}
	var ids [][]byte
	err = f.db.view(f.ctx, func(v *view) error {
		for i := range own {
			ids = append(ids, f.idsOf(&v.tx, &own[i])...)
		}
		return nil
	})
	return errors.Join(err, f.hash(ids))
}

// idsOf returns the keys under which a message's id is stored.
func (f *forgetting) idsOf(t *tx, m *core.Message) (keys [][]byte) {
	for _, p := range f.ids[m.Path] {
		key := idKey(p.ids, m.ID)
		seq, size := uvarint(string(t.bucket(bucketIDs).Get(key)))
		if size > 0 && seq+p.shift == m.Seq {
			keys = append(keys, key)
		}
	}
	return keys
}

// times corrects the heads of places from which entries were taken.
func (f *forgetting) times() error {
	return newestTimes(f.ctx, f.db, func(yield func(core.Path) bool) {
		for path := range f.heads {
			if (f.spoke[path] || f.replies[path] != nil) && !yield(path) {
				return
			}
		}
	})
}

// blank removes quotes and forwards of this person, quotes of what the bot answered
// them, and their reactions from somebody else's entry.
func (f *forgetting) blank(l *line) bool {
	_, reacted := l.reactors[f.person]
	if reacted {
		unreact(l, f.person, "")
	}
	quote := l.Message.ReplyTo
	quoted := quote != nil && (quote.From.ID == f.person || f.replies[l.Message.Path][quote.ID])
	if quoted {
		l.Message.ReplyTo = &core.Quote{ID: l.Message.ReplyTo.ID}
	}
	passedOn := dropForeign(&l.Message, func(from string) bool { return f.person != "" && from == f.person })
	return reacted || quoted || passedOn
}

// dropForeign removes the foreign texts of the people that gone reports by id.
func dropForeign(m *core.Message, gone func(person string) bool) (changed bool) {
	before := len(m.Foreign)
	m.Foreign = slices.DeleteFunc(slices.Clone(m.Foreign), func(o core.Foreign) bool { return gone(o.From.ID) })
	return len(m.Foreign) < before
}

// placesWhole takes whole places away. Their numbers are not given again: a turn
// may still run there, and platforms know what was sent by its turn's number.
func (f *forgetting) placesWhole() error {
	for path, last := range f.whole {
		p := place{path: path, key: placeKey(path)}
		err := sweep(f.ctx, f.db, bucketLog, p.key, seqKey(p.key, last+1),
			func([]byte, []byte) bool { return true },
			func(t *tx, k, _ []byte) {
				if seq, ok := numberOf(k, p.key); ok {
					t.remove(p, seq)
				}
			})
		if err != nil {
			return err
		}
		if err := f.db.write(f.ctx, &job{run: func(t *tx) error { f.dropHead(t, p); return nil }}); err != nil {
			return err
		}
	}
	return nil
}

// dropHead takes the head of a place that is empty now.
func (f *forgetting) dropHead(t *tx, p place) {
	h := t.head(p.key)
	if h.count > 0 {
		return
	}
	f.db.epochs.floor = max(f.db.epochs.floor, h.last)
	t.floor = f.db.epochs.floor // others write in this very transaction
	*h = head{}
	t.bucket(bucketMeta).Put([]byte(metaFloor), strconv.AppendUint(nil, t.floor, 10))
}

// aliases forgets which paths led to the places that go, and the ids under them. Other
// paths that led through one of those, to a place that stays, lead there directly.
func (f *forgetting) aliases() error {
	for from := range f.sources {
		if err := f.dropIDs(from); err != nil {
			return err
		}
	}
	return f.db.write(f.ctx, &job{run: func(t *tx) error {
		before := make(map[core.Path]place)
		for _, from := range append(t.placesIn(bucketIDs), t.placesIn(bucketAliases)...) {
			if !f.sources[from] {
				before[from] = t.resolve(from)
			}
		}
		for from := range f.sources {
			t.bucket(bucketAliases).Delete(placeKey(from))
		}
		for from, p := range before {
			if t.resolve(from).path != p.path {
				t.lead(from, alias{To: p.path, Shift: p.shift})
			}
		}
		return nil
	}})
}

// idsAtOnce is how many ids are turned into hashes at once.
const idsAtOnce = 100_000

// dropIDs turns the ids that came with a path, which tell where somebody was, into
// hashes, unless their entries stay.
func (f *forgetting) dropIDs(from core.Path) error {
	start := placeKey(from)
	for more := true; more; {
		var ids [][]byte
		err := f.db.view(f.ctx, func(v *view) error {
			ids, start = f.goingIDs(v, v.resolve(from), start)
			return nil
		})
		if err == nil {
			err = f.hashIDs(ids)
		}
		if err != nil {
			return err
		}
		more = start != nil
	}
	return nil
}

// goingIDs lists ids of a place whose entries are gone, from start on, and where the
// next ones begin; nil at the end.
func (f *forgetting) goingIDs(v *view, p place, start []byte) (ids [][]byte, next []byte) {
	c := v.bucket(bucketIDs).Cursor()
	for k, value := c.Seek(start); bytes.HasPrefix(k, p.ids); k, value = c.Next() {
		if len(ids) == idsAtOnce {
			return ids, bytes.Clone(k)
		}
		seq, size := uvarint(string(value))
		if size > 0 && v.bucket(bucketLog).Get(seqKey(p.key, seq+p.shift)) == nil {
			ids = append(ids, bytes.Clone(k))
		}
	}
	return ids, nil
}

// hashIDs leaves hashes of ids only.
func (f *forgetting) hashIDs(ids [][]byte) error {
	if err := f.hash(ids); err != nil {
		return err
	}
	return changeAll(f.ctx, f.db, ids, func(t *tx, id []byte) { t.bucket(bucketIDs).Delete(id) })
}

// hash writes hashes of ids, in their order: one after another they would touch a page
// of the file each.
func (f *forgetting) hash(ids [][]byte) error {
	hashes := make([][]byte, len(ids))
	err := f.db.view(f.ctx, func(v *view) error {
		for i, id := range ids {
			hashes[i] = v.hash(id)
		}
		return nil
	})
	if err != nil {
		return err
	}
	slices.SortFunc(hashes, bytes.Compare)
	return changeAll(f.ctx, f.db, hashes, func(t *tx, hash []byte) {
		t.filled(bucketGone)
		t.bucket(bucketGone).Put(hash, t.hour())
	})
}

const metaSalt = "salt"

// addSalt makes the key of the hashes, unless there is one.
func (t *tx) addSalt() {
	meta := t.bucket(bucketMeta)
	if meta.Get([]byte(metaSalt)) == nil {
		salt := make([]byte, 32)
		rand.Read(salt)
		meta.Put([]byte(metaSalt), salt)
	}
}

// hash is the keyed hash of an id; the key is this file's own. It is nil if there is
// no key: then nothing was forgotten.
func (t *tx) hash(id []byte) []byte {
	salt := t.bucket(bucketMeta).Get([]byte(metaSalt))
	if salt == nil {
		return nil
	}
	mac := hmac.New(sha256.New, salt)
	mac.Write(id)
	return mac.Sum(nil)[:16]
}

// isGone reports whether an id was forgotten.
func (t *tx) isGone(id []byte) bool {
	if t.void(bucketGone) {
		return false
	}
	hash := t.hash(id)
	return hash != nil && t.bucket(bucketGone).Get(hash) != nil
}

// facts removes what was said by or about this person, or in the places that go. Of
// what others say instead now, only what the person had said before goes.
func (f *forgetting) facts() error {
	return sweep(f.ctx, f.db, bucketFacts, nil, nil, func(k, v []byte) bool {
		fact, err := decodeFact(k, v)
		return err == nil && (f.known(fact) || slices.ContainsFunc(fact.Former, f.former))
	}, func(t *tx, k, v []byte) {
		fact, _ := decodeFact(k, v)
		if f.known(fact) {
			t.dropFact(fact)
			return
		}
		rest := fact
		rest.Former = slices.DeleteFunc(slices.Clone(fact.Former), f.former)
		t.replaceFact(fact, rest)
	})
}

// former reports whether the person said what a fact said before.
func (f *forgetting) former(old core.Former) bool { return f.person != "" && old.By == f.path }

func (f *forgetting) known(fact core.Fact) bool {
	if f.person == "" {
		return fact.Origin.Within(f.path) || fact.By.Within(f.path)
	}
	_, private := f.whole[fact.Origin]
	return private || fact.By == f.path || slices.Contains(fact.About, f.path)
}

// goes reports whether what is kept under a path goes.
func (f *forgetting) goes(path core.Path) bool {
	for above := path; !above.IsZero(); above = above.Parent() {
		_, whole := f.whole[above]
		if whole || above == f.path || f.sources[above] {
			return true
		}
	}
	return f.path.IsZero()
}

func (f *forgetting) plugins() error {
	matches := func(k, _ []byte) bool {
		_, rest, ok := bytes.Cut(k, []byte{ending})
		if !ok {
			return false
		}
		place, key, ok := bytes.Cut(rest, []byte{ending})
		if !ok {
			return false
		}
		var path core.Path
		if len(place) > 0 {
			path, _ = placeOf(rest[:len(place)+1])
		}
		return f.goes(path) || f.person != "" && string(key) == f.path.String()
	}
	return f.drop(bucketPlugins, matches)
}

func (f *forgetting) states() error {
	return f.drop(bucketStates, func(k, _ []byte) bool {
		path, err := placeOf(k)
		return err == nil && (f.goes(path) || f.spoke[path])
	})
}

// usage takes away what they used. What their places have cost counts on, under the
// interface: the money is spent, and no budget has room again.
func (f *forgetting) usage() error {
	return sweep(f.ctx, f.db, bucketUsage, nil, nil, func(k, v []byte) bool {
		u, err := readUse(k, v)
		return err == nil && f.goes(u.Person)
	}, func(t *tx, k, v []byte) {
		t.bucket(bucketUsage).Delete(k)
		u, _ := readUse(k, v)
		place := interfaceOf(u.Person)
		if !u.Person.IsPerson() && !f.goes(place) {
			u.Person = place
			t.addUse(u)
		}
	})
}

// drop deletes the pairs of a bucket that match.
func (f *forgetting) drop(bucket string, match func(k, v []byte) bool) error {
	return sweep(f.ctx, f.db, bucket, nil, nil, match, func(t *tx, k, _ []byte) { t.bucket(bucket).Delete(k) })
}

// requestAge is how old the message may be with which somebody asked to be forgotten.
const requestAge = 10 * time.Minute

// requestKey is the key of a person's request to be forgotten, or with the zero Path of
// everybody's.
func (t *tx) requestKey(person core.Path) []byte {
	return append([]byte{'p'}, t.hash([]byte(person.String()))...)
}

// date notes when the person asked to be forgotten, by the platform's clock: what they
// said last is the request itself, if it was said just now. That of everybody has the
// time of this machine's clock.
func (f *forgetting) date(t *tx) {
	if f.person == "" && !f.path.IsZero() {
		return
	}
	at := t.now.Add(-f.newest.Ahead)
	if t.now.Sub(f.newest.SentAt()).Abs() < requestAge {
		at = f.newest.Time
	}
	t.filled(bucketGone)
	t.bucket(bucketGone).Put(t.requestKey(f.path), binary.AppendUvarint(nil, uint64(max(at.Unix(), 0))))
}

// tooOld reports whether words of that time, which came with the message, are older than
// their author's request to be forgotten. Words without a time may be.
func (t *tx) tooOld(m *core.Message, author string, said time.Time) bool {
	person, err := m.Path.Person(author)
	if author == "" || err != nil {
		return false // they are nobody's
	}
	for who, when := range map[core.Path]time.Time{person: said, {}: said.Add(m.Ahead)} {
		at, size := uvarint(string(t.bucket(bucketGone).Get(t.requestKey(who))))
		if size > 0 && (said.IsZero() || when.Unix() < int64(at)) {
			return true
		}
	}
	return false
}

// withoutOld returns the entry without what is older than its author's request to be
// forgotten, however that came: as a quote, passed on, or, refused, as the entry itself.
// cleaned reports that it is a changed copy.
func (t *tx) withoutOld(e *core.Entry) (_ *core.Entry, cleaned, refused bool) {
	if t.void(bucketGone) || comesOf(e) {
		return e, false, false
	}
	m := e.Message
	if !m.Time.IsZero() && t.tooOld(&m, m.Author.ID, m.Time) { // what the bot itself puts there may have none
		return e, false, true
	}
	quoted := t.quotesOld(&m)
	if quoted {
		m.ReplyTo = &core.Quote{ID: m.ReplyTo.ID}
	}
	if !t.dropOldForeign(&m) && !quoted {
		return e, false, false
	}
	clean := *e
	clean.Message = m
	return &clean, true, e.Command != nil && e.Target != "" // such a command is about those words
}

// dropOldForeign takes such words out of those that a message passes on.
func (t *tx) dropOldForeign(m *core.Message) (changed bool) {
	before := len(m.Foreign)
	m.Foreign = slices.DeleteFunc(slices.Clone(m.Foreign), func(o core.Foreign) bool {
		return t.tooOld(m, o.From.ID, o.Time)
	})
	return len(m.Foreign) < before
}

// quotesOld reports whether a message quotes such words, or what the bot answered.
func (t *tx) quotesOld(m *core.Message) bool {
	q := m.ReplyTo
	if q == nil || *q == (core.Quote{ID: q.ID}) {
		return false
	}
	return t.tooOld(m, q.From.ID, q.Time) || t.isGone(idKey(placeKey(m.Path), q.ID))
}
