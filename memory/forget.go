package memory

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"synthbot/core"
)

// Forget takes away all that is kept of a person, of a place and all below it,
// or, for the zero Path, of everybody. Nothing of it is readable when Forget
// returns, and nothing is left in the file after the next Compact but keyed
// hashes of message ids: what a platform delivers again must not bring the
// person back. What is written while Forget runs, of what was said before, is
// left out; what is said afterwards is kept.
//
// Of a person go: what he said and put on messages; what the bot answered him, also
// where he was one of several; quotes of either; the journal of the turns that
// answered him; facts by him or about him, with their vectors; what plugins keep
// under his path; what the conversations are about that he took part in; what he
// used; and, as a whole, his private places. What others said stays, even where
// they mention him: it is theirs. What a plugin keeps of him elsewhere is its own
// business (core.Keeper).
func (db *DB) Forget(ctx context.Context, path core.Path) error {
	f := &forgetting{db: db, ctx: ctx, path: path}
	defer func() { f.db.epochs.end(f.going) }()
	if err := f.begin(); err != nil {
		return fmt.Errorf("forget %s: %w", path, err)
	}
	steps := []func() error{f.copies, f.journals, f.logs, f.placesWhole, f.aliases, f.facts, f.plugins, f.states, f.usage}
	for _, step := range steps {
		if err := step(); err != nil {
			return fmt.Errorf("forget %s: %w", path, err)
		}
	}
	return nil
}

// copies takes away what an upgrade left beside the file: who is forgotten stands in
// there.
func (f *forgetting) copies() error {
	dir, name := filepath.Split(f.db.file)
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
	db     *DB
	ctx    context.Context
	path   core.Path
	going  map[core.Path]bool   // what the epochs know to be going
	person string               // his id; empty for a place
	within core.Path            // where to look
	heads  map[core.Path]head   // as it was when it began
	whole  map[core.Path]uint64 // places that go as a whole, up to that number
	spoke  map[core.Path]bool   // places where he spoke
	// told holds, by place, the ids of what the bot answered him.
	told map[core.Path]map[string]bool
}

// begin raises the epoch, notes what is there at that moment, and mutes the turns
// that run. The places that go as a whole are looked for before and after: the
// search is long, and a turn may end while it goes on.
func (f *forgetting) begin() error {
	f.within, f.whole = f.path, make(map[core.Path]uint64)
	f.spoke, f.told = make(map[core.Path]bool), make(map[core.Path]map[string]bool)
	if f.path.IsPerson() {
		elements := f.path.Elements()
		f.person = elements[2]
		var err error
		if f.within, err = core.MakePath(elements[0]); err != nil {
			return err
		}
	}
	snapshot := func(v *view) (err error) {
		f.heads, err = v.headsBelow(f.within)
		return err
	}
	if err := f.db.view(f.ctx, snapshot); err != nil {
		return err
	}
	if err := f.findWhole(); err != nil {
		return err
	}
	err := f.db.write(f.ctx, &job{run: func(t *tx) error {
		f.begun()
		if err := t.finish(); err != nil { // what others wrote in this very transaction counts
			return err
		}
		if err := snapshot(&view{tx: *t}); err != nil {
			return err
		}
		if err := t.bucket(bucketMeta).Put([]byte(metaUntidy), []byte("1")); err != nil {
			return err
		}
		return f.mute(t)
	}})
	if err != nil {
		return err
	}
	err = f.findWhole()
	f.begun()
	return err
}

// begun begins the epoch in which he is forgotten, with the places that go as a
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

// findPrivate finds the places where he spoke, those where he spoke with the bot
// alone, and what the bot answered him.
func (f *forgetting) findPrivate() error {
	from, to := subtree(f.within)
	_, err := f.db.sweep(f.ctx, bucketLog, from, to, func(k, v []byte) bool {
		l, ok := f.read(k, v)
		if !ok || !f.his(&l) {
			return false
		}
		path := l.Message.Path
		if l.Message.Author.ID == f.person {
			f.spoke[path] = true
		} else {
			f.tell(path, l.Message.ID)
		}
		if l.Message.Private && l.Message.Author.ID == f.person {
			f.whole[path] = f.heads[path].last
		}
		return false
	}, nil)
	return err
}

