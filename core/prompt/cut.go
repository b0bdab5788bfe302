package prompt

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"synthbot/core/txt"
)

const markRoom = 40 // for the mark of a cut

// cut shortens s so that its JSON has at most room characters (at least markRoom). Beginning and end stay, because a
// question is often at the end of a pasted text. Between them a mark says how much is missing.
func cut(s string, room int) string {
	if textSize(s) <= room {
		return s
	}
	room = max(room, markRoom) - markRoom
	i := strings.IndexFunc(s, beyond(room-room/4))
	last := i + strings.LastIndexFunc(s[i:], beyond(room/4))
	_, n := utf8.DecodeRuneInString(s[last:])
	j := last + n
	return s[:i] + " […" + strconv.Itoa(utf8.RuneCountInString(s[i:j])) + " characters cut…] " + s[j:]
}

// beyond returns a function that takes a text rune by rune, and reports whether it exceeds room characters of JSON.
func beyond(room int) func(rune) bool {
	return func(r rune) bool {
		room -= txt.WidthJSON(r)
		return room < 0
	}
}

// level returns the largest maximum for all sizes with which their sum is at most total: only the longest are cut.
func level(sizes []int, total int) int {
	sorted := slices.Clone(sizes)
	slices.Sort(sorted)
	for i, s := range sorted {
		share := total / (len(sorted) - i)
		if s > share {
			return max(share, 0)
		}
		total -= s
	}
	return math.MaxInt
}

// slot is a text within JSON that may be shortened.
type slot struct {
	full     string // before it is shortened
	from, to int32  // the position of its encoding, quotes included
	size     int32  // of the encoding, without quotes
	bulk     bool   // a file's text or an action's output
	plain    bool   // full is JSON, and becomes a string when it is cut
}

// part is a piece of JSON, measured once, with the texts in it that may be shortened.
type part struct {
	raw   string
	size  int
	slots []slot
}

func (p *part) sizes() []int {
	sizes := make([]int, len(p.slots))
	for i := range p.slots {
		sizes[i] = int(p.slots[i].size)
	}
	return sizes
}

// shorten cuts the i-th text to room characters.
func (p *part) shorten(i, room int) {
	s := &p.slots[i]
	if int(s.size) <= room {
		return
	}
	if s.plain {
		room -= 2 // it gets quotes
	}
	w := new(writer)
	w.quote(cut(s.full, room))
	encoded := w.String()
	old := size(p.raw[s.from:s.to])
	p.raw = p.raw[:s.from] + encoded + p.raw[s.to:]
	grown := int32(len(encoded)) - (s.to - s.from)
	p.size += size(encoded) - old
	s.to += grown
	s.size, s.plain = int32(size(encoded)-2), false
	for j := i + 1; j < len(p.slots); j++ {
		p.slots[j].from += grown
		p.slots[j].to += grown
	}
}
