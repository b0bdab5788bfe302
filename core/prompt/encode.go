package prompt

import (
	"bytes"
	"encoding/json"
	"strings"
	"time"
	"unicode/utf8"
)

// maxDepth bounds the nesting of JSON that others supply: decoders give up on
// what is nested deeper than they like.
const maxDepth = 64

const hex = "0123456789abcdef"

// appendText appends s as a JSON string. Characters stand for themselves where
// JSON allows it; bytes that are not UTF-8 become U+FFFD.
func appendText(dst []byte, s string) []byte {
	dst = append(dst, '"')
	start := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c >= 0x20 && c < utf8.RuneSelf && c != '"' && c != '\\' {
			i++
			continue
		}
		if c >= utf8.RuneSelf {
			r, size := utf8.DecodeRuneInString(s[i:])
			if r == utf8.RuneError && size == 1 {
				dst = append(dst, s[start:i]...)
				dst = append(dst, "\uFFFD"...)
				start = i + 1
			}
			i += size
			continue
		}
		dst = append(dst, s[start:i]...)
		dst = appendEscape(dst, c)
		i++
		start = i
	}
	dst = append(dst, s[start:]...)
	return append(dst, '"')
}

func appendEscape(dst []byte, c byte) []byte {
	switch c {
	case '"', '\\':
		return append(dst, '\\', c)
	case '\n':
		return append(dst, '\\', 'n')
	case '\r':
		return append(dst, '\\', 'r')
	case '\t':
		return append(dst, '\\', 't')
	}
	return append(dst, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
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
	for _, r := range s {
		n += width(r)
	}
	return n
}

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

func appendTime(dst []byte, t time.Time, zone *time.Location) []byte {
	if zone != nil {
		t = t.In(zone)
	}
	dst = append(dst, '"')
	dst = t.AppendFormat(dst, time.RFC3339)
	return append(dst, '"')
}

// size counts characters.
func size(raw []byte) int { return utf8.RuneCount(raw) }
