package console

import (
	"bytes"
	"strings"
	"unicode/utf8"
)

// code says what a key press means to the editor.
type code uint8

const (
	insert code = iota // text
	enter
	leave    // Ctrl-C
	endOrDel // Ctrl-D
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
	ignored
)

// key is one key press, or one paste.
type key struct {
	code code
	text string
}

// Bounds of what a decoder keeps back until it is whole.
const (
	maxSequence = 64      // bytes of a control sequence
	maxPaste    = 2 << 20 // bytes of a paste
)

const (
	escape     = 0x1b
	pasteStart = "\x1b[200~"
	pasteEnd   = "\x1b[201~"
)

// decoder makes keys of the bytes that a terminal sends. What is not whole yet
// is kept until the next bytes come.
type decoder struct{ rest []byte }

func (d *decoder) feed(data []byte) []key {
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

// decode reads the first key of b; its size is 0 where more bytes are wanted.
func decode(b []byte) (key, int) {
	switch c := b[0]; {
	case c == escape:
		return decodeEscape(b)
	case c < ' ' || c == 0x7f:
		return key{code: control(c)}, 1
	}
	end := 0
	for end < len(b) && b[end] >= ' ' && b[end] != 0x7f {
		if !utf8.FullRune(b[end:]) {
			break
		}
		_, size := utf8.DecodeRune(b[end:])
		end += size
	}
	return key{insert, strings.ToValidUTF8(string(b[:end]), "\uFFFD")}, end
}

func control(c byte) code {
	switch c {
	case '\r', '\n':
		return enter
	case 'A' - '@':
		return home
	case 'B' - '@':
		return left
	case 'C' - '@':
		return leave
	case 'D' - '@':
		return endOrDel
	case 'E' - '@':
		return end
	case 'F' - '@':
		return right
	case 'H' - '@', 0x7f:
		return backspace
	case 'K' - '@':
		return killRight
	case 'L' - '@':
		return redraw
	case 'N' - '@':
		return down
	case 'P' - '@':
		return up
	case 'T' - '@':
		return swap
	case 'U' - '@':
		return killLeft
	case 'W' - '@':
		return killWord
	case 'Y' - '@':
		return yank
	}
	return ignored
}

func decodeEscape(b []byte) (key, int) {
	switch {
	case len(b) < 2:
		return key{}, 0
	case bytes.HasPrefix(b, []byte(pasteStart)):
		return decodePaste(b)
	case b[1] == '[':
		return decodeSequence(b)
	case b[1] == 'O':
		if len(b) < 3 {
			return key{}, 0
		}
		return key{code: arrow(b[2], "")}, 3
	case b[1] == ']' || b[1] == 'P' || b[1] == '_' || b[1] == '^':
		return decodeAnswer(b)
	}
	switch b[1] {
	case 'b':
		return key{code: wordLeft}, 2
	case 'f':
		return key{code: wordRight}, 2
	case '\r', '\n':
		return key{insert, "\n"}, 2
	case 0x7f, 'H' - '@':
		return key{code: killWord}, 2
	case escape, 'C' - '@', 'D' - '@':
		return key{code: ignored}, 1
	}
	return key{code: ignored}, 2
}

// decodePaste takes what stands between the marks of a paste as it is.
func decodePaste(b []byte) (key, int) {
	text, _, whole := bytes.Cut(b[len(pasteStart):], []byte(pasteEnd))
	switch {
	case whole:
		return key{insert, pasted(text)}, len(pasteStart) + len(text) + len(pasteEnd)
	case len(b) > maxPaste:
		return key{insert, pasted(text)}, len(b)
	}
	return key{}, 0
}

// pasted is a paste as text; terminals send line breaks as carriage returns.
func pasted(b []byte) string {
	s := strings.ReplaceAll(string(b), "\r\n", "\n")
	return clean(strings.ReplaceAll(s, "\r", "\n"), true)
}

// decodeSequence reads "ESC [ parameters final".
func decodeSequence(b []byte) (key, int) {
	for i := 2; i < len(b) && i < maxSequence; i++ {
		if b[i] < ' ' || b[i] > '~' {
			return key{code: ignored}, i // broken off
		}
		if b[i] >= '@' {
			return key{code: arrow(b[i], string(b[2:i]))}, i + 1
		}
	}
	if len(b) >= maxSequence {
		return key{code: ignored}, maxSequence
	}
	return key{}, 0
}

// decodeAnswer skips what a terminal answers to questions of others.
func decodeAnswer(b []byte) (key, int) {
	for i := 2; i < len(b); i++ {
		switch {
		case b[i] == '\a':
			return key{code: ignored}, i + 1
		case b[i] == '\\' && b[i-1] == escape:
			return key{code: ignored}, i + 1
		case i >= maxSequence:
			return key{code: ignored}, i
		}
	}
	return key{}, 0
}

// arrow names a key by the end of its sequence and the parameters before it.
func arrow(final byte, parameters string) code {
	byWord := strings.HasSuffix(parameters, ";3") || strings.HasSuffix(parameters, ";5")
	switch {
	case final == 'A':
		return up
	case final == 'B':
		return down
	case final == 'C' && byWord:
		return wordRight
	case final == 'D' && byWord:
		return wordLeft
	case final == 'C':
		return right
	case final == 'D':
		return left
	case final == 'H' || final == '~' && (parameters == "1" || parameters == "7"):
		return home
	case final == 'F' || final == '~' && (parameters == "4" || parameters == "8"):
		return end
	case final == '~' && parameters == "3":
		return del
	}
	return ignored
}
