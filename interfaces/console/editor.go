package console

import (
	"strings"
	"unicode"

	"synthbot/core"
	"synthbot/core/txt"
)

// maxHistory is how many lines the arrow keys reach back.
const maxHistory = 500

// editor is the line that is being typed, and those typed before. It knows
// nothing of a terminal.
type editor struct {
	text    string
	pos     int // of the cursor, in bytes, between graphemes
	killed  string
	history []string // oldest first
	at      int      // the line of history that is shown; len(history): none
	draft   string   // what was typed before history was looked at
	full    bool     // something was left out because the line is too long
}

func newEditor(history []string) *editor {
	e := &editor{}
	for _, h := range history {
		e.remember(clean(h, true))
	}
	return e
}

func (e *editor) remember(line string) {
	if n := len(e.history); line != "" && (n == 0 || e.history[n-1] != line) {
		e.history = append(e.history, line)
	}
	e.history = e.history[max(0, len(e.history)-maxHistory):]
	e.at = len(e.history)
}

// take returns the line and begins a new one.
func (e *editor) take() string {
	line := e.text
	e.remember(strings.TrimSpace(line))
	e.text, e.pos, e.draft, e.full = "", 0, "", false
	return line
}

// press changes the line as a key asks.
func (e *editor) press(k key) {
	switch k.code {
	case insert:
		e.insert(k.text)
	case backspace:
		e.cut(e.before(), e.pos)
	case del, endOrDel:
		e.cut(e.pos, e.after())
	case left:
		e.pos = e.before()
	case right:
		e.pos = e.after()
	case wordLeft:
		e.pos = e.wordBefore()
	case wordRight:
		e.pos = e.wordAfter()
	case home:
		e.pos = e.lineStart()
	case end:
		e.pos = e.lineEnd()
	case killRight:
		e.kill(e.pos, e.lineEnd())
	case killLeft:
		e.kill(e.lineStart(), e.pos)
	case killWord:
		e.kill(e.wordBefore(), e.pos)
	case yank:
		e.insert(e.killed)
	case swap:
		e.swap()
	case up:
		e.show(e.at - 1)
	case down:
		e.show(e.at + 1)
	}
}

func (e *editor) insert(s string) {
	s = strings.ReplaceAll(clean(s+"x", true), "\t", "    ") // x: keep white space at the end
	s = s[:len(s)-1]
	if len(e.text)+len(s) > core.MaxText {
		s, e.full = "", true
	}
	e.text = e.text[:e.pos] + s + e.text[e.pos:]
	e.pos += len(s)
	if e.pos < len(e.text) { // what was typed may have joined what stands behind it
		e.pos = boundary(e.text, e.pos)
	}
}

// boundary is the end of the grapheme that holds the byte before at.
func boundary(s string, at int) int {
	start := 0
	for g := range txt.Graphemes(s) {
		if start >= at {
			return start
		}
		start += len(g)
	}
	return start
}

// before is the beginning of the grapheme in front of the cursor.
func (e *editor) before() int {
	start := 0
	for g := range txt.Graphemes(e.text[:e.pos]) {
		if start+len(g) >= e.pos {
			return start
		}
		start += len(g)
	}
	return start
}

// after is the end of the grapheme behind the cursor.
func (e *editor) after() int {
	for g := range txt.Graphemes(e.text[e.pos:]) {
		return e.pos + len(g)
	}
	return e.pos
}

func (e *editor) wordBefore() int {
	s := strings.TrimRightFunc(e.text[:e.pos], unicode.IsSpace)
	return strings.LastIndexFunc(s, unicode.IsSpace) + 1
}

func (e *editor) wordAfter() int {
	s := strings.TrimLeftFunc(e.text[e.pos:], unicode.IsSpace)
	if i := strings.IndexFunc(s, unicode.IsSpace); i >= 0 {
		s = s[i:]
	} else {
		s = ""
	}
	return len(e.text) - len(s)
}

func (e *editor) lineStart() int { return strings.LastIndexByte(e.text[:e.pos], '\n') + 1 }

func (e *editor) lineEnd() int {
	if i := strings.IndexByte(e.text[e.pos:], '\n'); i >= 0 {
		return e.pos + i
	}
	return len(e.text)
}

func (e *editor) cut(from, to int) {
	e.text = e.text[:from] + e.text[to:]
	e.pos = from
}

func (e *editor) kill(from, to int) {
	if from < to {
		e.killed = e.text[from:to]
		e.cut(from, to)
	}
}

// swap exchanges the graphemes around the cursor, at the end the last two.
func (e *editor) swap() {
	if e.pos == len(e.text) {
		e.pos = e.before()
	}
	from, to := e.before(), e.after()
	e.text = e.text[:from] + e.text[e.pos:to] + e.text[from:e.pos] + e.text[to:]
	e.pos = to
}

// show puts a line of history in the place of what is typed.
func (e *editor) show(i int) {
	if i < 0 || i > len(e.history) {
		return
	}
	if e.at == len(e.history) {
		e.draft = e.text
	}
	e.at, e.text = i, e.draft
	if i < len(e.history) {
		e.text = e.history[i]
	}
	e.pos = len(e.text)
}