// tell notes what the bot answered him.
func (f *forgetting) tell(place core.Path, id string) {
	if f.told[place] == nil {
		f.told[place] = make(map[string]bool)
	}
	f.told[place][id] = true
}

// read decodes an entry that mentions the person, or stands where somebody may
// quote what the bot answered him, and was there in the beginning.
func (f *forgetting) read(k, v []byte) (line, bool) {
	if len(f.told) == 0 && !bytes.Contains(v, []byte(f.person)) {
		return line{}, false
	}
	place, seq, err := cutSeq(k)
	if err != nil {
		return line{}, false
	}
	path, err := placeOf(place)
	if err != nil || seq > f.heads[path].last || f.told[path] == nil && !bytes.Contains(v, []byte(f.person)) {
		return line{}, false
	}
	l, err := decodeLine(v, path, seq)
	return l, err == nil
}

// his reports whether an entry was said or done by the person, answers him, or
// stands in a place that goes as a whole.
func (f *forgetting) his(l *line) bool {
	last, whole := f.whole[l.Message.Path]
	return whole && l.Message.Seq <= last ||
		f.person != "" && (l.Message.Author.ID == f.person || slices.Contains(l.answers, f.person))
}

// logs takes his entries out, and him out of the entries of others.
func (f *forgetting) logs() error {
	if f.person == "" {
		return nil
	}
	from, to := subtree(f.within)
	_, err := f.db.sweep(f.ctx, bucketLog, from, to, func(k, v []byte) bool {
		l, ok := f.read(k, v)
		return ok && (f.his(&l) || f.blank(&l))
	}, func(t *tx, k, v []byte) error {
		l, ok := f.read(k, v)
		if !ok {
			return nil
		}
		p := place{path: l.Message.Path, key: placeKey(l.Message.Path)}
		if f.his(&l) {
			return t.remove(p, l.Message.Seq)
		}
		f.blank(&l)
		return t.rewrite(p, &l)
	})
	return err
}

// blank takes quotes of him, and of what he was answered, and his reactions out
// of somebody else's entry.
func (f *forgetting) blank(l *line) bool {
	_, reacted := l.reactors[f.person]
	if reacted {
		unreact(l, f.person, "")
	}
	quote := l.Message.ReplyTo
	quoted := quote != nil && (quote.From.ID == f.person || f.told[l.Message.Path][quote.ID]) && *quote != core.Quote{ID: quote.ID}
	if quoted {
		l.Message.ReplyTo = &core.Quote{ID: l.Message.ReplyTo.ID}
	}
	return reacted || quoted
}

// placesWhole takes whole places away. Their numbers are not given again: a turn
// may still run there, and platforms know what was sent by its turn's number.
func (f *forgetting) placesWhole() error {
	for path, last := range f.whole {
		p := place{path: path, key: placeKey(path), ids: placeKey(path)}
		end := seqKey(p.key, last+1)
		_, err := f.db.sweep(f.ctx, bucketLog, p.key, end,
			func([]byte, []byte) bool { return true },
			func(t *tx, k, _ []byte) error {
				_, seq, err := cutSeq(k)
				if err != nil {
					return err
				}
				return t.remove(p, seq)
			})
		if err != nil {
			return err
		}
		if err := f.ids(p, last); err != nil {
			return err
		}
		if err := f.db.write(f.ctx, &job{run: func(t *tx) error { return f.dropHead(t, p) }}); err != nil {
			return err
		}
	}
	return nil
}

// dropHead takes the head of a place that is empty now.
func (f *forgetting) dropHead(t *tx, p place) error {
	h := t.head(p.key)
	if h.count > 0 {
		return nil
	}
	f.db.epochs.floor = max(f.db.epochs.floor, h.last)
	t.floor = f.db.epochs.floor // others write in this very transaction
	*h = head{}
	return t.bucket(bucketMeta).Put([]byte(metaFloor), strconv.AppendUint(nil, t.floor, 10))
}

