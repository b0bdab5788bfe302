package moderation

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"hash"
	"hash/maphash"
	"strings"
	"time"

	"synthbot/core"
)

// who names a person without making a path of him, which costs more.
type who struct {
	iface string // as it is encoded in paths
	id    string
}

// author is who wrote a message.
func author(m *core.Message) who {
	iface, _, _ := strings.Cut(m.Path.String(), "/")
	return who{iface, m.Author.ID}
}

// whoIs is who a person's path names.
func whoIs(person core.Path) who {
	iface, _, _ := strings.Cut(person.String(), "/")
	elements := person.Elements()
	return who{iface, elements[len(elements)-1]}
}

// own is the same, that holds no longer text alive.
func (w who) own() who { return who{strings.Clone(w.iface), strings.Clone(w.id)} }

// person is the path; the zero Path where the id makes none.
func (w who) person() core.Path {
	iface, err := core.ParsePath(w.iface)
	if err != nil {
		return core.Path{}
	}
	p, err := iface.Person(w.id)
	if err != nil {
		return core.Path{}
	}
	return p
}

// digest stands for a person who need not be known.
type digest [16]byte

func (d digest) String() string { return hex.EncodeToString(d[:]) }

func parseDigest(text string) (d digest, ok bool) {
	raw, err := hex.DecodeString(text)
	if err != nil || len(raw) != len(d) {
		return d, false
	}
	return digest(raw), true
}

// seal makes digests by a key. It is not safe for concurrent use.
type seal struct {
	key []byte
	mac hash.Hash // nil: there is no key yet
	in  []byte
	out []byte
}

const keySize = 32

func (s *seal) set(key []byte) { s.key, s.mac = key, hmac.New(sha256.New, key) }

func (s *seal) of(w who) (d digest) {
	s.mac.Reset()
	s.in = append(append(append(s.in[:0], w.iface...), 0), w.id...)
	s.mac.Write(s.in)
	s.out = s.mac.Sum(s.out[:0])
	copy(d[:], s.out)
	return d
}

// root is the group that a place belongs to: the guild of a channel, the chat of
// a topic.
func root(place core.Path) core.Path {
	for {
		above := place.Parent()
		if above.Parent().IsZero() {
			return place
		}
		place = above
	}
}

// Windows of a person.
const (
	inPrivate = iota
	inGroups
	buttonsInPrivate
	buttonsInGroups
	windowKinds
)

// activity is what somebody did not long ago.
type activity struct {
	sum     digest
	summed  bool
	asked   [windowKinds]window
	pace    window // of Config.Flood
	wall    window // in characters
	doors   window // of who is blocked
	last    uint64 // a hash of the latest text
	lastAt  int64
	repeats int
	warned  int64 // of a guard
	scolded int64 // for a rule
}

// since reports whether the moment lies so far back, and notes that it is now.
func since(at *int64, now time.Time, pause time.Duration) bool {
	t := now.UnixNano()
	if t >= *at && t-*at < int64(pause) && *at != 0 {
		return false
	}
	*at = t
	return true
}

// maxHashed is how many bytes of a text tell whether it is the same.
const maxHashed = 4096

// textHash is the same for texts that differ in spaces at their ends alone.
func textHash(seed maphash.Seed, text string) uint64 {
	text = strings.TrimSpace(text)
	return maphash.String(seed, text[:min(len(text), maxHashed)])
}
