package setup

import (
	"fmt"
	"strings"
)

// kind is the kind of a statement.
type kind int

const (
	other  kind = iota // an empty line, or a comment
	header             // [a.b]
	array              // [[a.b]]
	value              // key = …
)

// statement is a statement of TOML with all its lines.
type statement struct {
	kind       kind
	commented  bool // it is in a comment: "#key = …", "#[table]"
	start, end int  // offsets of its lines
	key        []string
	from, to   int // offsets of the value
}

// opensTable reports whether the following keys belong to this statement's table.
func (s *statement) opensTable() bool { return !s.commented && (s.kind == header || s.kind == array) }

// scanner reads the statements of a valid TOML file. Of another one, it returns the line
// where it stopped.
type scanner struct {
	text string
	at   int
}

func scan(text string) ([]statement, error) {
	s := &scanner{text: text}
	s.take("\uFEFF")
	var list []statement
	for s.at < len(text) {
		next, err := s.statement()
		if err != nil {
			return nil, err
		}
		list = append(list, next)
	}
	return list, nil
}

func (s *scanner) statement() (statement, error) {
	st := statement{start: s.at}
	s.blanks()
	var err error
	switch s.peek() {
	case '\n', '\r', 0:
	case '#':
		s.comment(&st)
	default:
		err = s.content(&st)
		if err == nil {
			err = s.lineEnd()
		}
	}
	s.skipLine()
	st.end = s.at
	return st, err
}

// content reads a header, or a key and its value.
func (s *scanner) content(st *statement) (err error) {
	close := ""
	switch {
	case s.take("[["):
		st.kind, close = array, "]]"
	case s.take("["):
		st.kind, close = header, "]"
	default:
		st.kind, close = value, "="
	}
	if st.key, err = s.keys(); err != nil {
		return err
	}
	if !s.take(close) {
		return s.fault("%q is missing", close)
	}
	if st.kind == value {
		s.blanks()
		st.from = s.at
		err = s.value()
		st.to = s.at
	}
	return err
}

// comment reads a comment. One that contains a key or a header is a commented statement.
func (s *scanner) comment(st *statement) {
	line, _, _ := strings.Cut(s.text[s.at:], "\n")
	inner := scanner{text: strings.TrimRight(line, "\r")[1:]}
	if strings.ContainsRune(" \t#", rune(inner.peek())) {
		return
	}
	var found statement
	if inner.content(&found) == nil && inner.lineEnd() == nil && inner.at <= len(inner.text) {
		st.kind, st.key, st.commented = found.kind, found.key, true
	}
}

// lineEnd requires that nothing but a comment follows on the line.
func (s *scanner) lineEnd() error {
	s.blanks()
	if !strings.ContainsRune("\x00\n\r#", rune(s.peek())) {
		return s.fault("the line continues after the end of a statement")
	}
	return nil
}

// skipLine continues at the next line.
func (s *scanner) skipLine() {
	_, rest, _ := strings.Cut(s.text[s.at:], "\n")
	s.at = len(s.text) - len(rest)
}

func (s *scanner) blanks() {
	for c := s.peek(); c == ' ' || c == '\t'; c = s.peek() {
		s.at++
	}
}

// peek returns the next byte, 0 at the end.
func (s *scanner) peek() byte {
	if s.at >= len(s.text) {
		return 0
	}
	return s.text[s.at]
}

func (s *scanner) take(what string) bool {
	if !strings.HasPrefix(s.text[s.at:], what) {
		return false
	}
	s.at += len(what)
	return true
}

func (s *scanner) fault(format string, args ...any) error {
	return fmt.Errorf("line %d: %s", 1+strings.Count(s.text[:s.at], "\n"), fmt.Sprintf(format, args...))
}

// keys reads a dotted key.
func (s *scanner) keys() (list []string, err error) {
	for {
		s.blanks()
		from := s.at
		switch c := s.peek(); c {
		case '"', '\'':
			err = s.quoted(string(c))
		default:
			s.bare()
		}
		if err != nil || s.at == from {
			return nil, s.fault("a key is missing")
		}
		list = append(list, unquoted(s.text[from:s.at]))
		s.blanks()
		if !s.take(".") {
			return list, nil
		}
	}
}

// unquoted removes the quotes of a key. A key with escapes keeps them, and matches no other.
func unquoted(key string) string {
	if len(key) < 2 || key[0] != '"' && key[0] != '\'' || key[0] == '"' && strings.Contains(key, `\`) {
		return key
	}
	return key[1 : len(key)-1]
}

func (s *scanner) bare() {
	for s.at < len(s.text) {
		c := s.text[s.at]
		if c != '_' && c != '-' && (c < '0' || c > '9') && (c|0x20 < 'a' || c|0x20 > 'z') {
			return
		}
		s.at++
	}
}

// value skips a value.
func (s *scanner) value() error {
	for _, q := range []string{`"""`, `'''`, `"`, `'`} {
		if strings.HasPrefix(s.text[s.at:], q) {
			return s.quoted(q)
		}
	}
	switch s.peek() {
	case '[', '{':
		return s.nested()
	}
	from := s.at
	for s.at < len(s.text) && !strings.ContainsRune(",]}#\r\n", rune(s.text[s.at])) {
		s.at++
	}
	s.at = from + len(strings.TrimRight(s.text[from:s.at], " \t"))
	if s.at == from {
		return s.fault("a value is missing")
	}
	return nil
}

// quoted skips a text in quotes; only double ones have escapes.
func (s *scanner) quoted(q string) error {
	for s.at += len(q); s.at < len(s.text); s.at++ {
		switch {
		case s.peek() == '\\' && q[0] == '"':
			s.at++
		case len(q) == 1 && s.peek() == '\n':
			return s.fault("a text is not closed")
		case s.take(q):
			for extra := 0; len(q) == 3 && extra < 2 && s.peek() == q[0]; extra++ {
				s.at++ // """a"""" ends with a quote that belongs to the text
			}
			return nil
		}
	}
	return s.fault("a text is not closed")
}

// nested skips a list or an inline table.
func (s *scanner) nested() error {
	for depth := 0; s.at < len(s.text); {
		switch c := s.peek(); {
		case c == '[' || c == '{':
			depth++
			s.at++
		case c == ']' || c == '}':
			depth--
			if s.at++; depth == 0 {
				return nil
			}
		case c == '#':
			s.skipLine()
		case c == '"' || c == '\'':
			if err := s.value(); err != nil {
				return err
			}
		default:
			s.at++
		}
	}
	return s.fault("a list or a table is not closed")
}