// aliases forgets which paths led to the places that go.
func (f *forgetting) aliases() error {
	return f.drop(bucketAliases, func(k, v []byte) bool {
		from, err := placeOf(k)
		var a alias
		if err != nil || json.Unmarshal(v, &a) != nil {
			return false
		}
		_, whole := f.whole[a.To]
		return whole || f.person == "" && from.Within(f.path)
	})
}

// ids turns the ids of a place, which tell where somebody was, into hashes.
func (f *forgetting) ids(p place, last uint64) error {
	_, err := f.db.sweep(f.ctx, bucketIDs, p.key, after(p.key),
		func(_, v []byte) bool { seq, n := uvarint(string(v)); return n > 0 && seq <= last },
		func(t *tx, k, _ []byte) error {
			hash, err := t.hash(k)
			if err != nil {
				return err
			}
			t.filled(bucketGone)
			hour := binary.AppendUvarint(nil, uint64(max(t.now.Unix()/3600, 0)))
			if err := t.bucket(bucketGone).Put(hash, hour); err != nil {
				return err
			}
			return t.bucket(bucketIDs).Delete(k)
		})
	return err
}

const metaSalt = "salt"

// hash is the keyed hash of an id; the key is this file's own.
func (t *tx) hash(id []byte) ([]byte, error) {
	meta := t.bucket(bucketMeta)
	salt := meta.Get([]byte(metaSalt))
	if salt == nil {
		salt = make([]byte, 32)
		rand.Read(salt)
		if err := meta.Put([]byte(metaSalt), salt); err != nil {
			return nil, err
		}
	}
	mac := hmac.New(sha256.New, salt)
	mac.Write(id)
	return mac.Sum(nil)[:16], nil
}

// isGone reports whether an id was forgotten.
func (t *tx) isGone(id []byte) (bool, error) {
	if t.void(bucketGone) {
		return false, nil
	}
	hash, err := t.hash(id)
	return err == nil && t.bucket(bucketGone).Get(hash) != nil, err
}

// facts takes what was said by or about him, or in the places that go.
func (f *forgetting) facts() error {
	_, err := f.db.sweep(f.ctx, bucketFacts, nil, nil, func(_, v []byte) bool {
		fact, err := decodeFact(v)
		return err == nil && f.known(fact)
	}, func(t *tx, _, v []byte) error {
		fact, err := decodeFact(v)
		if err != nil {
			return err
		}
		return t.dropFact(fact)
	})
	return err
}

func (f *forgetting) known(fact Fact) bool {
	if f.person == "" {
		return fact.Origin.Within(f.path) || fact.By.Within(f.path) && !f.path.IsZero() && !fact.By.IsZero()
	}
	_, private := f.whole[fact.Origin]
	former := slices.ContainsFunc(fact.Former, func(old Former) bool { return old.By == f.path })
	return private || former || fact.By == f.path || slices.Contains(fact.About, f.path)
}

// goes reports whether what is kept under a path goes.
func (f *forgetting) goes(path core.Path) bool {
	if f.person == "" {
		return path.Within(f.path) && (f.path.IsZero() || !path.IsZero())
	}
	for place := range f.whole {
		if path.Within(place) {
			return true
		}
	}
	return path.Within(f.path)
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
	_, err := f.db.sweep(f.ctx, bucketUsage, nil, nil, func(k, v []byte) bool {
		u, err := readUse(k, v)
		return err == nil && f.goes(u.Person)
	}, func(t *tx, k, v []byte) error {
		u, err := readUse(k, v)
		if err != nil {
			return err
		}
		if err := t.bucket(bucketUsage).Delete(k); err != nil || u.Person.IsPerson() {
			return err
		}
		if u.Person, err = core.MakePath(u.Person.Interface()); err != nil || f.goes(u.Person) {
			return err
		}
		return t.addUse(u)
	})
	return err
}

// drop deletes the pairs of a bucket that match.
func (f *forgetting) drop(bucket string, match func(k, v []byte) bool) error {
	_, err := f.db.sweep(f.ctx, bucket, nil, nil, match, func(t *tx, k, _ []byte) error {
		return t.bucket(bucket).Delete(k)
	})
	return err
}
