package prompt

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"
)

// maxDepth bounds the nesting of JSON that others supply: decoders give up on
// what is nested deeper than they like.
const maxDepth = 64

// appendText appends s as a JSON string. Characters stand for themselves where
// JSON allows it; bytes that are not UTF-8 become U+FFFD.
func appendText(dst []byte, s string) []byte {
	dst = append(dst, '"')
	for _, r := range s {
		switch {
		case r == '"', r == '\\':
			dst = append(dst, '\\', byte(r))
		case r == '\n':
			dst = append(dst, '\\', 'n')
		case r == '\r':
			dst = append(dst, '\\', 'r')
		case r == '\t':
			dst = append(dst, '\\', 't')
		case r < 0x20:
			dst = fmt.Appendf(dst, `\u%04x`, r)
		default:
			dst = utf8.AppendRune(dst, r)
		}
	}
	return append(dst, '"')
}

// width is how many characters appendText spends on one rune.
func width(r rune) int {
	switch {
	case r == '"', r == '\\', r == '\n', r == '\r', r == '\t':
		return 2
	case r < 0x20:
		return 6
	}
	return 1
}

// textSize is the number of characters of s within its quotes.
func textSize(s string) int {
	n := 0
	for i := 0; i < len(s); {
		if s[i] < utf8.RuneSelf {
			n += int(widths[s[i]])
			i++
			continue
		}
		_, size := utf8.DecodeRuneInString(s[i:])
		n++
		i += size
	}
	return n
}

// widths are those of ASCII characters.
var widths = func() (all [utf8.RuneSelf]uint8) {
	for c := range all {
		all[c] = uint8(width(rune(c)))
	}
	return all
}()

// appendValue appends JSON that somebody else supplies, compacted and cured of
// what is not UTF-8. What is not JSON, or nested too deep, is refused.
func appendValue(dst []byte, raw json.RawMessage) ([]byte, bool) {
	if !utf8.Valid(raw) {
		raw = bytes.ToValidUTF8(raw, []byte("\uFFFD"))
	}
	if !json.Valid(raw) {
		return dst, false
	}
	before, depth := len(dst), 0
	for i := 0; i < len(raw); {
		switch c := raw[i]; c {
		case ' ', '\n', '\r', '\t':
			i++
			continue
		case '"':
			end := i + stringLen(raw[i:])
			dst = appendSound(dst, raw[i:end])
			i = end
			continue
		case '{', '[':
			if depth++; depth > maxDepth {
				return dst[:before], false
			}
		case '}', ']':
			depth--
		}
		dst = append(dst, raw[i])
		i++
	}
	return dst, true
}

// stringLen is the length of the JSON string that b begins with, in quotes.
func stringLen(b []byte) int {
	for i := 1; i < len(b); i++ {
		switch b[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(b)
}

// appendSound appends a JSON string and replaces escaped surrogates that lack
// their other half.
func appendSound(dst, quoted []byte) []byte {
	start := len(dst)
	dst = append(dst, quoted...)
	for i := start; i < len(dst); i++ {
		if dst[i] != '\\' {
			continue
		}
		i++
		if dst[i] != 'u' {
			continue
		}
		rest := dst[i+5:]
		pair := len(rest) > 5 && rest[0] == '\\' && rest[1] == 'u' && surrogate(rest[2:], "cdef")
		switch {
		case pair && surrogate(dst[i+1:], "89ab"):
			i += 10
		case surrogate(dst[i+1:], "89abcdef"):
			copy(dst[i+1:], "fffd")
		}
	}
	return dst
}

// surrogate reports whether the four hex digits name a surrogate whose second
// digit is one of these.
func surrogate(digits []byte, second string) bool {
	return digits[0]|0x20 == 'd' && strings.IndexByte(second, digits[1]|0x20) >= 0
}

// size counts characters.
func size(raw []byte) int { return utf8.RuneCount(raw) }
