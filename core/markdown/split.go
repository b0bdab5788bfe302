package markdown

import (
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"synthbot/core/txt"
)

// UTF16 measures a text in UTF-16 units, as some platforms do.
func UTF16(s string) int {
	n := 0
	for _, r := range s {
		n += utf16.RuneLen(r)
	}
	return n
}

// Split cuts Markdown source into parts of at most limit by measure, which must
// be the sum of what the characters of a text measure. It cuts between paragraphs, else lines, else
// sentences, else words, and inside of a word only where nothing else is left,
// but never inside of a grapheme that fits. A code block that is cut is closed
// at the end of its part and opened again in the next one.
//
// The parts joined are the source, apart from such fence lines and from white
// space at the cuts and at both ends. No part is empty.
func Split(source string, limit int, measure func(string) int) []string {
	var parts []string
	for _, p := range split(source, limit, measure) {
		parts = append(parts, p.open+p.body+p.close)
	}
	return parts
}

// part is one part: a piece of the source and the fence lines added to it. gap is
// the white space of the source that was dropped behind it.
type part struct{ open, body, close, gap string }

func split(source string, limit int, measure func(string) int) []part {
	s := splitter{limit: max(limit, 1), measure: measure}
	s.rest = strings.TrimRightFunc(source, unicode.IsSpace)
	s.settle()
	var parts []part
	for s.rest != "" {
		parts = append(parts, s.next())
	}
	return parts
}

// splitter takes part after part off rest.
type splitter struct {
	limit   int
	measure func(string) int
	rest    string
	open    *fence // the code block that rest begins in
}

// next takes the next part, which holds at least one character.
func (s *splitter) next() part {
	var p part
	if s.open != nil {
		p.open = s.open.opening() + "\n"
	}
	left := s.limit - s.measure(p.open)
	room := s.fit(left)
	if room == len(s.rest) {
		p.body, s.rest = s.rest, ""
		return p
	}
	c := newSurvey(s, left, room).choose()
	p.body = s.rest[:c.end]
	if c.fence != nil {
		p.close = c.fence.closing()
	}
	s.take(c, &p)
	return p
}

// take drops what c cuts off. A code block that ends right behind the cut ends
// in p, by its own last line.
func (s *splitter) take(c cutPoint, p *part) {
	if line, ok := s.lastLine(c); ok {
		own := s.rest[:c.next+line]
		if s.measure(p.open+own) <= s.limit {
			p.body, p.close = own, ""
		}
		c = cutPoint{end: c.next + line, next: c.next + line}
	}
	before := s.rest[c.end:]
	s.rest, s.open = s.rest[c.next:], c.fence
	s.settle()
	p.gap = before[:len(before)-len(s.rest)]
	if s.open != nil {
		s.rest, s.open = s.open.shift(s.rest)
	}
}

// lastLine is the size of what is left of a cut code block, if nothing but its
// last line is.
func (s *splitter) lastLine(c cutPoint) (int, bool) {
	if c.fence == nil {
		return 0, false
	}
	rest := trimBlankLines(s.rest[c.next:])
	line, _, _ := strings.Cut(rest, "\n")
	return len(s.rest) - len(rest) - c.next + len(line), c.fence.closes(line)
}

// settle drops the white space that a part would begin with, but keeps the
// indentation of its first line unless it takes up the part.
func (s *splitter) settle() {
	s.rest = trimBlankLines(s.rest)
	size := len(s.rest) - len(strings.TrimLeftFunc(s.rest, unicode.IsSpace))
	if 3*s.measure(s.rest[:size]) <= s.limit {
		return
	}
	_, last := utf8.DecodeLastRuneInString(s.rest[:size])
	for g := range txt.Graphemes(s.rest[size-last:]) {
		if len(g) > last { // an accent on a space
			size -= last
		}
		break
	}
	s.rest = s.rest[size:]
}

// fit is the size of the longest beginning of rest that measures at most left.
func (s *splitter) fit(left int) int {
	end := 0
	for end < len(s.rest) {
		_, size := utf8.DecodeRuneInString(s.rest[end:])
		left -= s.measure(s.rest[end : end+size])
		if left < 0 {
			break
		}
		end += size
	}
	return end
}

// rank sorts the places where a text may be cut, the best first.
type rank int

const (
	atParagraph rank = iota
	atLine
	atSentence
	atCodeLine
	atWord       // outside of links, code and emphasis
	atStyledWord // inside of them
	ranks
)

// cutPoint is a place to cut: the part ends at end, the next one begins at next.
type cutPoint struct {
	end, next int
	fence     *fence // the code block that is cut
}

func trimBlankLines(s string) string {
	for {
		line, rest, ok := strings.Cut(s, "\n")
		if !ok || strings.TrimSpace(line) != "" {
			return s
		}
		s = rest
	}
}

// boundary is the last beginning of a character at or before at.
func boundary(s string, at int) int {
	for at < len(s) && at > 0 && !utf8.RuneStart(s[at]) {
		at--
	}
	return at
}
