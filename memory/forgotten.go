package memory

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"slices"
	"time"

	"synthbot/core"
)

// forgottenTx is a transaction's access to the ids and people that were forgotten. They are stored as hashes with a
// key, the salt, so that what is delivered again is kept out.
type forgottenTx struct{ *tx }

func (t *tx) forgotten() forgottenTx { return forgottenTx{t} }

const metaSalt = "salt"

// addSalt creates the key of the hashes if it is missing.
func (t forgottenTx) addSalt() {
	meta := t.bucket(bucketMeta)
	if meta.Get([]byte(metaSalt)) == nil {
		salt := make([]byte, 32)
		rand.Read(salt)
		meta.Put([]byte(metaSalt), salt)
	}
}

// hash returns the keyed hash of a text; nil if nothing was forgotten.
func (t forgottenTx) hash(text []byte) []byte {
	salt := t.db.salt
	if salt == nil {
		salt = t.bucket(bucketMeta).Get([]byte(metaSalt))
	}
	if salt == nil {
		return nil
	}
	mac := hmac.New(sha256.New, salt)
	mac.Write(text)
	return mac.Sum(nil)[:16]
}

// hashID returns the hash of an id of a place. id is the result of shortID.
func (t forgottenTx) hashID(place, id []byte) []byte { return t.hash(slices.Concat(place, id[1:])) }

// isGone reports whether an id is that of a forgotten message.
func (t forgottenTx) isGone(place, id []byte) bool {
	return t.bucket(bucketGone).Get(t.hashID(place, id)) != nil
}

// replaceID replaces an id by its hash, so that the message is not stored again.
func (t forgottenTx) replaceID(place, id []byte) {
	t.bucket(bucketGone).Put(t.hashID(place, id), binary.AppendUvarint(nil, hour(t.now)))
	setID(t.tx, place, knownID{id: id})
}

// loadSalt loads the salt of a server's database into memory: the keys that are prefetched depend on it. Unless
// readOnly, it creates a missing one.
func (db *DB) loadSalt(readOnly bool) error {
	read := func(v *view) { db.salt = bytes.Clone(v.bucket(bucketMeta).Get([]byte(metaSalt))) }
	err := db.read(context.Background(), read)
	if err != nil || db.salt != nil || readOnly {
		return err
	}
	if err := db.writer.transact(func(t *tx) error { t.forgotten().addSalt(); return nil }); err != nil {
		return err
	}
	return db.read(context.Background(), read)
}

// requestAge is the maximum age of the message with which a person asks to be forgotten.
const requestAge = 10 * time.Minute

// requestKey returns the key of a person's request to be forgotten. The zero Path is the request for everybody;
// the path of an interface is the newest request there.
func (t forgottenTx) requestKey(person core.Path) []byte {
	return append([]byte{'p'}, t.hash([]byte(person.String()))...)
}

// tooOld reports whether the author's request to be forgotten is newer than words of theirs that came with m.
// Words without a time count as old.
func (t forgottenTx) tooOld(m *core.Message, author string, said time.Time) bool {
	person, err := m.Path.Person(author)
	if err != nil {
		return false // no author
	}
	return t.isOlder(person, said) || t.isOlder(core.Path{}, said.Add(m.Ahead))
}

// isOlder reports whether words of that time are older than a request to be forgotten.
func (t forgottenTx) isOlder(who core.Path, said time.Time) bool {
	at, size := uvarint(string(t.bucket(bucketGone).Get(t.requestKey(who))))
	return size > 0 && said.Unix() < int64(at)
}

// mayBeTooOld is tooOld for an unknown author: it reports whether anybody's request may be newer than the
// words, or of the same second.
func (t forgottenTx) mayBeTooOld(m *core.Message, said time.Time) bool {
	said = said.Add(-time.Second)
	return t.isOlder(interfaceOf(m.Path), said) || t.isOlder(core.Path{}, said.Add(m.Ahead))
}

// isStored reports whether the message that a forward copies is stored. Then its author was not forgotten.
func (t forgottenTx) isStored(o *core.Foreign) bool {
	p := t.resolve(o.Path)
	seq, known := t.findID(p, o.ID)
	if !known {
		return false
	}
	l, ok := t.entry(p, seq) // an unreadable entry counts as not stored
	return ok && !l.Deleted
}

// dropOldForeign removes the forwarded texts that are too old from a message. Of a forward by an unknown author
// that may be too old, only the time stays.
func (t forgottenTx) dropOldForeign(m *core.Message) (changed bool) {
	changed = dropForeign(m, func(o core.Foreign) bool { return t.tooOld(m, o.From.ID, o.Time) })
	for i := range m.Foreign {
		o := &m.Foreign[i]
		unknown := o.Kind == core.ForeignForward && o.From.ID == "" && o.Text != ""
		if unknown && t.mayBeTooOld(m, o.Time) && !t.isStored(o) {
			*o = core.Foreign{Kind: o.Kind, Time: o.Time}
			changed = true
		}
	}
	return changed
}

// quotesOld reports whether a message quotes words that are or may be too old, or a forgotten message.
func (t forgottenTx) quotesOld(m *core.Message) bool {
	q := m.ReplyTo
	if q == nil {
		return false
	}
	old := t.tooOld(m, q.From.ID, q.Time) || t.isGone(placeKey(m.Path), shortID(q.ID))
	return old || q.From.ID == "" && q.ID == "" && q.Text != "" && t.mayBeTooOld(m, q.Time)
}

// dropOld removes quotes and forwards from a received entry that are older than a request of their author to be
// forgotten. It reports whether the rest may be stored: not if the entry itself is that old, or is a command about
// what was removed.
func (t forgottenTx) dropOld(e *core.Entry) bool {
	m := &e.Message
	old := !m.Time.IsZero() && t.tooOld(m, m.Author.ID, m.Time)
	oldQuote := t.quotesOld(m)
	if oldQuote {
		m.ReplyTo = &core.Quote{ID: m.ReplyTo.ID}
	}
	oldForeign := t.dropOldForeign(m)
	aboutOld := e.Command != nil && e.Target != "" &&
		(oldQuote || oldForeign || t.isGone(placeKey(m.Path), shortID(e.Target)))
	return !old && !aboutOld
}

// forget drops the content of an entry, its author, and whom it answers.
func (l *storedEntry) forget() {
	erase(l)
	l.Due, l.Message.Author, l.answers = false, core.Author{}, nil
}
