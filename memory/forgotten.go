package memory

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"time"

	"synthbot/core"
)

// forgottenTx is a transaction's access to the ids and people that were forgotten.
type forgottenTx struct{ *tx }

func (t *tx) forgotten() forgottenTx { return forgottenTx{t} }

const metaSalt = "salt"

// salt is the key of the hashes; nil until somebody is forgotten.
func (t forgottenTx) salt() []byte { return t.bucket(bucketMeta).Get([]byte(metaSalt)) }

// addSalt makes the key of the hashes, unless there is one.
func (t forgottenTx) addSalt() {
	if t.salt() == nil {
		salt := make([]byte, 32)
		rand.Read(salt)
		t.bucket(bucketMeta).Put([]byte(metaSalt), salt)
	}
}

// hash is the keyed hash of an id; nil if nothing was forgotten.
func (t forgottenTx) hash(id []byte) []byte {
	salt := t.salt()
	if salt == nil {
		return nil
	}
	mac := hmac.New(sha256.New, salt)
	mac.Write(id)
	return mac.Sum(nil)[:16]
}

// isGone reports whether an id was forgotten.
func (t forgottenTx) isGone(id []byte) bool {
	hash := t.hash(id)
	return hash != nil && t.bucket(bucketGone).Get(hash) != nil
}

// replaceID replaces an id by its hash, so that the message is not stored again.
func (t forgottenTx) replaceID(key []byte) {
	t.bucket(bucketGone).Put(t.hash(key), hour(t.now))
	t.bucket(bucketIDs).Delete(key)
}

// requestAge is the maximum age of the message with which a person asks to be forgotten.
const requestAge = 10 * time.Minute

// requestKey is the key of a person's request to be forgotten; with the zero Path, of
// everybody's; with the path of an interface, of the newest request there.
func (t forgottenTx) requestKey(person core.Path) []byte {
	return append([]byte{'p'}, t.hash([]byte(person.String()))...)
}

// recordRequest stores when the person asked to be forgotten, by the platform's clock: their
// last message is the request, if it is new. The request for everybody has the time of this
// machine.
func (f *forgetting) recordRequest(t *tx) {
	if f.person == "" && !f.path.IsZero() {
		return
	}
	at := t.now.Add(-f.newest.Ahead)
	if t.now.Sub(f.newest.SentAt()).Abs() < requestAge {
		at = f.newest.Time
	}
	second := binary.AppendUvarint(nil, uint64(max(at.Unix(), 0)))
	t.bucket(bucketGone).Put(t.forgotten().requestKey(f.path), second)
	if f.person != "" && !t.forgotten().isOlder(f.within, at) {
		t.bucket(bucketGone).Put(t.forgotten().requestKey(f.within), second)
	}
}

// tooOld reports whether words of that time, which came with the message, are older than
// their author's request to be forgotten. Words without a time count as old.
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

// mayBeTooOld reports whether words of an unknown author may be older than their author's
// request to be forgotten. Words of the request's second may be.
func (t forgottenTx) mayBeTooOld(m *core.Message, said time.Time) bool {
	said = said.Add(-time.Second)
	return t.isOlder(interfaceOf(m.Path), said) || t.isOlder(core.Path{}, said.Add(m.Ahead))
}

// isStored reports whether the message that a forward copies is stored. Then its author was
// not forgotten.
func (t forgottenTx) isStored(o *core.Foreign) bool {
	if o.ID == "" || o.Path.IsZero() {
		return false
	}
	p := t.resolve(o.Path)
	seq, known := t.findID(p, o.ID)
	if !known {
		return false
	}
	l, ok, _ := t.entry(p, seq) // an unreadable entry counts as not stored
	return ok && !l.Deleted
}

// dropOldForeign removes such words from the forwarded texts of a message. Only the time
// remains of a forward by an unknown author that may be such.
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

// quotesOld reports whether a message quotes such words, or a forgotten message.
func (t forgottenTx) quotesOld(m *core.Message) bool {
	q := m.ReplyTo
	if q == nil || *q == (core.Quote{ID: q.ID}) {
		return false
	}
	old := t.tooOld(m, q.From.ID, q.Time) || t.isGone(idKey(placeKey(m.Path), q.ID))
	return old || q.From.ID == "" && q.ID == "" && q.Text != "" && t.mayBeTooOld(m, q.Time)
}
