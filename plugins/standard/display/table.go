package display

import (
	"fmt"
	"slices"
	"strings"
)

// Bounds of a table; a note says what was left out.
const (
	maxRows    = 30
	maxColumns = 8
)

// grid is a table.
type grid struct {
	above   []member // scalars beside the rows
	columns []string // keys or headings
	rows    [][]value
	left    int // rows and columns that are left out
	narrow  int
}

// grid reads a value as a table.
func (v value) grid() (grid, bool) {
	switch {
	case v.all(isObject):
		return ofObjects(v.list), true
	case v.all(isArray):
		return ofArrays(nil, v.list), true
	case v.kind != object:
		return grid{}, false
	}
	columns, rows := v.get("columns", "headers", "header"), v.get("rows", "data")
	if columns.kind == array &&
		rows.kind == array {
		return named(columns.list, rows.list), true
	}
	return v.enveloped()
}

// enveloped reads an object of scalars around one array of objects.
func (v value) enveloped() (grid, bool) {
	var g grid
	found := false
	for _, m := range v.members {
		switch {
		case m.value.scalar():
			if m.key != "title" {
				g.above = append(g.above, m)
			}
		case m.value.all(isObject) && !found:
			above := g.above
			g, found = ofObjects(m.value.list), true
			g.above = above
		default:
			return grid{}, false
		}
	}
	return g, found
}

func ofObjects(list []value) grid {
	var g grid
	for _, e := range list[:min(len(list), maxRows)] {
		for _, m := range e.members {
			if !slices.Contains(g.columns, m.key) {
				g.columns = append(g.columns, m.key)
			}
		}
	}
	g.narrow = max(0, len(g.columns)-maxColumns)
	g.columns = g.columns[:len(g.columns)-g.narrow]
	return g.fill(list, func(e value) []value {
		row := make([]value, len(g.columns))
		for i, key := range g.columns {
			row[i] = e.get(key)
		}
		return row
	})
}

func ofArrays(columns []string, list []value) grid {
	g := grid{columns: columns}
	if columns == nil {
		width := 0
		for _, e := range list {
			width = max(width, len(e.list))
		}
		g.columns = make([]string, width)
	}
	g.narrow = max(0, len(g.columns)-maxColumns)
	g.columns = g.columns[:len(g.columns)-g.narrow]
	return g.fill(list, func(e value) []value {
		row := make([]value, len(g.columns))
		copy(row, e.list)
		return row
	})
}

// named reads columns, each a key or an object that names one, and rows of either
// kind.
func named(columns, rows []value) grid {
	var keys, titles []string
	for _, c := range columns {
		key := c.get("key", "field", "name", "id", "title", "label")
		if c.scalar() {
			key = c
		}
		title := c.get("title", "label", "header", "name")
		if title.kind == null {
			title = key
		}
		keys, titles = append(keys, key.text), append(titles, title.text)
	}
	flat := make([]value, len(rows))
	for i, r := range rows {
		flat[i] = r
		if r.kind == object {
			flat[i] = value{kind: array}
			for _, key := range keys {
				flat[i].list = append(flat[i].list, r.get(key))
			}
		}
	}
	return ofArrays(titles, flat)
}

func (g grid) fill(list []value, row func(value) []value) grid {
	g.left = max(0, len(list)-maxRows)
	for _, e := range list[:len(list)-g.left] {
		g.rows = append(g.rows, row(e))
	}
	return g
}

// markdown writes the table, as much of it as there is room for.
func (g grid) markdown() string {
	var b strings.Builder
	for _, m := range g.above {
		b.WriteString("**" + label(m.key) + "**: " + m.value.line(maxCell) + "\n")
	}
	if len(g.above) > 0 {
		b.WriteByte('\n')
	}
	if len(g.columns) == 0 {
		return b.String() + "–"
	}
	b.WriteString("|")
	for _, c := range g.columns {
		b.WriteString(" " + cellText(label(c)) + " |")
	}
	b.WriteString("\n|")
	for i := range g.columns {
		b.WriteString(g.rule(i) + "|")
	}
	b.WriteByte('\n')
	left := g.left
	for i, r := range g.rows {
		line := rowText(r)
		if b.Len()+len(line) > maxText {
			left += len(g.rows) - i
			break
		}
		b.WriteString(line)
	}
	return b.String() + g.rest(left)
}

func rowText(r []value) string {
	line := "|"
	for _, v := range r {
		cell := ""
		if v.kind != null {
			cell = v.line(maxCell)
		}
		line += " " + cellText(cell) + " |"
	}
	return line + "\n"
}

// cellText keeps an empty cell from making the table none.
func cellText(s string) string {
	if s == "" {
		return " "
	}
	return s
}

// rule sets a column of numbers to the right.
func (g grid) rule(column int) string {
	numbers := 0
	for _, r := range g.rows {
		switch r[column].kind {
		case number:
			numbers++
		case null:
		default:
			return "---"
		}
	}
	if numbers == 0 {
		return "---"
	}
	return "---:"
}

// rest tells what was left out.
func (g grid) rest(rows int) string {
	var left []string
	if rows > 0 {
		left = append(left, fmt.Sprintf("%d more rows", rows))
	}
	if g.narrow > 0 {
		left = append(left, fmt.Sprintf("%d more columns", g.narrow))
	}
	if len(left) == 0 {
		return ""
	}
	return "\n_… and " + strings.Join(left, " and ") + "_"
}
