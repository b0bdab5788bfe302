package config

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"slices"
	"sort"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"

	"synthbot/core/sorting"
	"synthbot/core/txt"
)

const maxSyntaxFaults = 20 // how many lines are skipped to find further syntax faults

// parse returns the content of a file, without lines with syntax errors; nothing if other lines depend on one.
func (d *Document) parse(data []byte) *node {
	data = slices.Clone(data)
	for range maxSyntaxFaults {
		m := d.positions(data)
		if m.overLine > 0 {
			d.addSyntaxFault(m.overLine, m.overText)
			break
		}
		values := make(map[string]any)
		err := toml.Unmarshal(data, &values)
		if err == nil {
			m.root.value = values
			return m.root
		}
		line, text := syntaxFault(err, data)
		// An unclosed list or text makes all following lines unreadable.
		if slices.ContainsFunc(d.faults, func(f Fault) bool { return f.Line == line-1 }) {
			break
		}
		d.addSyntaxFault(line, text)
		if !blankLine(data, line) {
			break
		}
	}
	return &node{doc: d}
}

func (d *Document) addSyntaxFault(line int, text string) {
	d.broken = true
	d.add(Fault{File: d.file, Line: line, Text: text})
}

// syntaxFault converts the library's error to a line and a text without values.
func syntaxFault(err error, data []byte) (line int, text string) {
	var decode *toml.DecodeError
	var at []byte // the line
	if errors.As(err, &decode) {
		column := 0
		line, column = decode.Position()
		lines := bytes.SplitN(data, []byte("\n"), line+1)
		if line >= 1 && line <= len(lines) {
			at = lines[line-1]
		}
		if column >= 1 && column <= len(at) {
			r, _ := utf8.DecodeRune(at[column-1:])
			if unicode.In(r, unicode.Pi, unicode.Pf) || r == '„' || r == '‚' {
				return line, fmt.Sprintf("cannot be read as TOML: %c is a typographic quote; write text in \" or '", r)
			}
		}
	}
	text = strings.TrimPrefix(err.Error(), "toml: ")
	text, _, _ = strings.Cut(text, ": strconv.")
	return line, "cannot be read as TOML: " + txt.Clip(text, 120) + fixFor(text, at)
}

// Words that other formats have for true and false, as the value of a line.
var (
	meansTrue  = txt.Pattern(`(?i)=\s*(yes|on|enabled)\s*(#|$)`)
	meansFalse = txt.Pattern(`(?i)=\s*(no|off|disabled)\s*(#|$)`)
)

// fixFor returns what to do about an error of the library with a text, in a line.
func fixFor(text string, line []byte) string {
	switch {
	case meansTrue().Match(line):
		return "; write true, or text in quotes"
	case meansFalse().Match(line):
		return "; write false, or text in quotes"
	}
	for _, m := range []struct{ part, fix string }{
		{"already", "keep one of the two"},
		{"'T' at start of value", "write true in small letters, or text in quotes"},
		{"'F' at start of value", "write false in small letters, or text in quotes"},
		{"start of value", "write text in quotes"},
		{"expected keyword", "write text in quotes"},
		{"expected newline", "write one key a line, and text in quotes"},
		{"start of key", "write key = value, or [table]"},
		{"after key", "write key = value"},
		{"new lines", "close the quotes, or use three of them"},
		{"escape", `write \\ for a backslash, or use single quotes`},
		{"end of input", "something is missing at the end"},
	} {
		if strings.Contains(text, m.part) {
			return "; " + m.fix
		}
	}
	return ""
}

// blankLine overwrites a line with spaces, so that the others keep their numbers. It returns false for a header,
// because the keys after it would belong to another table.
func blankLine(data []byte, line int) bool {
	n := 0
	for text := range bytes.Lines(data) {
		n++
		if n < line {
			continue
		}
		trimmed := bytes.TrimSpace(text)
		if n > line || len(trimmed) == 0 || trimmed[0] == '[' {
			return false
		}
		for i := range bytes.TrimRight(text, "\n") {
			text[i] = ' '
		}
		return true
	}
	return false
}

const maxFaults = 100 // how many faults are reported; further ones are only counted

// Fault is one problem of a file.
type Fault struct {
	File string
	Line int    // 0: the file lacks the key
	Key  string // as in a file ("engine[0].timeout"); empty: the whole file
	Text string // the problem and the fix

	MovedTo string // the new key, if the key has moved
}

// String prints "FILE:LINE: key: text" on one line.
func (f Fault) String() string {
	at := f.File
	if f.Line > 0 {
		at = fmt.Sprintf("%s:%d", at, f.Line)
	}
	if f.Key != "" {
		at += ": " + f.Key
	}
	return at + ": " + f.Text
}

// Faults are the problems of a file, in the order of its lines.
type Faults []Fault

