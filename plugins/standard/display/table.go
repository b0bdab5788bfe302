package display

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"synthbot/core/txt"
)

// Limits of a table. A note says how much is left out.
const (
	maxRows    = 30
	maxColumns = 8
)

type grid struct {
	scalars        []value  // scalars beside the rows
	columns        []string // keys or headings
	rows           [][]value
	omittedRows    int // rows that are left out
	omittedColumns int // columns that are left out
}

// grid converts a value to a table. It returns false if the value does not have that shape.
func (v value) grid() (grid, bool) {
	switch {
	case v.all(isObject):
		return gridOfObjects(v.list), true
	case v.all(isArray):
		width := 0
		for _, e := range v.list {
			width = max(width, len(e.list))
		}
		return newGrid(make([]string, width), v.list, value.at), true
	case v.kind != object:
		return grid{}, false
	}
	columns, rows := v.get("columns", "headers", "header"), v.get("rows", "data")
	if columns.kind == array && rows.kind == array {
		return gridOfColumns(columns.list, rows.list), true
	}
	var g grid // an object of scalars around one array of objects
	found := false
	for _, e := range v.list {
		switch {
		case e.scalar():
			if e.key != "title" {
				g.scalars = append(g.scalars, e)
			}
		case e.all(isObject) && !found:
			above := g.scalars
			g, found = gridOfObjects(e.list), true
			g.scalars = above
		default:
			return grid{}, false
		}
	}
	return g, found
}

func gridOfObjects(list []value) grid {
	var keys []string
	for _, e := range list[:min(len(list), maxRows)] {
		for _, m := range e.list {
			if !slices.Contains(keys, m.key) {
				keys = append(keys, m.key)
			}
		}
	}
	return newGrid(keys, list, func(e value, column int) value { return e.get(keys[column]) })
}

func (v value) at(i int) value {
	if i < len(v.list) {
		return v.list[i]
	}
	return value{}
}

// gridOfColumns returns a table of columns, each a key or an object with a key, and rows, each an object or an array.
func gridOfColumns(columns, rows []value) grid {
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
	return newGrid(titles, rows, func(row value, column int) value {
		if row.kind == object {
			return row.get(keys[column])
		}
		return row.at(column)
	})
}

// newGrid returns a table of at most maxRows and maxColumns.
func newGrid(columns []string, list []value, cell func(row value, column int) value) grid {
	g := grid{omittedRows: max(0, len(list)-maxRows), omittedColumns: max(0, len(columns)-maxColumns)}
	g.columns = columns[:len(columns)-g.omittedColumns]
	for _, e := range list[:len(list)-g.omittedRows] {
		row := make([]value, len(g.columns))
		for i := range row {
			row[i] = cell(e, i)
		}
		g.rows = append(g.rows, row)
	}
	return g
}

// markdown formats the table. It leaves out rows beyond maxText.
func (g grid) markdown() string {
	var b strings.Builder
	for _, e := range g.scalars {
		b.WriteString("**" + label(e.key) + "**: " + e.line(maxCell) + "\n")
	}
	if len(g.scalars) > 0 {
		b.WriteByte('\n')
	}
	if len(g.columns) == 0 {
		return b.String() + "–"
	}
	b.WriteString("|")
	for _, c := range g.columns {
		b.WriteString(" " + cmp.Or(label(c), " ") + " |")
	}
	b.WriteString("\n|")
	for i := range g.columns {
		b.WriteString(g.delimiter(i) + "|")
	}
	b.WriteByte('\n')
	left := g.omittedRows
	for i, r := range g.rows {
		line := "|"
		for _, v := range r {
			cell := " " // with an empty cell it would not be a table
			if v.kind != null {
				cell = cmp.Or(v.line(maxCell), cell)
			}
			line += " " + cell + " |"
		}
		if b.Len()+len(line) >= maxText {
			left += len(g.rows) - i
			break
		}
		b.WriteString(line + "\n")
	}
	return b.String() + g.note(left)
}

// delimiter returns the cell below the heading, which aligns columns of numbers to the right.
func (g grid) delimiter(column int) string {
	rule := "---"
	for _, r := range g.rows {
		switch r[column].kind {
		case number:
			rule = "---:"
		case null:
		default:
			return "---"
		}
	}
	return rule
}

