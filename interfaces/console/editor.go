package console

import (
	"strings"
	"unicode"

	"synthbot/core"
	"synthbot/core/txt"
)

// maxHistory is how many lines the history holds.
const maxHistory = 500

// editor is the state of the edited line and its history. It does not draw anything.
type editor struct {
	text    string
	pos     int      // of the cursor, in bytes, between graphemes
	killed  string   // the last cut text, for yank
	history []string // oldest first
	at      int      // index of the shown history line; len(history): none
	draft   string   // the user's line while the history is shown
}

func newEditor(history []string) *editor {
	e := &editor{}
	for _, h := range history {
		e.remember(clean(h))
	}
	return e
}

func (e *editor) remember(line string) {
	n := len(e.history)
	if line != "" && (n == 0 || e.history[n-1] != line) {
		e.history = append(e.history, line)
	}
	e.history = e.history[max(0, len(e.history)-maxHistory):]
	e.at = len(e.history)
}

func (e *editor) take() string {
	line := e.text
	e.remember(strings.TrimSpace(line))
	e.text, e.pos, e.draft = "", 0, ""
	return line
}

func (e *editor) press(k key) {
	switch k.code {
	case insert:
		e.insert(k.text)
	case backspace:
		e.cut(e.prevGrapheme(), e.pos)
	case leave: // clears the line; on an empty one, screen.press ends the conversation
		e.text, e.pos, e.draft, e.at = "", 0, "", len(e.history)
	case del, deleteOrEnd:
		e.cut(e.pos, e.nextGrapheme())
	case left:
		e.pos = e.prevGrapheme()
	case right:
		e.pos = e.nextGrapheme()
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
		e.showHistory(e.at - 1)
	case down:
		e.showHistory(e.at + 1)
	}
}

func (e *editor) insert(s string) {
	s = strings.ReplaceAll(txt.Lines(s), "\t", "    ")
	if len(e.text)+len(s) > core.MaxText {
		return
	}
	e.text = e.text[:e.pos] + s + e.text[e.pos:]
	_, e.pos = grapheme(e.text, e.pos+len(s)) // s may have joined the next grapheme
}

// grapheme returns the bounds of the grapheme that contains the byte before at.
func grapheme(s string, at int) (start, end int) {
	for g := range txt.Graphemes(s) {
		if end >= at {
			break
		}
		start, end = end, end+len(g)
	}
	return start, end
}

// prevGrapheme returns the start of the grapheme before the cursor.
func (e *editor) prevGrapheme() int {
	start, _ := grapheme(e.text[:e.pos], e.pos)
	return start
}

// nextGrapheme returns the end of the grapheme after the cursor.
func (e *editor) nextGrapheme() int {
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
	word := strings.IndexFunc(s, unicode.IsSpace)
	if word < 0 {
		return len(e.text)
	}
	return len(e.text) - len(s) + word
}

func (e *editor) lineStart() int { return strings.LastIndexByte(e.text[:e.pos], '\n') + 1 }

func (e *editor) lineEnd() int {
	line, _, _ := strings.Cut(e.text[e.pos:], "\n")
	return e.pos + len(line)
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

// swap exchanges the graphemes around the cursor; at the end, the last two.
func (e *editor) swap() {
	if e.pos == len(e.text) {
		e.pos = e.prevGrapheme()
	}
	from, to := e.prevGrapheme(), e.nextGrapheme()
	e.text = e.text[:from] + e.text[e.pos:to] + e.text[from:e.pos] + e.text[to:]
	e.pos = to
}

// showHistory replaces the edited line by the i-th line of the history.
func (e *editor) showHistory(i int) {
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
