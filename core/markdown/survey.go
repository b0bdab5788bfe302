package markdown

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"synthbot/core/txt"
)

// survey searches the start of a splitter's rest for places to cut.
type survey struct {
	s      *splitter
	left   int // the most that the part may measure
	room   int // how many bytes of rest that is
	window string
	bounds []bool // whether a grapheme begins, by byte
	best   [ranks]cutPoint

	fence    *fence // the code block of the current line
	endFence *fence // the code block at the end of the room
	code     int    // start of the first line in fence
	used     int    // the measure of the previous lines
	styles   styles
	// What the previous line was.
	title bool
	ended bool // it was blank, or the end of a code block
	text  int  // end of the text before the blank lines
}

func newSurvey(s *splitter, left, room int) *survey {
	v := &survey{s: s, left: left, room: room, fence: s.open}
	const beyond = 256 // bytes after the room, to see the white space after a part
	v.window = s.rest[:boundary(s.rest, min(room+beyond, len(s.rest)))]
	v.bounds = make([]bool, len(v.window)+1)
	at := 0
	for g := range txt.Graphemes(v.window) {
		v.bounds[at] = true
		at += len(g)
	}
	v.bounds[at] = len(v.window) == len(s.rest) || at > room
	return v
}

// choose returns the last place to cut of the best rank, skipping ranks above atCodeLine if the
// part would be less than a third full.
func (v *survey) choose() cutPoint {
	for start := 0; start < len(v.window) && start <= v.room+1; {
		if start <= v.room {
			v.endFence = v.fence
		}
		line, _, _ := strings.Cut(v.window[start:], "\n")
		v.line(start, line)
		v.used += v.s.measure(line + "\n")
		start += len(line) + 1
	}
	for r, c := range v.best {
		if c.end > 0 && (c.end >= v.room/3 || rank(r) >= atCodeLine) {
			return c
		}
	}
	return v.cutAnywhere()
}

// line offers the places to cut before and inside of a line.
func (v *survey) line(start int, line string) {
	if v.fence != nil && v.fence.endsBefore(line) {
		v.fence = nil
	}
	switch {
	case v.fence != nil:
		v.codeLine(start, line)
	case strings.TrimSpace(line) == "":
		v.ended, v.styles = true, styles{}
	default:
		v.textLine(start, line)
	}
}

func (v *survey) textLine(start int, line string) {
	opened := opensFence(line)
	switch {
	case start == 0 || v.title: // a part must not end with a title
	case v.ended || opened != nil || isTitle(line):
		v.offer(atParagraph, v.text, start)
	default:
		v.offer(atLine, v.text, start)
	}
	v.ended, v.title = false, isTitle(line)
	v.text = start + len(line)
	if opened != nil {
		v.fence, v.code = opened, v.text+1
		return
	}
	v.words(start, v.text)
}

func (v *survey) codeLine(start int, line string) {
	if v.fence.closes(line) {
		v.fence = nil
		v.ended, v.title, v.styles = true, false, styles{}
	} else if start > v.code {
		v.offer(atCodeLine, start-1, start)
	}
	v.text = start + len(line)
}

// offer records a place to cut, if the part fits.
func (v *survey) offer(r rank, end, next int) {
	c := cutPoint{end: len(strings.TrimRightFunc(v.window[:end], unicode.IsSpace)), next: next}
	if r == atCodeLine {
		c.fence = v.fence
		if v.used-v.s.measure(v.window[c.end:next]) > v.leftIn(v.fence) {
			return
		}
	}
	if c.end > 0 && c.end <= v.room && v.bounds[c.end] && v.bounds[min(next, len(v.window))] {
		v.best[r] = c
	}
}

// leftIn returns how much a part may measure without the line that closes a code block. It returns -1 if the
// added fence lines would take half of a part or more: then the block is not closed.
func (v *survey) leftIn(f *fence) int {
	closing := f.closing()
	if 2*v.s.measure(f.opening()+closing) > v.s.limit {
		return -1
	}
	return v.left - v.s.measure(closing)
}

// words offers the ends of sentences and words in a line.
func (v *survey) words(start, end int) {
	ended := false // the last characters end a sentence
	for i := start; i < end; {
		r, size := utf8.DecodeRuneInString(v.window[i:end])
		switch {
		case unicode.IsSpace(r):
			next := end - len(strings.TrimLeftFunc(v.window[i:end], unicode.IsSpace))
			if next < end && strings.TrimSpace(v.window[start:i]) != "" {
				v.offerWord(ended, i, next)
			}
			i, ended = next, false
			continue
		case strings.ContainsRune(wideStops, r):
			v.offerWord(true, i+size, i+size)
			ended = true
		case strings.ContainsRune(stops, r):
			ended = true
		case ended && strings.ContainsRune(closers, r):
		default:
			ended = false
		}
		v.styles.take(v.window[i:end], r)
		i += size
	}
}

// Characters that end sentences. The wide ones need no space after them.
const (
	stops     = ".!?…:;"
	wideStops = "。！？；"
	closers   = ")]}\"'”’»*_`~」』）"
)

func (v *survey) offerWord(sentence bool, end, next int) {
	switch {
	case v.styles.open():
		v.offer(atStyledWord, end, next)
	case sentence:
		v.offer(atSentence, end, next)
	default:
		v.offer(atWord, end, next)
	}
}

// cutAnywhere returns the place after the last grapheme that fits, or inside of one that is larger than a part.
func (v *survey) cutAnywhere() cutPoint {
	room, f := v.room, v.endFence
	if f != nil {
		room = v.s.fit(v.leftIn(f))
	}
	if room == 0 {
		room, f = v.room, nil
	}
	for at := min(room, len(v.window)); at > 0; at-- {
		text := strings.TrimRightFunc(v.window[:at], unicode.IsSpace)
		switch {
		case !v.bounds[at] || text == "":
		case f != nil:
			return cutPoint{end: at, next: at, fence: f}
		default:
			return cutPoint{end: len(text), next: at}
		}
	}
	_, first := utf8.DecodeRuneInString(v.s.rest)
	at := max(boundary(v.s.rest, min(room, len(v.s.rest))), first)
	return cutPoint{end: at, next: at, fence: f}
}

func isTitle(line string) bool {
	line = strings.TrimLeft(line, " >")
	level := len(line) - len(strings.TrimLeft(line, "#"))
	return level > 0 && level <= 6 && strings.HasPrefix(line[level:], " ")
}

// styles follows, roughly, the markup that a cut inside of a line would break.
type styles struct {
	code, strong, label, address bool
	last                         rune
}

func (s *styles) open() bool { return s.code || s.strong || s.label || s.address }

// take reads the next character of a line. rest begins with it.
func (s *styles) take(rest string, r rune) {
	switch {
	case r == '`':
		s.code = !s.code
	case s.code:
	case r == '*' && s.last == '*':
		s.strong, r = !s.strong, 0
	case r == '[':
		s.label = true
	case r == ']' && s.label:
		s.label, s.address = false, strings.HasPrefix(rest, "](")
	case r == ')' && s.address:
		s.address = false
	}
	s.last = r
}
