package console

import (
	"bytes"
	"strings"
	"unicode/utf8"
)

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
