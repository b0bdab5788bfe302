package config

import (
	"fmt"
	"sort"

	"github.com/pelletier/go-toml/v2/unstable"
)

// Limits of a file. The library's time grows with the square of the number of keys.
const (
	maxDepth = 32     // of nested tables, lists and dotted keys
	maxKeys  = 10_000 // in the whole file
)

// node is a key or an element of the file, with its line. A nil node is missing.
type node struct {
	line  int
	depth int
	keys  map[string]*node
	items []*node
}

// mapper finds the line of each key. The library's decoder returns values without
// positions, and its parser returns positions without applying headers.
type mapper struct {
	parser unstable.Parser
	breaks []int // offsets of the line ends
	root   *node
	table  *node // the table that the last header opened
	left   int   // how many keys may follow
	over   int   // the line beyond a limit; 0: none
	why    string
}

// positions maps the file up to its first syntax error. over is the line at which
// the file exceeds a limit, or 0; the map ends there.
func positions(data []byte) (root *node, over int, why string) {
	m := &mapper{root: &node{}, left: maxKeys}
	m.table = m.root
	for i, c := range data {
		if c == '\n' {
			m.breaks = append(m.breaks, i)
		}
	}
	m.parser.Reset(data)
	for m.over == 0 && m.parser.NextExpression() {
		m.expression(m.parser.Expression())
	}
	return m.root, m.over, m.why
}

func (m *mapper) expression(e *unstable.Node) {
	switch e.Kind {
	case unstable.KeyValue:
		m.keyValue(m.table, e)
	case unstable.Table:
		n, line := m.walk(m.root, e.Key())
		if n != nil {
			n.line = line
			m.table = n.last()
		}
	case unstable.ArrayTable:
		n, line := m.walk(m.root, e.Key())
		if n == nil {
			return
		}
		item := m.below(n, line)
		if item != nil {
			n.items = append(n.items, item)
			m.table = item
		}
	}
}

// walk follows a dotted key and adds missing nodes. It returns the key's node,
// without choosing an element of an array, and its line; nil beyond a limit.
func (m *mapper) walk(n *node, key unstable.Iterator) (*node, int) {
	line := 0
	for key.Next() {
		line = m.line(key.Node(), line)
		n = m.enter(n.last(), string(key.Node().Data), line)
		if n == nil {
			return nil, line
		}
	}
	return n, line
}

// last is the newest element of an array of tables, else n itself.
func (n *node) last() *node {
	if len(n.items) == 0 {
		return n
	}
	return n.items[len(n.items)-1]
}

func (m *mapper) enter(n *node, name string, line int) *node {
	child := n.keys[name]
	if child != nil {
		return child
	}
	m.left--
	if m.left < 0 {
		m.refuse(line, fmt.Sprintf("is one key too many; a file may hold %d", maxKeys))
		return nil
	}
	child = m.below(n, line)
	if child == nil {
		return nil
	}
	if n.keys == nil {
		n.keys = make(map[string]*node)
	}
	n.keys[name] = child
	return child
}

func (m *mapper) below(n *node, line int) *node {
	if n.depth >= maxDepth {
		m.refuse(line, fmt.Sprintf("nests more than %d levels deep", maxDepth))
		return nil
	}
	return &node{line: line, depth: n.depth + 1}
}

func (m *mapper) refuse(line int, why string) { m.over, m.why = max(line, 1), why }

func (m *mapper) keyValue(table *node, e *unstable.Node) {
	n, line := m.walk(table, e.Key())
	if n != nil {
		m.value(n, e.Value(), line)
	}
}

func (m *mapper) value(n *node, v *unstable.Node, line int) {
	for children := v.Children(); m.over == 0 && children.Next(); {
		child := children.Node()
		switch {
		case v.Kind == unstable.InlineTable:
			m.keyValue(n, child)
		case v.Kind == unstable.Array:
			line = m.line(child, line)
			item := m.below(n, line)
			if item != nil {
				n.items = append(n.items, item)
				m.value(item, child, line)
			}
		}
	}
}

// line returns the line where v begins, or before for an empty list or table, which
// the parser gives no position.
func (m *mapper) line(v *unstable.Node, before int) int {
	for v.Raw.Length == 0 {
		v = v.Child()
		if v == nil {
			return before
		}
	}
	return 1 + sort.SearchInts(m.breaks, int(v.Raw.Offset))
}
