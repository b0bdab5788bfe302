package console

import (
	"bytes"
	"strings"
	"unicode/utf8"
)

// code is the meaning of a key press.
type code uint8

const (
	ignored code = iota
	insert       // text
	enter
	leave       // Ctrl-C: clears the line, or leaves if it is empty
	deleteOrEnd // Ctrl-D
	backspace
	del
	left
	right
	wordLeft
	wordRight
	home
	end
	up
	down
	killRight // Ctrl-K
	killLeft  // Ctrl-U
	killWord  // Ctrl-W
	yank      // Ctrl-Y
	swap      // Ctrl-T
	redraw    // Ctrl-L
	tab
	backTab // Shift-Tab
)

// key is one key press, or one paste.
type key struct {
	code code
	text string
}

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

func (d *decoder) feed(data string) []key {
	d.rest = append(d.rest, data...)
	var keys []key
	for len(d.rest) > 0 {
		k, size := decode(d.rest)
		if size == 0 {
			break
		}
		d.rest = d.rest[size:]
		if k.code != ignored {
			keys = append(keys, k)
		}
	}
	return keys
}

// decode reads the first key of b. Its size is 0 if more bytes are needed.
func decode(b []byte) (key, int) {
	switch c := b[0]; {
	case c == escape:
		return decodeEscape(b)
	case c == deleteKey:
		return key{code: backspace}, 1
	case c < ' ':
		return key{code: controls[c]}, 1
	}
	end := 0
	for end < len(b) && b[end] >= ' ' && b[end] != deleteKey && utf8.FullRune(b[end:]) {
		_, size := utf8.DecodeRune(b[end:])
		end += size
	}
	return key{insert, strings.ToValidUTF8(string(b[:end]), "\uFFFD")}, end
}

var controls = [' ']code{
	'\r': enter, '\n': enter, 'A' - '@': home, 'B' - '@': left, 'C' - '@': leave, 'D' - '@': deleteOrEnd,
	'E' - '@': end, 'F' - '@': right, 'H' - '@': backspace, 'I' - '@': tab, 'K' - '@': killRight, 'L' - '@': redraw,
	'N' - '@': down, 'P' - '@': up, 'T' - '@': swap, 'U' - '@': killLeft, 'W' - '@': killWord, 'Y' - '@': yank,
}

func decodeEscape(b []byte) (key, int) {
	if len(b) < 2 {
		return key{}, 0
	}
	switch b[1] {
	case '[':
		if bytes.HasPrefix(b, []byte(pasteStart)) {
			return decodePaste(b)
		}
		return decodeSequence(b)
	case 'O':
		if len(b) < 3 {
			return key{}, 0
		}
		return key{code: sequenceKey(b[2], "")}, 3
	case ']', 'P', '_', '^':
		return decodeReport(b)
	case 'b':
		return key{code: wordLeft}, 2
	case 'f':
		return key{code: wordRight}, 2
	case '\r', '\n':
		return key{insert, "\n"}, 2
	case deleteKey, 'H' - '@':
		return key{code: killWord}, 2
	case escape, 'C' - '@', 'D' - '@':
		return key{}, 1
	}
	return key{}, 2
}

// decodePaste reads a pasted text between pasteStart and pasteEnd.
func decodePaste(b []byte) (key, int) {
	text, rest, whole := bytes.Cut(b[len(pasteStart):], []byte(pasteEnd))
	if !whole && len(b) <= maxPaste {
		return key{}, 0
	}
	return key{insert, clean(string(text))}, len(b) - len(rest)
}

// decodeSequence reads "ESC [ parameters final".
func decodeSequence(b []byte) (key, int) {
	for i := 2; i < len(b) && i < maxSequence; i++ {
		if b[i] < ' ' || b[i] > '~' {
			return key{}, i // incomplete
		}
		if b[i] >= '@' {
			return key{code: sequenceKey(b[i], string(b[2:i]))}, i + 1
		}
	}
	if len(b) >= maxSequence {
		return key{}, maxSequence
	}
	return key{}, 0
}

// decodeReport skips a report of the terminal, such as an OSC or DCS sequence.
func decodeReport(b []byte) (key, int) {
	for i := 2; i < len(b); i++ {
		if b[i] == '\a' || b[i] == '\\' && b[i-1] == escape {
			return key{}, i + 1
		}
		if i >= maxSequence {
			return key{}, i
		}
	}
	return key{}, 0
}

func sequenceKey(final byte, parameters string) code {
	byWord := strings.HasSuffix(parameters, ";3") || strings.HasSuffix(parameters, ";5")
	switch {
	case final == '~':
		return map[string]code{"1": home, "7": home, "4": end, "8": end, "3": del}[parameters]
	case byWord && final == 'C':
		return wordRight
	case byWord && final == 'D':
		return wordLeft
	}
	return map[byte]code{'A': up, 'B': down, 'C': right, 'D': left, 'H': home, 'F': end, 'Z': backTab}[final]
}
