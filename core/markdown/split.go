package markdown

import (
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"synthbot/core/txt"
)

// UTF16 returns the length of a text in UTF-16 code units, which some platforms count.
func UTF16(s string) int {
	n := 0
	for _, r := range s {
		n += utf16.RuneLen(r)
	}
	return n
}

// Split cuts Markdown into parts of at most limit by measure, which must be additive: the measure of a text is the sum
// of those of its characters. It cuts between paragraphs if possible, or else between lines, sentences or words, or
// inside of a word, but never inside of a grapheme that fits. If it cuts a code block, it closes the block at the end
// of the part and opens it again in the next one.
//
// The parts together are the source, except for such fence lines and white space at the
// cuts and at both ends. No part is empty.
func Split(source string, limit int, measure func(string) int) []string {
	var parts []string
	for _, p := range split(source, limit, measure) {
		parts = append(parts, p.open+p.body+p.close)
	}
	return parts
}

// part is a piece of the source with the fence lines added to it. gap is the white space that was removed after it.
type part struct{ open, body, close, gap string }

func split(source string, limit int, measure func(string) int) []part {
	s := splitter{limit: max(limit, 1), measure: measure}
	s.rest = strings.TrimRightFunc(source, unicode.IsSpace)
	s.trimStart()
	var parts []part
	for s.rest != "" {
		parts = append(parts, s.next())
	}
	return parts
}

// splitter cuts parts from the start of rest.
type splitter struct {
	limit   int
	measure func(string) int
	rest    string
	open    *fence // the code block that rest begins in
}

// next cuts the next part, which has at least one character.
func (s *splitter) next() (p part) {
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
	rest := trimBlankLines(s.rest[c.next:])
	line, _, _ := strings.Cut(rest, "\n")
	if c.fence != nil && c.fence.closes(line) { // this line replaces the added one, if it fits
		end := len(s.rest) - len(rest) + len(line)
		if s.measure(p.open+s.rest[:end]) <= s.limit {
			p.body, p.close = s.rest[:end], ""
		}
		c = cutPoint{end: end, next: end}
	}
	before := s.rest[c.end:]
	s.rest, s.open = s.rest[c.next:], c.fence
	s.trimStart()
	p.gap = before[:len(before)-len(s.rest)]
	if s.open != nil {
		s.rest, s.open = s.open.unindent(s.rest)
	}
	return p
}

// trimStart removes blank lines at the start of rest, and the indentation of the first line if
// that would take more than a third of a part.
func (s *splitter) trimStart() {
	s.rest = trimBlankLines(s.rest)
	size := len(s.rest) - len(strings.TrimLeftFunc(s.rest, unicode.IsSpace))
	if 3*s.measure(s.rest[:size]) <= s.limit {
		return
	}
	_, last := utf8.DecodeLastRuneInString(s.rest[:size])
	for g := range txt.Graphemes(s.rest[size-last:]) {
		if len(g) > last { // the last space carries an accent
			size -= last
		}
		break
	}
	s.rest = s.rest[size:]
}

// fit returns the size of the longest start of rest that measures at most left.
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

// rank is the kind of a place to cut, the best first.
type rank int

const (
	atParagraph rank = iota
	atLine
	atSentence
	atCodeLine
	atWord       // outside of links, code and bold text
	atStyledWord // inside of these
	ranks
)

// cutPoint is a place to cut: the part ends at end, the next one begins at next.
type cutPoint struct {
	end, next int
	fence     *fence // the code block that is cut
}

func trimBlankLines(s string) string {
	blank := s[:len(s)-len(strings.TrimLeftFunc(s, unicode.IsSpace))]
	return s[strings.LastIndexByte(blank, '\n')+1:]
}

// boundary returns the last start of a character at or before at.
func boundary(s string, at int) int {
	for at < len(s) && at > 0 && !utf8.RuneStart(s[at]) {
		at--
	}
	return at
}

// fence is the line that opens a code block.
type fence struct {
	lead string // what precedes it: indentation and quote marks
	mark string // three or more backticks or tildes
	info string
}

// opening returns the line that opens the block again in the next part, with a short info.
func (f *fence) opening() string {
	if len(f.info) > 40 {
		return f.lead + f.mark
	}
	return f.lead + f.mark + f.info
}

func (f *fence) closing() string { return "\n" + f.lead + f.mark }

// opensFence reads a line that opens a code block, perhaps after quote marks and list marks. It returns nil for other
// lines.
func opensFence(line string) *fence {
	before := itemLead().FindString(line)
	body := line[len(before):]
	mark := body[:fenceSize(body)]
	info := strings.TrimSpace(body[len(mark):])
	if mark == "" || mark[0] == '`' && strings.Contains(info, "`") {
		return nil
	}
	return &fence{lead: itemMark().ReplaceAllLiteralString(before, " "), mark: mark, info: info}
}

func (f *fence) closes(line string) bool {
	lead, body := leading(line)
	size := fenceSize(body)
	return size >= len(f.mark) && body[0] == f.mark[0] && strings.TrimSpace(body[size:]) == "" &&
		indentation(lead) <= indentation(f.lead)+3
}

// endsBefore reports whether line is outside of the quote that the block is in.
func (f *fence) endsBefore(line string) bool {
	lead, _ := leading(line)
	return strings.Count(lead, ">") < strings.Count(f.lead, ">")
}

// unindent removes a list's indentation from the lines of the block that rest begins with. In
// a new part, without the list, a fence must not be indented that far.
func (f *fence) unindent(rest string) (string, *fence) {
	in := indentation(f.lead)
	if in <= 3 || strings.Contains(f.lead, ">") {
		return rest, f
	}
	flat := &fence{mark: f.mark, info: f.info}
	var b strings.Builder
	for line := range strings.Lines(rest) {
		drop := min(in, len(line)-len(strings.TrimLeft(line, " ")))
		b.WriteString(line[drop:])
		rest = rest[len(line):]
		if f.closes(line) {
			break
		}
	}
	return b.String() + rest, flat
}

// List marks count as spaces.
var (
	itemLead = txt.Pattern(`^([ \t>]|([-*+]|\d{1,9}[.)]) )*`)
	itemMark = txt.Pattern(`[^ \t>]`)
)

// leading cuts a line into its indentation and quote marks, and its text.
func leading(line string) (before, body string) {
	body = strings.TrimLeft(line, " \t>")
	return line[:len(line)-len(body)], body
}

// fenceSize counts the backticks or tildes at the start of s. It returns 0 if they are too few for a fence.
func fenceSize(s string) int {
	n := max(len(s)-len(strings.TrimLeft(s, "`")), len(s)-len(strings.TrimLeft(s, "~")))
	if n < 3 {
		return 0
	}
	return n
}

// indentation returns how many characters of a lead follow its last quote mark.
func indentation(lead string) int {
	return len(lead) - 1 - strings.LastIndexByte(lead, '>')
}
