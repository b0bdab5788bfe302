package setup

import (
	"cmp"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"

	"synthbot/config"
)

// File is the text of a configuration file that is being changed. After an error, it changes no more.
type File struct {
	text       string
	newline    string
	statements []config.Statement
	err        error
}

// Open reads a file, which must be valid TOML.
func Open(text string) (*File, error) {
	f := &File{newline: "\n"}
	if strings.Contains(text, "\r\n") {
		f.newline = "\r\n"
	}
	f.setText(text)
	return f, f.err
}

// String returns the whole file.
func (f *File) String() string { return f.text }

func (f *File) setText(text string) {
	f.text = text
	f.statements, f.err = config.Statements(text)
}

func (f *File) replace(from, to int, with string) { f.setText(f.text[:from] + with + f.text[to:]) }

// ErrShape is the error of a file whose syntax does not allow a change in place.
var ErrShape = errors.New("cannot be changed in place")

func (f *File) set(text, key string, table ...string) {
	f.setLiteral(config.Quote(text), key, table...)
}

func (f *File) setLiteral(literal, key string, table ...string) {
	i, headers := f.find(append(slices.Clone(table), key)), f.headers(config.StatementHeader, table)
	for _, list := range f.headers(config.StatementArray, nil) {
		if hasPrefix(table, f.statements[list].Key) {
			f.failShape(f.statements[list].Key)
		}
	}
	switch {
	case f.err != nil:
	case i >= 0:
		f.replace(f.statements[i].From, f.statements[i].To, literal)
	case len(headers) > 0:
		f.insertKey(headers[0], key, literal)
	case !f.addDotted(table, key, literal):
		f.insertKey(f.addHeader(config.StatementHeader, table), key, literal)
	}
}

// remove removes a key with its line, if the file has it.
func (f *File) remove(key string, table ...string) {
	i := f.find(append(slices.Clone(table), key))
	if f.err == nil && i >= 0 {
		f.replace(f.statements[i].Start, f.statements[i].End, "")
	}
}

// isHeader reports whether a statement is the header of a table, to which the following keys belong.
func isHeader(s *config.Statement) bool {
	return !s.Commented && (s.Kind == config.StatementHeader || s.Kind == config.StatementArray)
}

// addToList sets a list to all texts. If it has several lines, they stay, and only missing texts are inserted.
func (f *File) addToList(all, existing []string, key string, table ...string) {
	missing := slices.DeleteFunc(slices.Clone(all), func(text string) bool { return slices.Contains(existing, text) })
	i := f.find(append(slices.Clone(table), key))
	if len(missing) == 0 || f.err != nil {
		return
	}
	if i >= 0 {
		s := &f.statements[i]
		before := f.text[s.From:s.To]
		if strings.HasPrefix(before, "[") && strings.Contains(before, "\n") {
			f.replace(s.From, s.From+1, strings.TrimSuffix(quoteList(missing), "]")+",")
			return
		}
	}
	f.setLiteral(quoteList(all), key, table...)
}

var engines = []string{"engine"}

func (f *File) setInEngine(n int, key, literal string) {
	all := f.headers(config.StatementArray, engines)
	if f.err == nil && n >= len(all) {
		f.err = fmt.Errorf("%w: there is no [[engine]] number %d", ErrShape, n+1)
	}
	if f.err != nil {
		return
	}
	for i := all[n] + 1; i < len(f.statements) && !isHeader(&f.statements[i]); i++ {
		s := &f.statements[i]
		if s.Kind == config.StatementValue && !s.Commented && slices.Equal(s.Key, []string{key}) {
			f.replace(s.From, s.To, literal)
			return
		}
	}
	f.insertKey(all[n], key, literal)
}

// Pair is a key and the literal of its value.
type Pair struct{ Key, Literal string }

func (f *File) addFirstEngine(pairs ...Pair) {
	if f.find(engines) >= 0 {
		f.failShape(engines)
	}
	if f.err != nil {
		return
	}
	all := f.headers(config.StatementArray, engines)
	at := 0
	if len(all) > 0 {
		start := f.commentsAbove(all[0])
		f.replace(start, start, "[["+dotted(engines)+"]]"+f.newline+f.newline)
		at = slices.IndexFunc(f.statements, func(s config.Statement) bool { return s.Start == start })
	} else {
		at = f.addHeader(config.StatementArray, engines)
	}
	for _, p := range pairs {
		f.insertKey(at, p.Key, p.Literal)
	}
}