func (g grid) note(rows int) string {
	var left []string
	if rows > 0 {
		left = append(left, fmt.Sprintf("%d more rows", rows))
	}
	if g.omittedColumns > 0 {
		left = append(left, fmt.Sprintf("%d more columns", g.omittedColumns))
	}
	if len(left) == 0 {
		return ""
	}
	return "\n_… and " + strings.Join(left, " and ") + "_"
}

const maxLines = 30

func (v value) metric(title string) (string, bool) {
	m, ok := v.metricValue()
	if !ok {
		return "", false
	}
	line := escape(txt.Clip(cmp.Or(title, v.textOf("label", "name", "metric")), maxLabel))
	if line == "" && m.key != "value" {
		line = label(m.key)
	}
	if line != "" {
		line = "**" + line + "**: "
	}
	line += m.line(maxCell)
	unit := v.textOf("unit", "currency")
	if unit != "" {
		line += " " + escape(txt.Clip(unit, maxCell))
	}
	change := v.get("change", "delta", "trend")
	if change.kind == text || change.kind == number {
		arrow := ""
		switch f, ok := change.number(); {
		case ok && f > 0:
			arrow = "▲ "
		case ok && f < 0:
			arrow = "▼ "
		}
		line += " (" + arrow + change.line(maxCell) + ")"
	}
	return line, true
}

// metricValue returns the value of a metric: the scalar itself, the member value, or the only number.
func (v value) metricValue() (value, bool) {
	if v.kind != object {
		v.key = "value"
		return v, v.scalar() && v.kind != null
	}
	named := v.get("value")
	if named.kind != null && named.scalar() {
		return named, true
	}
	found := slices.DeleteFunc(slices.Clone(v.list), func(e value) bool {
		return e.kind != number || e.key == "change" || e.key == "delta" || e.key == "trend"
	})
	if len(found) != 1 {
		return value{}, false
	}
	return found[0], true
}

func (v value) bullets() (string, bool) {
	items := v.list
	if v.kind == object {
		items = v.get("items").list
	}
	return lines(items, func(e value) string { return "- " + e.item() }), len(items) > 0
}

func (v value) item() string {
	if v.kind != object {
		return v.line(maxLine)
	}
	name := v.textOf("title", "name", "label", "text")
	var parts []string
	if name != "" {
		parts = append(parts, "**"+escape(txt.Clip(name, maxLabel))+"**")
	}
	for _, e := range v.list {
		if !(e.kind == text && e.text == name) && len(parts) < maxColumns {
			parts = append(parts, label(e.key)+": "+e.line(maxCell))
		}
	}
	return cmp.Or(strings.Join(parts, " · "), "–")
}

// card formats any value, an object with a line for each property.
func (v value) card() string {
	switch {
	case v.kind != object && v.kind != array:
		return v.line(maxText)
	case len(v.list) == 0:
		return "–"
	case v.kind == array:
		text, _ := v.bullets()
		return text
	}
	list := slices.DeleteFunc(slices.Clone(v.list), func(e value) bool { return e.key == "title" && e.kind == text })
	return lines(list, value.property)
}

// property formats a member as a line of a card; an array of objects gets a line for each.
func (v value) property() string {
	line := "**" + label(v.key) + "**:"
	if !v.all(isObject) {
		return line + " " + v.line(maxLine)
	}
	for _, e := range v.list[:min(len(v.list), maxLines)] {
		line += "\n- " + e.item()
	}
	n := len(v.list) - maxLines
	if n > 0 {
		line += fmt.Sprintf("\n- … and %d more", n)
	}
	return line + "\n"
}

// lines writes each element on a line, at most maxLines and maxText.
func lines(list []value, write func(value) string) string {
	var b strings.Builder
	for i, e := range list {
		line := write(e)
		if i >= maxLines || b.Len()+len(line) > maxText {
			fmt.Fprintf(&b, "_… and %d more_\n", len(list)-i)
			break
		}
		b.WriteString(line + "\n")
	}
	return b.String()
}
