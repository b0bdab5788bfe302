package config

import (
	"bytes"
	"errors"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"

	"synthbot/core/txt"
)

// maxMends is how many lines are passed over to find further syntax faults.
const maxMends = 20

// parse gives the values and the positions of a file. Where a line cannot be
// read, it is noted and passed over, as long as what follows can be trusted;
// where it cannot, there are no values.
func (d *Document) parse(data []byte) (map[string]any, *node) {
	data = slices.Clone(data)
	for range maxMends {
		at, over, why := positions(data)
		if over > 0 {
			d.syntax(over, why)
			break
		}
		values := make(map[string]any)
		err := toml.Unmarshal(data, &values)
		if err == nil {
			return values, at
		}
		line, text := explain(err)
		if d.follows(line) {
			break
		}
		d.syntax(line, text)
		if !blank(data, line) {
			break
		}
	}
	return nil, nil
}

// follows reports whether the line comes right after a fault: one unclosed
// list or text makes nonsense of all that follows.
func (d *Document) follows(line int) bool {
	return slices.ContainsFunc(d.findings.list, func(f Fault) bool { return f.Line == line-1 })
}

func (d *Document) syntax(line int, text string) {
	d.broken = true
	d.findings.add(Fault{File: d.file, Line: line, Text: text})
}

// explain is the library's error as a line and words without a value in them.
func explain(err error) (line int, text string) {
	var decode *toml.DecodeError
	if errors.As(err, &decode) {
		line, _ = decode.Position()
	}
	text = strings.TrimPrefix(err.Error(), "toml: ")
	text, _, _ = strings.Cut(text, ": strconv.")
	return line, "cannot be read as TOML: " + txt.Clip(text, 120) + mend(text)
}

// mend is what most likely helps against a syntax error.
func mend(text string) string {
	for _, m := range []struct{ said, mend string }{
		{"already", "keep one of the two"},
		{"start of value", "a text stands in quotes"},
		{"expected keyword", "a text stands in quotes"},
		{"expected newline", "one key a line, and a text in quotes"},
		{"start of key", "write key = value, or [table]"},
		{"after key", "write key = value"},
		{"new lines", "close the quotes, or use three of them"},
		{"escape", `write \\ for a backslash, or use single quotes`},
		{"end of input", "something is missing at the end"},
	} {
		if strings.Contains(text, m.said) {
			return "; " + m.mend
		}
	}
	return ""
}

// blank overwrites a line with spaces, so that the others keep their numbers.
// A header is not passed over: the keys below it would change their meaning.
func blank(data []byte, line int) bool {
	if line < 1 {
		return false
	}
	start := 0
	for range line - 1 {
		end := bytes.IndexByte(data[start:], '\n')
		if end < 0 {
			return false
		}
		start += end + 1
	}
	text := data[start:]
	if end := bytes.IndexByte(text, '\n'); end >= 0 {
		text = text[:end]
	}
	trimmed := bytes.TrimSpace(text)
	if len(trimmed) == 0 || trimmed[0] == '[' {
		return false
	}
	for i := range text {
		text[i] = ' '
	}
	return true
}
