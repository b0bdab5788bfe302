package setup

import (
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"

	"synthbot/config"
)

// File is the text of a configuration file that is being changed.
type File struct {
	text       string
	newline    string
	statements []config.Statement
}

// Open reads a file, which must be valid TOML.
func Open(text string) (*File, error) {
	f := &File{newline: "\n"}
	if strings.Contains(text, "\r\n") {
		f.newline = "\r\n"
	}
	return f, f.setText(text)
}

// String returns the whole file.
func (f *File) String() string { return f.text }

func (f *File) setText(text string) (err error) {
	f.text = text
	f.statements, err = config.Statements(text)
	return err
}

// replace replaces a part of the text.
func (f *File) replace(from, to int, with string) error {
	return f.setText(f.text[:from] + with + f.text[to:])
}

// ErrShape is the error of a file whose form cannot be changed in place.
var ErrShape = errors.New("cannot be changed in place")

// Set sets a key of a table to a literal; [config.Quote] makes one from a text.
func (f *File) Set(table []string, key, literal string) error {
	for _, list := range f.lists() {
		if hasPrefix(table, list) {
			return shapeError(list)
		}
	}
	i, err := f.find(append(slices.Clone(table), key))
	if err != nil {
		return err
	}
	if i >= 0 {
		return f.setValue(i, literal)
	}
	headers := f.headers(config.StatementHeader, table)
	if len(headers) > 0 {
		return f.put(headers[0], key, literal)
	}
	if added, err := f.addDotted(table, key, literal); added || err != nil {
		return err
	}
	at, err := f.addHeader(config.StatementHeader, table)
	if err != nil {
		return err
	}
	return f.put(at, key, literal)
}

// opensTable reports whether the following keys belong to the table of a statement.
func opensTable(s *config.Statement) bool {
	return !s.Commented && (s.Kind == config.StatementHeader || s.Kind == config.StatementArray)
}

func (f *File) setValue(i int, literal string) error {
	return f.replace(f.statements[i].From, f.statements[i].To, literal)
}

// Add adds texts to a list of several lines, and keeps its lines and comments. added is
// false if there is no such list.
func (f *File) Add(table []string, key string, texts []string) (added bool, err error) {
	i, err := f.find(append(slices.Clone(table), key))
	if err != nil || i < 0 {
		return false, err
	}
	s := &f.statements[i]
	before := f.text[s.From:s.To]
	if !strings.HasPrefix(before, "[") || !strings.Contains(before, "\n") {
		return false, nil
	}
	with := strings.TrimSuffix(quoteList(texts), "]") + ","
	return true, f.replace(s.From, s.From+1, with)
}

// SetIn sets a key of the n-th table of a list.
func (f *File) SetIn(list []string, n int, key, literal string) error {
	all := f.headers(config.StatementArray, list)
	if n < 0 || n >= len(all) {
		return fmt.Errorf("%w: there is no [[%s]] number %d", ErrShape, strings.Join(list, "."), n+1)
	}
	for i := all[n] + 1; i < len(f.statements) && !opensTable(&f.statements[i]); i++ {
		s := &f.statements[i]
		if s.Kind == config.StatementValue && !s.Commented && slices.Equal(s.Key, []string{key}) {
			return f.setValue(i, literal)
		}
	}
	return f.put(all[n], key, literal)
}

// Pair is a key and the literal of its value.
type Pair struct{ Key, Literal string }

// First adds a table to a list of tables, before all others.
func (f *File) First(list []string, pairs ...Pair) error {
	i, err := f.find(list)
	if err != nil {
		return err
	}
	if i >= 0 {
		return shapeError(list)
	}
	all := f.headers(config.StatementArray, list)
	at := 0
	if len(all) > 0 {
		at, err = f.addBefore(all[0], list)
	} else {
		at, err = f.addHeader(config.StatementArray, list)
	}
	for _, p := range pairs {
		if err == nil {
			err = f.put(at, p.Key, p.Literal)
		}
	}
	return err
}

// addBefore adds a table to a list, before the table at i and its comment.
func (f *File) addBefore(i int, list []string) (int, error) {
	for i > 0 && f.statements[i-1].Kind == config.StatementComment && f.statements[i-1].End == f.statements[i].Start {
		i--
	}
	start := f.statements[i].Start
	return i, f.replace(start, start, "[["+dotted(list)+"]]"+f.newline+f.newline)
}

// find returns the statement of a key, or -1. A key in an inline table cannot be changed.
func (f *File) find(full []string) (int, error) {
	for i, key := range f.values() {
		if slices.Equal(key, full) {
			return i, nil
		}
		if hasPrefix(full, key) {
			return 0, shapeError(key)
		}
	}
	return -1, nil
}

