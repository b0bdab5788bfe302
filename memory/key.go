package memory

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"strings"

	"synthbot/core"
)

// Bytes of place keys. Elements of a path hold no control characters.
const (
	separator    = 0x01 // between two elements
	terminator   = 0x00 // after the last one
	aboveSubtree = 0x02 // above every key of a place and of those below it
)

// placeKey returns the key of a place. The root has none: it is not a place.
func placeKey(p core.Path) []byte {
	s := p.String()
	k := make([]byte, 0, len(s)+1+8+6) // room for what follows in longer keys
	k = append(k, s...)
	for i, c := range k {
		if c == '/' {
			k[i] = separator
		}
	}
	return append(k, terminator)
}

// keyAbove returns the key of a place's parent. It reuses the slice.
func keyAbove(place []byte) []byte {
	place = place[:max(0, bytes.LastIndexByte(place, separator))]
	return append(place, terminator)
}

func parsePlace(place []byte) (core.Path, error) {
	name, ok := bytes.CutSuffix(place, []byte{terminator})
	if !ok {
		return core.Path{}, fmt.Errorf("key %q: no place", place)
	}
	p, err := core.ParsePath(strings.ReplaceAll(string(name), string(rune(separator)), "/"))
	if err != nil {
		return core.Path{}, fmt.Errorf("key %q: %w", place, err)
	}
	return p, nil
}

// parseOrigin is parsePlace that also accepts the root.
func parseOrigin(place []byte) (core.Path, error) {
	if len(place) == 1 && place[0] == terminator {
		return core.Path{}, nil
	}
	return parsePlace(place)
}

// cutOrigin splits a key after its place, which may be the root.
func cutOrigin(key []byte) (path core.Path, rest []byte, err error) {
	place, rest, ok := bytes.Cut(key, []byte{terminator})
	if !ok {
		return core.Path{}, nil, fmt.Errorf("key %q: no place in it", key)
	}
	path, err = parseOrigin(key[:len(place)+1])
	return path, rest, err
}

func cutPath(key []byte) (path core.Path, rest []byte, err error) {
	path, rest, err = cutOrigin(key)
	if err == nil && path.IsZero() {
		err = fmt.Errorf("key %q: no place in it", key)
	}
	return path, rest, err
}

// subtree returns the range of keys, to exclusive, of root and all places below it. For the root of all paths
// it is nil, nil: every key.
func subtree(root core.Path) (from, to []byte) {
	if root.IsZero() {
		return nil, nil
	}
	from = placeKey(root)
	to = bytes.Clone(from)
	to[len(to)-1] = aboveSubtree
	return from, to
}

// isBefore reports whether a key exists and is below to, where a nil to is the end.
func isBefore(key, to []byte) bool { return key != nil && (to == nil || bytes.Compare(key, to) < 0) }

// prefixEnd returns the smallest key above all keys with a prefix; nil if there is none.
func prefixEnd(prefix []byte) []byte {
	k := bytes.Clone(prefix)
	for len(k) > 0 && k[len(k)-1] == 0xff {
		k = k[:len(k)-1]
	}
	if len(k) == 0 {
		return nil
	}
	k[len(k)-1]++
	return k
}

// seqKey appends a number to a place's key, in a new slice.
func seqKey(place []byte, seq uint64) []byte {
	k := make([]byte, 0, len(place)+8+6) // room for what follows in longer keys
	return binary.BigEndian.AppendUint64(append(k, place...), seq)
}

func numberKey(number uint64) []byte { return binary.BigEndian.AppendUint64(nil, number) }

func parseEntryKey(key []byte) (path core.Path, seq uint64, err error) {
	path, rest, err := cutPath(key)
	if err == nil && len(rest) != 8 {
		err = fmt.Errorf("key %q: no number at its end", key)
	}
	if err != nil {
		return core.Path{}, 0, err
	}
	return path, binary.BigEndian.Uint64(rest), nil
}

// parseSeq returns the number that follows the place in a key of the log or due bucket.
func parseSeq(key, place []byte) (seq uint64, ok bool) {
	number := key[len(place):]
	if len(number) != 8 {
		return 0, false
	}
	return binary.BigEndian.Uint64(number), true
}

func turnKey(turn core.TurnID) []byte { return seqKey(placeKey(turn.Path), turn.Seq) }

func journalKey(place []byte, k core.Key) []byte {
	b := seqKey(place, k.Turn.Seq)
	b = binary.BigEndian.AppendUint16(b, k.Round)
	b = binary.BigEndian.AppendUint16(b, k.Step)
	return binary.BigEndian.AppendUint16(b, k.Part)
}

func parseJournalKey(k []byte) (core.Key, error) {
	place, rest, err := cutPath(k)
	if err == nil && len(rest) != 14 {
		err = fmt.Errorf("journal key of %s: %d bytes", place, len(rest))
	}
	if err != nil {
		return core.Key{}, err
	}
	return core.Key{
		Turn:  core.TurnID{Path: place, Seq: binary.BigEndian.Uint64(rest)},
		Round: binary.BigEndian.Uint16(rest[8:]),
		Step:  binary.BigEndian.Uint16(rest[10:]),
		Part:  binary.BigEndian.Uint16(rest[12:]),
	}, nil
}
