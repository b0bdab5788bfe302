package markdown

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"synthbot/core/txt"
)

// beyond is how far a survey looks past the room, in bytes, so that the white
// space after a part is seen.
const beyond = 256

// survey looks over the beginning of a splitter's rest for places to cut.
type survey struct {
	s      *splitter
	open   string
	room   int
	window string
	bounds []bool // of graphemes, by byte
	best   [ranks]cutPoint

	fence  *fence // the code block that the walk is in
	held   *fence // the code block that the end of the room is in
	code   int    // where its first line begins
	within int    // room where the fence must be closed too; -1: not known
	styles styles
	// What the line before was.
	blank, title, ended bool
	text                int // where the text before the blank lines ended
}

func newSurvey(s *splitter, open string, room int) *survey {
	v := &survey{s: s, open: open, room: room, fence: s.open, held: s.open, within: -1}
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

// walk goes line by line as far as a part can end.
func (v *survey) walk() {
	for start := 0; start < len(v.window) && start <= v.room+1; {
		end, next := len(v.window), len(v.window)
		i := strings.IndexByte(v.window[start:], '\n')
		if i >= 0 {
			end, next = start+i, start+i+1
		}
		v.line(start, end)
		if end < v.room && end < len(v.window) {
			v.held = v.fence
		}
		start = next
	}
}

// line looks at one line: whether to cut before it, and where inside.
func (v *survey) line(start, end int) {
	line := v.window[start:end]
	if v.fence != nil {
		v.codeLine(start, end, line)
		return
	}
	if strings.TrimSpace(line) == "" {
		v.blank, v.styles = true, styles{}
		return
	}
	opened := opensFence(line)
	switch {
	case start == 0 || v.title: // a title is not left alone at the end
	case v.blank || opened != nil || v.ended || isTitle(line):
		v.offer(atParagraph, v.text, start)
	default:
		v.offer(atLine, v.text, start)
	}
	v.blank, v.ended, v.title = false, false, isTitle(line)
	v.text = end
	if opened != nil {
		v.setFence(opened)
		v.code = end + 1
		return
	}
	v.words(start, end)
}

func (v *survey) codeLine(start, end int, line string) {
	if v.fence.left(line) {
		v.setFence(nil)
		v.line(start, end)
		return
	}
	if v.fence.closes(line) {
		v.setFence(nil)
		v.ended, v.blank, v.title, v.styles, v.text = true, false, false, styles{}, end
		return
	}
	if start > v.code {
		v.offer(atCodeLine, start-1, start)
	}
	v.text = end
}

func (v *survey) setFence(f *fence) { v.fence, v.within = f, -1 }

// offer notes a place to cut.
func (v *survey) offer(r rank, end, next int) {
	c := cutPoint{end: len(strings.TrimRightFunc(v.window[:end], unicode.IsSpace)), next: next}
	room := v.room
	if r == atCodeLine {
		room, c.fence = v.roomInCode(), v.fence
	}
	if c.end > 0 && c.end <= room && v.bounds[c.end] && v.bounds[min(next, len(v.window))] {
		v.best[r] = c
	}
}

// roomInCode is the room that is left when the code block is closed as well; if
// that is next to nothing, it is not closed at all.
func (v *survey) roomInCode() int {
	if v.within >= 0 {
		return v.within
	}
	closing := "\n" + v.fence.closing()
	v.within = 0
	if 2*v.s.measure(v.fence.opening()+closing) <= v.s.limit {
		v.within = v.s.fit(v.open, closing)
	}
	return v.within
}

// words looks for the ends of sentences and words in a line.
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

// Characters that end sentences: the wide ones need no space behind them.
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

// hard cuts where nothing invites to: behind the last grapheme that fits, or
// inside of one that is larger than a part.
func (v *survey) hard() cutPoint {
	room, f := v.room, v.held
	if f != nil {
		v.setFence(f)
		room = v.roomInCode()
		if room == 0 {
			room, f = v.room, nil
		}
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

// styles follows, roughly, what a cut inside of a line would break.
type styles struct {
	code, strong, label, address bool
	last                         rune
}

func (s *styles) open() bool { return s.code || s.strong || s.label || s.address }

// take looks at the next character of a line; rest begins with it.
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