// values yields the values outside of lists of tables, each with its full key.
func (f *File) values() iter.Seq2[int, []string] {
	return func(yield func(int, []string) bool) {
		var table []string
		lists := f.lists()
		for i := range f.statements {
			s := &f.statements[i]
			if opensTable(s) {
				table = s.Key
			}
			inList := slices.ContainsFunc(lists, func(l []string) bool { return hasPrefix(table, l) })
			if s.Kind == config.StatementValue && !s.Commented && !inList && !yield(i, slices.Concat(table, s.Key)) {
				return
			}
		}
	}
}

func shapeError(key []string) error {
	const text = "%w: %s is written as one value; write it as a table [%s], or change it by hand"
	return fmt.Errorf(text, ErrShape, dotted(key), dotted(key))
}

// lists returns the keys of all lists of tables.
func (f *File) lists() (keys [][]string) {
	for i := range f.statements {
		s := &f.statements[i]
		if s.Kind == config.StatementArray && !s.Commented {
			keys = append(keys, s.Key)
		}
	}
	return keys
}

// headers returns the statements that open a table, or each table of a list.
func (f *File) headers(k config.StatementKind, key []string) (all []int) {
	for i := range f.statements {
		s := &f.statements[i]
		if s.Kind == k && !s.Commented && slices.Equal(s.Key, key) {
			all = append(all, i)
		}
	}
	return all
}

// addDotted adds a key to a table without a header, which exists only in dotted keys
// (bot.name = "x").
func (f *File) addDotted(table []string, key, literal string) (added bool, err error) {
	last, from := -1, 0
	for i, full := range f.values() {
		n := len(full) - len(f.statements[i].Key)
		if n < len(table) && hasPrefix(full, table) {
			last, from = i, n
		}
	}
	if last < 0 {
		return false, nil
	}
	return true, f.addAfter(last, dotted(append(slices.Clone(table[from:]), key))+" = "+literal)
}

// addAfter adds a line after a statement.
func (f *File) addAfter(i int, line string) error {
	end := f.statements[i].End
	if !strings.HasSuffix(f.text[:end], "\n") {
		line = f.newline + line
	}
	return f.replace(end, end, line+f.newline)
}

// addHeader adds the header of a table: it uncomments one, or adds one at the end of the
// file.
func (f *File) addHeader(k config.StatementKind, key []string) (int, error) {
	for i := range f.statements {
		s := &f.statements[i]
		if s.Commented && s.Kind == k && slices.Equal(s.Key, key) && !f.hasValues(i) {
			hash := s.Start + strings.IndexByte(f.text[s.Start:], '#')
			return i, f.replace(hash, hash+1, "")
		}
	}
	line := "[" + dotted(key) + "]"
	if k == config.StatementArray {
		line = "[" + line + "]"
	}
	text := strings.TrimRight(f.text, " \t\r\n")
	if text != "" {
		text += f.newline + f.newline
	}
	err := f.setText(text + line + f.newline)
	return len(f.statements) - 1, err
}

// hasValues reports whether values follow a commented header, which would move to its table.
func (f *File) hasValues(i int) bool {
	for i++; i < len(f.statements) && !opensTable(&f.statements[i]); i++ {
		if f.statements[i].Kind == config.StatementValue && !f.statements[i].Commented {
			return true
		}
	}
	return false
}

// put adds a key to the table at i: in the place of a commented one, or after the last key
// of the table.
func (f *File) put(i int, key, literal string) error {
	line, last := config.QuoteKey(key)+" = "+literal, i
	for j := i + 1; j < len(f.statements) && !opensTable(&f.statements[j]); j++ {
		s := &f.statements[j]
		switch {
		case s.Commented && s.Kind != config.StatementValue:
			return f.addAfter(last, line)
		case s.Commented && slices.Equal(s.Key, []string{key}):
			return f.replace(s.Start, s.End, line+f.newline)
		case s.Kind == config.StatementValue && !s.Commented:
			last = j
		}
	}
	return f.addAfter(last, line)
}

// dotted returns a dotted key.
func dotted(keys []string) string { return strings.Join(mapEach(keys, config.QuoteKey), ".") }

// quoteList returns a list of texts as a literal.
func quoteList(list []string) string {
	return "[" + strings.Join(mapEach(list, config.Quote), ", ") + "]"
}

func mapEach(list []string, f func(string) string) []string {
	mapped := make([]string, len(list))
	for i, s := range list {
		mapped[i] = f(s)
	}
	return mapped
}

// hasPrefix reports whether a key is in a table, or is its key.
func hasPrefix(key, table []string) bool {
	return len(key) >= len(table) && slices.Equal(key[:len(table)], table)
}
