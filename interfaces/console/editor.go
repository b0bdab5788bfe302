package console

import (
	"bytes"
	"strings"
	"unicode"
	"unicode/utf8"

	"synthbot/core"
	"synthbot/core/txt"
)

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
	e.history = e.history[max(0, len(e.history)-500):]
	e.at = len(e.history)
}

func (e *editor) take() string {
	line := e.text
	e.remember(strings.TrimSpace(line))
	e.text, e.pos, e.draft = "", 0, ""
	return line
}

func (e *editor) press(key string) {
	switch key {
	case "\x7f", "\b": // Backspace
		e.cut(e.prevGrapheme(), e.pos)
	case leave: // on an empty line, screen.press ends the conversation
		e.text, e.pos, e.draft, e.at = "", 0, "", len(e.history)
	case deleteOrEnd, "\x1b[3~": // Delete
		e.cut(e.pos, e.nextGrapheme())
	case "\x1b[D", "\x02": // Left, Ctrl-B
		e.pos = e.prevGrapheme()
	case "\x1b[C", "\x06": // Right, Ctrl-F
		e.pos = e.nextGrapheme()
	case "\x1b[1;5D", "\x1bb": // Ctrl-Left, Alt-B
		e.pos = e.wordBefore()
	case "\x1b[1;5C", "\x1bf": // Ctrl-Right, Alt-F
		e.pos = e.wordAfter()
	case "\x1b[H", "\x1b[1~", "\x1b[7~", "\x01": // Home, Ctrl-A
		e.pos = e.lineStart()
	case "\x1b[F", "\x1b[4~", "\x1b[8~", "\x05": // End, Ctrl-E
		e.pos = e.lineEnd()
	case "\x0b": // Ctrl-K
		e.kill(e.pos, e.lineEnd())
	case "\x15": // Ctrl-U
		e.kill(e.lineStart(), e.pos)
	case "\x17", "\x1b\x7f", "\x1b\b": // Ctrl-W, Alt-Backspace
		e.kill(e.wordBefore(), e.pos)
	case "\x19": // Ctrl-Y
		e.insert(e.killed)
	case "\x14": // Ctrl-T
		e.swap()
	case up:
		e.showHistory(e.at - 1)
	case down:
		e.showHistory(e.at + 1)
	default:
		if key[0] >= ' ' || key[0] == '\n' { // else the key is unknown
			e.insert(key)
		}
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

func (e *editor) prevGrapheme() int {
	start, _ := grapheme(e.text[:e.pos], e.pos)
	return start
}

func (e *editor) nextGrapheme() int {
	for g := range txt.Graphemes(e.text[e.pos:]) {
		return e.pos + len(g)
	}
	return e.pos
}

func (e *editor) wordBefore() int {
	s := strings.TrimRightFunc(e.text[:e.pos], unicode.IsSpace)
	isLetter := func(r rune) bool { return !unicode.IsSpace(r) }
	return len(strings.TrimRightFunc(s, isLetter))
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

// A key is what a terminal sends for it, or a typed or pasted text. The editor knows further keys.
const (
	enter       = "\r"
	leave       = "\x03" // Ctrl-C: clears the line, or leaves if it is empty
	deleteOrEnd = "\x04" // Ctrl-D
	redraw      = "\x0c" // Ctrl-L
	tab         = "\t"
	backTab     = "\x1b[Z" // Shift-Tab
	up          = "\x1b[A"
	down        = "\x1b[B"
)

// Limits of the bytes that a decoder keeps until a key is complete.
const (
	maxSequence = 64      // of a control sequence
	maxPaste    = 2 << 20 // of a paste
)

const (
	escape     = 0x1b
	deleteKey  = 0x7f
	pasteStart = "\x1b[200~"
	pasteEnd   = "\x1b[201~"
)

// decoder converts the bytes from a terminal to keys. It keeps the bytes of an incomplete key.
type decoder struct{ rest []byte }

func (d *decoder) feed(data string) (keys []string) {
	d.rest = append(d.rest, data...)
	for len(d.rest) > 0 {
		k, size := decode(d.rest)
		if size == 0 {
			break
		}
		d.rest = d.rest[size:]
		if k != "" {
			keys = append(keys, k)
		}
	}
	return keys
}

// decode reads the first key of b, in one spelling; "": it is ignored. Its size is 0 if more bytes are needed.
func decode(b []byte) (key string, size int) {
	switch c := b[0]; {
	case c == escape:
		return decodeEscape(b)
	case c == '\n':
		return enter, 1
	case c == 'P'-'@':
		return up, 1
	case c == 'N'-'@':
		return down, 1
	case c < ' ' || c == deleteKey:
		return string(rune(c)), 1
	}
	for size < len(b) && b[size] >= ' ' && b[size] != deleteKey && utf8.FullRune(b[size:]) {
		_, n := utf8.DecodeRune(b[size:])
		size += n
	}
	return strings.ToValidUTF8(string(b[:size]), "\uFFFD"), size
}

func decodeEscape(b []byte) (key string, size int) {
	if len(b) < 2 {
		return "", 0
	}
	switch b[1] {
	case '[':
		if bytes.HasPrefix(b, []byte(pasteStart)) {
			return decodePaste(b)
		}
		return decodeSequence(b)
	case 'O':
		if len(b) < 3 {
			return "", 0
		}
		return "\x1b[" + string(b[2:3]), 3
	case ']', 'P', '_', '^':
		return decodeReport(b)
	case '\r', '\n': // Alt-Enter
		return "\n", 2
	case escape, 'C' - '@', 'D' - '@':
		return "", 1
	}
	return string(b[:2]), 2
}

// decodePaste reads a pasted text between pasteStart and pasteEnd.
func decodePaste(b []byte) (key string, size int) {
	text, rest, whole := bytes.Cut(b[len(pasteStart):], []byte(pasteEnd))
	if !whole && len(b) <= maxPaste {
		return "", 0
	}
	return strings.ReplaceAll(clean(string(text)), "\t", "    "), len(b) - len(rest)
}

// decodeSequence reads "ESC [ parameters final". It leaves out parameters that make no difference.
func decodeSequence(b []byte) (key string, size int) {
	for i := 2; i < len(b) && i < maxSequence; i++ {
		if b[i] < ' ' || b[i] > '~' {
			return "", i // incomplete
		}
		if b[i] < '@' {
			continue
		}
		parameters, final := string(b[2:i]), string(b[i])
		byWord := strings.HasSuffix(parameters, ";3") || strings.HasSuffix(parameters, ";5")
		switch {
		case final == "~":
			return string(b[:i+1]), i + 1
		case byWord && (final == "C" || final == "D"):
			return "\x1b[1;5" + final, i + 1
		}
		return "\x1b[" + final, i + 1
	}
	if len(b) >= maxSequence {
		return "", maxSequence
	}
	return "", 0
}

// decodeReport skips a report of the terminal, such as an OSC or DCS sequence.
func decodeReport(b []byte) (key string, size int) {
	for i := 2; i < len(b); i++ {
		if b[i] == '\a' || b[i] == '\\' && b[i-1] == escape {
			return "", i + 1
		}
		if i >= maxSequence {
			return "", i
		}
	}
	return "", 0
}