// Has reports whether the file has a key.
func (f *File) Has(key string, table ...string) bool {
	g := *f // ignores an error of find
	return g.find(append(slices.Clone(table), key)) >= 0
}

// find returns the statement of a key, or -1. A key in an inline table cannot be changed.
func (f *File) find(full []string) int {
	for i, key := range f.values() {
		if slices.Equal(key, full) {
			return i
		}
		if hasPrefix(full, key) {
			f.failShape(key)
			break
		}
	}
	return -1
}

// values yields the values outside of lists of tables, each with its full key.
func (f *File) values() iter.Seq2[int, []string] {
	return func(yield func(int, []string) bool) {
		var table []string
		lists := f.headers(config.StatementArray, nil)
		for i := range f.statements {
			s := &f.statements[i]
			if isHeader(s) {
				table = s.Key
			}
			inList := slices.ContainsFunc(lists, func(l int) bool { return hasPrefix(table, f.statements[l].Key) })
			if s.Kind == config.StatementValue && !s.Commented && !inList && !yield(i, slices.Concat(table, s.Key)) {
				return
			}
		}
	}
}

func (f *File) failShape(key []string) {
	const text = "%w: %s is written as one value; write it as a table [%s], or change it by hand"
	f.err = cmp.Or(f.err, fmt.Errorf(text, ErrShape, dotted(key), dotted(key)))
}

// headers returns the indices of the headers of one kind with a key; with any key if it is nil.
func (f *File) headers(k config.StatementKind, key []string) (all []int) {
	for i := range f.statements {
		s := &f.statements[i]
		if s.Kind == k && !s.Commented && (key == nil || slices.Equal(s.Key, key)) {
			all = append(all, i)
		}
	}
	return all
}

// addDotted adds a key to a table that exists only in dotted keys (bot.name = "x"), if there is one.
func (f *File) addDotted(table []string, key, literal string) (added bool) {
	last, from := -1, 0
	for i, full := range f.values() {
		n := len(full) - len(f.statements[i].Key)
		if n < len(table) && hasPrefix(full, table) {
			last, from = i, n
		}
	}
	if last >= 0 {
		f.addAfter(last, dotted(append(slices.Clone(table[from:]), key))+" = "+literal)
	}
	return last >= 0
}

func (f *File) addAfter(i int, line string) {
	end := f.statements[i].End
	if !strings.HasSuffix(f.text[:end], "\n") {
		line = f.newline + line
	}
	f.replace(end, end, line+f.newline)
}

// addHeader adds the header of a table: it uncomments one, or adds one at the end of the file.
func (f *File) addHeader(k config.StatementKind, key []string) int {
	for i := range f.statements {
		s := &f.statements[i]
		if s.Commented && s.Kind == k && slices.Equal(s.Key, key) && !f.hasValues(i) {
			hash := s.Start + strings.IndexByte(f.text[s.Start:], '#')
			f.replace(hash, hash+1, "")
			return i
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
	f.setText(text + line + f.newline)
	return len(f.statements) - 1
}

// hasValues reports whether values follow the header at i before the next one.
func (f *File) hasValues(i int) bool {
	for i++; i < len(f.statements) && !isHeader(&f.statements[i]); i++ {
		if f.statements[i].Kind == config.StatementValue && !f.statements[i].Commented {
			return true
		}
	}
	return false
}

// insertKey adds a key to the table at i: in the place of a commented one, or after the last key of the table.
func (f *File) insertKey(i int, key, literal string) {
	line, last := config.QuoteKey(key)+" = "+literal, i
	for j := i + 1; j < len(f.statements) && !isHeader(&f.statements[j]); j++ {
		s := &f.statements[j]
		switch {
		case s.Commented && s.Kind != config.StatementValue:
			f.addAfter(last, line)
			return
		case s.Commented && slices.Equal(s.Key, []string{key}):
			f.replace(s.Start, s.End, line+f.newline)
			return
		case s.Kind == config.StatementValue && !s.Commented:
			last = j
		}
	}
	f.addAfter(last, line)
}

func dotted(keys []string) string { return strings.Join(mapEach(keys, config.QuoteKey), ".") }

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

// hasPrefix reports whether a key is in a table, or equals the table's key.
func hasPrefix(key, table []string) bool {
	return len(key) >= len(table) && slices.Equal(key[:len(table)], table)
}
