// Package display turns data into what people see: a table, a list, a card, a
// metric, a chart. It is not for deciding whether something is shown, and sends
// nothing.
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
// Any other format is a card, and no format is the one that fits best. Content
// that does not have the shape of its format is a card, too. An object
// {"type": FORMAT, "title": …, "data": …} says its own format.
//
// # Charts
//
//	{"labels": ["Mon", "Tue"], "series": [{"name": "Sales", "data": [3, 4]}]}
//	{"labels": ["Mon", "Tue"], "values": [3, 4]}
//	{"series": [{"name": "a", "data": [[0, 1], [1.5, 2]]}]}     pairs, or {"x": …, "y": …}
//	[{"day": "Mon", "sales": 3}, {"day": "Tue", "sales": 4}]    the first text is the label
//	{"Mon": 3, "Tue": 4}
//
// with "type" (or the format) line or bar: any other kind is drawn as the one of
// these that fits.
//
// What is shown is data: it is escaped, so that nothing in it becomes markup, but
// for what is markdown by its format. Everything is capped, visibly.
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

// Shown is content as people get to see it.
type Shown struct {
	Format  Format       // that it was shown in
	Text    string       // Markdown; never empty
	Picture *core.Upload // of a chart; Text says the same in words then
}

// Options say how content is to be shown. The zero value leaves it to Show.
type Options struct {
	Format string
	Title  string
	Fields []string // the properties of objects that come first, in this order
}

// Show never fails: content without the shape of its format is a card, and a text that
// cannot be read as JSON is called that.
func Show(content json.RawMessage, o Options) Shown {
	title := o.Title
	v, err := read(content)
	if err != nil {
		return Shown{Format: Card, Text: heading(title) + "_This cannot be shown._"}
	}
	v.arrange(o.Fields)
	f, kind := known(o.Format)
	v, f, kind, title = declared(v, f, kind, title)
	if f == Auto {
		f = best(v)
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

// known reads a format's name; kind is that of a chart.
func known(name string) (f Format, kind string) {
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

// declared takes content that says itself how it is to be shown.
func declared(v value, f Format, kind, title string) (value, Format, string, string) {
	data := v.get("data")
	if v.kind != object || data.kind == null || v.get("type").kind != text {
		return v, f, kind, title
	}
	own, k := known(v.get("type").text)
	if own == Card && v.get("type").text != string(Card) || own == Auto {
		return v, f, kind, title
	}
	if title == "" {
		title = v.title()
	}
	if k == "" && own == Chart {
		_, k = known(v.get("config").get("type", "kind").text)
	}
	if own == Chart && data.kind == array && data.all(isNumber) {
		return v, own, k, title // {"type": "line", "labels": …, "data": …}
	}
	return data, own, k, title
}

// best is the format that a value has the shape of.
func best(v value) Format {
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

// show renders a value in a format, or as a card where it does not have its shape.
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
			return Shown{Format: f, Text: apart(title) + g.markdown()}
		}
	case Chart:
		if p, ok := v.plot(kind); ok {
			p.title = title
			return p.shown()
		}
		if g, ok := v.grid(); ok {
			return Shown{Format: Table, Text: apart(title) + g.markdown()}
		}
	}
	return Shown{Format: Card, Text: heading(title) + v.card()}
}
