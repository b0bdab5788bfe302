// Package display renders data for users: as a table, a list, a card, a metric or
// a chart. It does not decide whether data are shown, and sends nothing.
//
// # Formats
//
//	markdown   a string, as it is
//	metric     one line: a scalar, or an object with a value (or one number), a
//	           label, a unit, a change
//	list       an array; or an object with items
//	table      an array of objects or of arrays; an object with columns and rows,
//	           or with one array of objects beside scalars
//	chart      series of numbers, see below: a picture, and its words
//	card       an object, a line for each of its properties
//
// An unknown format is a card; without one, the format that fits best is used. Content that does not fit its format is
// a card, too. An object {"type": FORMAT, "title": …, "data": …} contains its own format.
//
// # Charts
//
//	{"labels": ["Mon", "Tue"], "series": [{"name": "Sales", "data": [3, 4]}]}
//	{"labels": ["Mon", "Tue"], "values": [3, 4]}
//	{"series": [{"name": "a", "data": [[0, 1], [1.5, 2]]}]}     pairs, or {"x": …, "y": …}
//	[{"day": "Mon", "sales": 3}, {"day": "Tue", "sales": 4}]    the first text is the label
//	{"Mon": 3, "Tue": 4}
//
// with "type" (or the format) line or bar; other kinds are drawn as one of these.
//
// Data are escaped, so that nothing in them becomes markup, except in the format
// markdown. Long content is cut, with a note.
package display

import (
	"encoding/json"
	"strings"

	"synthbot/core"
	"synthbot/core/txt"
)

// Format is a way to show content.
type Format string

// Formats. Auto is the one that fits the content best.
const (
	Auto     Format = ""
	Table    Format = "table"
	Metric   Format = "metric"
	List     Format = "list"
	Card     Format = "card"
	Chart    Format = "chart"
	Markdown Format = "markdown"
)

// Shown is rendered content.
type Shown struct {
	Format  Format       // that was used
	Text    string       // Markdown; never empty
	Picture *core.Upload // of a chart; then Text describes it
}

// Options are wishes how to show content. The zero value has none.
type Options struct {
	Format string
	Title  string
	Fields []string // the properties of objects that come first, in this order
}

// Show renders content. It never fails: content that does not fit its format becomes a card, and invalid JSON a remark.
func Show(content json.RawMessage, o Options) Shown {
	title := o.Title
	v, err := read(content)
	if err != nil {
		return Shown{Format: Card, Text: heading(title) + "_This cannot be shown._"}
	}
	v.sortMembers(o.Fields)
	f, kind := parseFormat(o.Format)
	v, f, kind, title = applyDeclared(v, f, kind, title)
	if f == Auto {
		f = bestFormat(v)
	}
	if title == "" {
		title = v.title()
	}
	s := v.show(f, kind, title)
	s.Text = strings.TrimRight(s.Text, "\n")
	if s.Text == "" {
		s.Text = "–"
	}
	return s
}

// parseFormat returns the format with a name, and the kind of chart if the name implies one.
func parseFormat(name string) (f Format, kind string) {
	name = strings.ToLower(strings.TrimSpace(name))
	switch name {
	case "auto", "":
		return Auto, ""
	case "table", "metric", "list", "card", "chart", "markdown":
		return Format(name), ""
	case "text":
		return Markdown, ""
	case "line", "line_chart", "area", "area_chart":
		return Chart, kindLine
	case "bar", "bar_chart", "pie", "pie_chart", "column":
		return Chart, kindBar
	}
	return Card, ""
}

// applyDeclared returns the data, format, kind and title of content that declares them itself.
func applyDeclared(v value, f Format, kind, title string) (value, Format, string, string) {
	data := v.get("data")
	if v.kind != object || data.kind == null || v.get("type").kind != text {
		return v, f, kind, title
	}
	own, k := parseFormat(v.get("type").text)
	if own == Card && v.get("type").text != string(Card) || own == Auto {
		return v, f, kind, title
	}
	if title == "" {
		title = v.title()
	}
	if k == "" && own == Chart {
		_, k = parseFormat(v.get("config").get("type", "kind").text)
	}
	if own == Chart && data.kind == array && data.all(isNumber) {
		return v, own, k, title // {"type": "line", "labels": …, "data": …}
	}
	return data, own, k, title
}

func bestFormat(v value) Format {
	switch {
	case v.kind == text:
		return Markdown
	case v.scalar(), v.kind == object && v.get("value").kind != null && v.get("value").scalar():
		return Metric
	case v.kind == array && !v.all(isObject) && !v.all(isArray):
		return List
	case v.kind == object && isArray(v.get("series")), v.kind == object && isArray(v.get("labels")):
		if _, ok := v.plot(""); ok {
			return Chart
		}
	case v.kind == object && v.get("items").kind == array && !v.get("items").all(isObject):
		return List
	}
	if _, ok := v.grid(); ok {
		return Table
	}
	if v.kind == object && len(v.list) == 1 && v.list[0].kind == number {
		return Metric
	}
	return Card
}

// show renders a value in a format, or as a card if it does not fit.
func (v value) show(f Format, kind, title string) Shown {
	switch f {
	case Markdown:
		if v.kind == text && strings.TrimSpace(v.text) != "" {
			return Shown{Format: f, Text: heading(title) + txt.Clip(v.text, maxMarkdown)}
		}
	case Metric:
		if line, ok := v.metric(title); ok {
			return Shown{Format: f, Text: line}
		}
	case List:
		if lines, ok := v.bullets(); ok {
			return Shown{Format: f, Text: heading(title) + lines}
		}
	case Table:
		if g, ok := v.grid(); ok {
			return Shown{Format: f, Text: headingAbove(title) + g.markdown()}
		}
	case Chart:
		if p, ok := v.plot(kind); ok {
			p.title = title
			return p.render()
		}
		if g, ok := v.grid(); ok {
			return Shown{Format: Table, Text: headingAbove(title) + g.markdown()}
		}
	}
	return Shown{Format: Card, Text: heading(title) + v.card()}
}
