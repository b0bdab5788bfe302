package document

import (
	"bytes"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/encoding/charmap"
	utf "golang.org/x/text/encoding/unicode"
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
	isUTF16 := bytes.HasPrefix(data, []byte("\xFF\xFE")) || bytes.HasPrefix(data, []byte("\xFE\xFF"))
	data = bytes.TrimPrefix(data, []byte("\xEF\xBB\xBF"))
	if utf8.Valid(data) {
		return string(data), nil
	}
	decoder := charmap.ISO8859_1.NewDecoder()
	if isUTF16 {
		if len(data)%2 != 0 {
			return "", errBinary
		}
		decoder = utf.UTF16(utf.LittleEndian, utf.UseBOM).NewDecoder()
	}
	text, err := decoder.Bytes(data)
	return string(text), err
}

// Clip cuts a text to MaxText characters, and appends a note of how many were cut.
func Clip(s string) string {
	if utf8.RuneCountInString(s) <= MaxText {
		return s
	}
	runes := []rune(s)
	return string(runes[:MaxText]) + fmt.Sprintf("\n[…%d characters cut…]", len(runes)-MaxText)
}