// Error prints one fault a line.
func (f Faults) Error() string {
	lines := make([]string, len(f))
	for i, fault := range f {
		lines[i] = fault.String()
	}
	return strings.Join(lines, "\n")
}

// add adds a fault, unless it exists already. Beyond maxFaults, it only counts.
func (d *Document) add(fault Fault) {
	if slices.Contains(d.faults, fault) {
		return
	}
	d.faultCount++
	if d.faultCount <= maxFaults {
		d.faults = append(d.faults, fault)
	}
}

// Err returns all [Faults] found so far, or nil.
func (d *Document) Err() error {
	if d.faultCount == 0 {
		return nil
	}
	sorted := slices.Clone(d.faults)
	sorting.SortStable(sorted, func(a, b Fault) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Key, b.Key))
	})
	more := d.faultCount - len(d.faults)
	if more > 0 {
		sorted = append(sorted, Fault{File: d.file, Text: fmt.Sprintf("and %d more faults; fix these first", more)})
	}
	return sorted
}

// Limits of a file. The library's time grows with the square of the number of keys.
const (
	maxDepth = 32     // of nested tables, lists and dotted keys
	maxKeys  = 10_000 // in the whole file
)

// mapper finds the line of each key: the library's decoder has no positions, and its parser applies no headers.
type mapper struct {
	parser   unstable.Parser
	breaks   []int // offsets of the line ends
	root     *node
	table    *node // the table that the last header opened
	keysLeft int   // how many keys may follow
	overLine int   // the line that exceeds a limit; 0: none
	overText string
}

// positions maps the file up to its first syntax error, or until it exceeds a limit.
func (d *Document) positions(data []byte) *mapper {
	m := &mapper{root: &node{doc: d}, keysLeft: maxKeys}
	m.table = m.root
	for i, c := range data {
		if c == '\n' {
			m.breaks = append(m.breaks, i)
		}
	}
	m.parser.Reset(data)
	for m.overLine == 0 && m.parser.NextExpression() {
		m.expression(m.parser.Expression())
	}
	return m
}

func (m *mapper) expression(e *unstable.Node) {
	switch e.Kind {
	case unstable.KeyValue:
		m.keyValue(m.table, e)
	case unstable.Table:
		n, line := m.walk(m.root, e.Key())
		n.line = line
		m.table = n.last()
	case unstable.ArrayTable:
		n, line := m.walk(m.root, e.Key())
		m.table = m.addItem(n, line)
	}
}

// walk follows a dotted key and adds missing nodes, until a limit is exceeded. It returns the last node and its line.
func (m *mapper) walk(n *node, key unstable.Iterator) (*node, int) {
	line := 0
	for m.overLine == 0 && key.Next() {
		line = m.line(key.Node(), line)
		n = m.child(n.last(), string(key.Node().Data), line)
	}
	return n, line
}

// last returns the last element of an array of tables, or n itself if it is something else.
func (n *node) last() *node {
	if len(n.items) == 0 {
		return n
	}
	return n.items[len(n.items)-1]
}

func (m *mapper) child(n *node, name string, line int) *node {
	child := n.keys[name]
	if child != nil {
		return child
	}
	m.keysLeft--
	if m.keysLeft < 0 {
		m.exceed(line, fmt.Sprintf("is one key too many; a file may hold %d", maxKeys))
	}
	child = m.newChild(n, line)
	child.name = name
	if n.keys == nil {
		n.keys = make(map[string]*node)
	}
	n.keys[name] = child
	return child
}

func (m *mapper) addItem(n *node, line int) *node {
	item := m.newChild(n, line)
	item.index, item.list = len(n.items), true
	n.items = append(n.items, item)
	return item
}

func (m *mapper) newChild(n *node, line int) *node {
	if n.depth >= maxDepth {
		m.exceed(line, fmt.Sprintf("nests more than %d levels deep", maxDepth))
	}
	return &node{doc: n.doc, up: n, line: line, depth: n.depth + 1}
}

func (m *mapper) exceed(line int, why string) { m.overLine, m.overText = max(line, 1), why }

func (m *mapper) keyValue(table *node, e *unstable.Node) {
	n, line := m.walk(table, e.Key())
	m.value(n, e.Value(), line)
}

func (m *mapper) value(n *node, v *unstable.Node, line int) {
	for children := v.Children(); m.overLine == 0 && children.Next(); {
		child := children.Node()
		switch v.Kind {
		case unstable.InlineTable:
			m.keyValue(n, child)
		case unstable.Array:
			line = m.line(child, line)
			m.value(m.addItem(n, line), child, line)
		}
	}
}

// line returns the line where v begins, or before if v is an empty list or table: the parser has no position of it.
func (m *mapper) line(v *unstable.Node, before int) int {
	for v.Raw.Length == 0 {
		v = v.Child()
		if v == nil {
			return before
		}
	}
	return 1 + sort.SearchInts(m.breaks, int(v.Raw.Offset))
}
