package memory

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"slices"
	"time"

	"synthbot/core"
)

// The ids of a place are stored in runs, in order: by length, then by bytes. So numbers that rise are added to the
// newest run. The key of any other run ends with its last id, so that a Seek with an id finds the run:
//
//	place, 7, "5000008" → ids up to 5000008
//	place, 7, "5000031" → ids up to 5000031
//	place, 0xff → the rest

const (
	maxID        = 200  // the length from which on a platform id is stored as a hash, which has just this length
	newestSuffix = 0xff // ends the key of a place's newest run, instead of its last id
	maxRun       = 512  // the size in bytes from which on a run is split
)

// knownID is a platform id that was received.
type knownID struct {
	id   []byte // see shortID
	seq  uint64 // of its entry, under the path with which it was received
	hour uint64 // of its receipt
}

// idRun reads or writes a run of ids. Each is stored as its difference from the one before.
type idRun struct {
	bytes []byte  // the rest to be read, or what was written
	last  knownID // the id that was read or written last
	err   error   // why the rest cannot be read
}

func (r *idRun) next() bool {
	if len(r.bytes) == 0 {
		return false
	}
	var n [4]uint64 // lengths of the shared part and of the rest, differences of number and hour
	valid := true
	for i := range n {
		value, size := binary.Uvarint(r.bytes)
		valid = valid && size > 0
		n[i], r.bytes = value, r.bytes[max(size, 0):]
	}
	if !valid || n[0] > uint64(len(r.last.id)) || n[1] > uint64(len(r.bytes)) || n[0]+n[1] == 0 {
		r.bytes, r.err = nil, errFields
		return false
	}
	r.last.id = append(r.last.id[:n[0]], r.bytes[:n[1]]...)
	r.last.seq += uint64(unzigzag(n[2]))
	r.last.hour += uint64(unzigzag(n[3]))
	r.bytes = r.bytes[n[1]:]
	return true
}

func (r *idRun) add(id knownID) {
	shared := 0
	for shared < min(len(id.id), len(r.last.id)) && id.id[shared] == r.last.id[shared] {
		shared++
	}
	r.bytes = binary.AppendUvarint(r.bytes, uint64(shared))
	r.bytes = binary.AppendUvarint(r.bytes, uint64(len(id.id)-shared))
	r.bytes = binary.AppendVarint(r.bytes, int64(id.seq-r.last.seq))
	r.bytes = binary.AppendVarint(r.bytes, int64(id.hour-r.last.hour))
	r.bytes = append(r.bytes, id.id[shared:]...)
	r.last = knownID{append(r.last.id[:0], id.id...), id.seq, id.hour}
}

// shortID returns a platform id as it is stored: as a hash if it is long, after a byte with its length.
func shortID(id string) []byte {
	if len(id) >= maxID {
		sum := sha256.Sum256([]byte(id))
		id = id[:maxID-2*len(sum)] + hex.EncodeToString(sum[:])
	}
	return withLength([]byte(id))
}

// withLength puts a byte with its length before an id of at most maxID bytes.
func withLength(id []byte) []byte { return append([]byte{byte(len(id))}, id...) }

func newestKey(place []byte) []byte { return append(bytes.Clone(place), newestSuffix) }

// runOf returns the run of a place to which an id belongs, and its key.
func runOf(ids bucket, place, id []byte) (key, run []byte) {
	from, to := slices.Concat(place, id), prefixEnd(place)
	k, v := ids.Cursor(from, to).Seek(from)
	if isBefore(k, to) {
		return k, v
	}
	return newestKey(place), nil
}

// findID looks up the number of a platform id, whether or not the entry still exists.
func (t *tx) findID(p place, id string) (seq uint64, known bool) {
	short := shortID(id)
	key, value := runOf(t.bucket(bucketIDs), p.ids, short)
	run := idRun{bytes: value}
	for run.next() {
		if bytes.Equal(run.last.id, short) {
			return run.last.seq + p.shift, true
		}
	}
	if run.err != nil {
		t.db.logUnreadable(fmt.Errorf("ids of %s at %q: %w", p.from, key, run.err))
	}
	return 0, false
}

// putID stores that an id is known, and since when.
func (t *tx) putID(p place, id string, seq uint64) {
	setID(t, p.ids, knownID{shortID(id), seq - p.shift, hour(t.now)})
}

func hour(t time.Time) uint64 { return uint64(max(t.Unix()/3600, 0)) }

// setID stores an id of a place, or deletes it if its number is 0. A run that is full ends with the new id; the ids
// after that become another run.
func setID(t *tx, place []byte, id knownID) {
	b := t.bucket(bucketIDs)
	key, old := runOf(b, place, id.id)
	from, run, full := idRun{bytes: old}, idRun{bytes: make([]byte, 0, len(old)+len(id.id)+20)}, idRun{}
	more := from.next()
	for ; more && bytes.Compare(from.last.id, id.id) < 0; more = from.next() {
		run.add(from.last)
	}
	if more && bytes.Equal(from.last.id, id.id) {
		more = from.next()
	}
	if id.seq > 0 {
		run.add(id)
		if len(old) >= maxRun {
			full, run = run, idRun{}
		}
	}
	for ; more; more = from.next() {
		run.add(from.last)
	}
	if key[len(place)] == newestSuffix {
		b.set(key, run.bytes)
	} else {
		b.Delete(key) // it may end with another id now
		putRun(b, place, run)
	}
	putRun(b, place, full)
}

// putRun stores a run that is not the newest one, unless it is empty.
func putRun(ids bucket, place []byte, run idRun) {
	if len(run.bytes) > 0 {
		ids.Put(slices.Concat(place, run.last.id), run.bytes)
	}
}

// hasEntry reports whether an entry still exists. seq is its number under the original path.
func (t *tx) hasEntry(p place, seq uint64) bool {
	return t.bucket(bucketLog).Get(seqKey(p.key, seq+p.shift)) != nil
}

func checkRun(value []byte) error {
	run := idRun{bytes: value}
	for run.next() {
	}
	return run.err
}

// upgradeIDs builds runs from the ids that older versions stored, if there are any.
func upgradeIDs(t *tx) {
	if t.Bucket(bucketFormerIDs) == nil {
		return
	}
	for _, path := range t.placesIn(bucketFormerIDs, core.Path{}) {
		place := placeKey(path)
		var all []knownID
		for k, v := range t.bucket(bucketFormerIDs).prefixed(place) {
			seq, n := uvarint(string(v)) // 0 if it cannot be read
			received, _ := uvarint(string(v[n:]))
			id := k[len(place):] // it is a hash already if it was long
			if seq == 0 || len(id) > maxID {
				t.db.logUnreadable(fmt.Errorf("id %q of %s: %w", id, path, errFields))
				continue
			}
			all = append(all, knownID{withLength(id), seq, received})
		}
		slices.SortFunc(all, func(a, b knownID) int { return bytes.Compare(a.id, b.id) })
		t.putRuns(place, all)
	}
}

// putRuns stores all ids of a place, which are sorted.
func (t *tx) putRuns(place []byte, all []knownID) {
	var run idRun
	for _, id := range all {
		if len(run.bytes) >= maxRun {
			putRun(t.bucket(bucketIDs), place, run)
			run = idRun{}
		}
		run.add(id)
	}
	if len(run.bytes) > 0 {
		t.bucket(bucketIDs).Put(newestKey(place), run.bytes)
	}
}
