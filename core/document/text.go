package document

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

var endings = strings.Fields(`
	txt md markdown rst csv tsv json jsonl xml html htm yaml yml toml ini conf log tex srt vtt ics vcf eml
	go py js ts c h cpp hpp cs java kt rs rb php sh sql lua pl r swift css diff patch`)

// textTypes are types of text files besides text/*, *+json and *+xml.
var textTypes = strings.Fields(`application/json application/xml application/x-yaml
	application/toml application/javascript application/sql`)

func ending(name string) string { return strings.ToLower(strings.TrimPrefix(path.Ext(name), ".")) }

func isText(mime, name string) bool {
	switch {
	case strings.HasPrefix(mime, "text/"), strings.HasSuffix(mime, "+json"), strings.HasSuffix(mime, "+xml"):
		return true
	case mime == "", mime == "application/octet-stream":
		return slices.Contains(endings, ending(name))
	}
	return slices.Contains(textTypes, mime)
}

var errBinary = errors.New("not a text file")

// Text decodes a text file: UTF-8, UTF-16 with a byte order mark, or else Latin-1. Line ends become \n. It
// returns an error if there are control characters, as in binary files.
func Text(data []byte) (string, error) {
	s, err := decode(data)
	if err != nil {
		return "", err
	}
	s = strings.ReplaceAll(strings.ReplaceAll(s, "\r\n", "\n"), "\r", "\n")
	const escape = 0x1B
	isBinary := func(r rune) bool {
		return unicode.IsControl(r) && r != '\n' && r != '\t' && r != '\f' && r != escape
	}
	if strings.ContainsFunc(s, isBinary) {
		return "", errBinary
	}
	return strings.TrimSpace(s), nil
}

func decode(data []byte) (string, error) {
	switch {
	case bytes.HasPrefix(data, []byte{0xFF, 0xFE}):
		return decodeUTF16(data[2:], binary.LittleEndian)
	case bytes.HasPrefix(data, []byte{0xFE, 0xFF}):
		return decodeUTF16(data[2:], binary.BigEndian)
	}
	data = bytes.TrimPrefix(data, []byte{0xEF, 0xBB, 0xBF})
	if utf8.Valid(data) {
		return string(data), nil
	}
	runes := make([]rune, len(data))
	for i, b := range data {
		if b >= 0x80 && b < 0xA0 {
			return "", errBinary
		}
		runes[i] = rune(b)
	}
	return string(runes), nil
}

func decodeUTF16(data []byte, order binary.ByteOrder) (string, error) {
	if len(data)%2 != 0 {
		return "", errBinary
	}
	units := make([]uint16, len(data)/2)
	for i := range units {
		units[i] = order.Uint16(data[2*i:])
	}
	return string(utf16.Decode(units)), nil
}

// Clip cuts a text to MaxText characters, and appends a note of how many were cut.
func Clip(s string) string {
	if utf8.RuneCountInString(s) <= MaxText {
		return s
	}
	runes := []rune(s)
	return string(runes[:MaxText]) + fmt.Sprintf("\n[…%d characters cut…]", len(runes)-MaxText)
}
