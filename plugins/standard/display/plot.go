package display

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"synthbot/core/txt"
)

const (
	kindLine = "line"
	kindBar  = "bar"
)

const (
	maxSeries = 8
	maxPoints = 1000
	maxBars   = 40 // in all; more points are drawn as a line
)

type plot struct {
	title   string
	kind    string
	labels  []string // of the points, where x counts them from 0
	series  []series
	omitted int // series and points that are left out
}

type series struct {
	name string
	x, y []float64
}

// plot converts a value to a chart. ok is false if it contains no series of numbers.
func (v value) plot(kind string) (p plot, ok bool) {
	if kind == "" {
		_, kind = parseFormat(v.get("type", "kind").text)
	}
	labels, values := v.get("labels", "categories", "x").list, v.get("values", "data")
	var lists []value // one for each series: numbers, or an object that has them and a name
	switch {
	case isArray(v.get("series")):
		lists = v.get("series").list
	case values.all(isNumber):
		values.key = v.get("label", "name").text
		lists = []value{values}
	case v.all(isNumber):
		lists = []value{v}
	case v.all(isObject):
		p.omitted = max(0, len(v.list)-maxPoints)
		labels, lists = fromRecords(v.list[:len(v.list)-p.omitted])
	case v.kind == object:
		labels, lists = fromMembers(v)
	}
	p.omitted += max(0, len(lists)-maxSeries)
	for _, e := range labels[:min(len(labels), maxPoints)] {
		p.labels = append(p.labels, txt.Clip(e.plain(), maxLabel))
	}
	for _, e := range lists[:min(len(lists), maxSeries)] {
		data := e.list
		if e.kind == object {
			data = e.get("data", "values", "points", "y").list
		}
		s, paired, ok := readSeries(data)
		if !ok {
			return plot{}, false
		}
		if paired {
			p.labels = nil
		}
		p.omitted += max(0, len(data)-maxPoints)
		s.name = txt.Clip(cmp.Or(e.get("name", "label", "title").text, e.key), maxLabel)
		p.series = append(p.series, s)
	}
	p.setKind(kind)
	return p, p.points() > 0
}

// readSeries converts a list of numbers, of pairs, or of objects with x and y. paired says that it contains x.
func readSeries(list []value) (s series, paired, ok bool) {
	for i, e := range list[:min(len(list), maxPoints)] {
		x, y := value{kind: number, text: fmt.Sprint(i)}, e
		switch {
		case e.kind == array && len(e.list) == 2:
			x, y, paired = e.list[0], e.list[1], true
		case e.kind == object:
			y = e.get("y", "value")
			if e.get("x").kind == number {
				x, paired = e.get("x"), true
			}
		case e.kind == null:
			continue // a gap
		}
		a, okX := x.number()
		b, okY := y.number()
		if !okX || !okY {
			return s, paired, false
		}
		s.x, s.y = append(s.x, a), append(s.y, b)
	}
	return s, paired, true
}

// fromRecords returns the numbers of objects as lists, one for each key, and their first texts as labels.
func fromRecords(records []value) (labels, lists []value) {
	name := ""
	for _, m := range records[0].list {
		switch {
		case m.kind == text && name == "":
			name = m.key
		case m.kind == number && len(lists) < maxSeries:
			lists = append(lists, value{kind: array, key: m.key})
		}
	}
	for _, e := range records {
		if name != "" {
			labels = append(labels, value{kind: text, text: e.get(name).text})
		}
		for i := range lists {
			y := e.get(lists[i].key)
			if !isNumber(y) {
				y = value{} // a gap
			}
			lists[i].list = append(lists[i].list, y)
		}
	}
	return labels, lists
}

// fromMembers returns the members of an object as labels and one list, if there are several and all are numbers.
func fromMembers(v value) (labels, lists []value) {
	all := value{kind: array}
	for _, m := range v.list {
		if m.key == "title" || m.key == "type" {
			continue
		}
		labels = append(labels, value{kind: text, text: m.key})
		all.list = append(all.list, value{kind: m.kind, text: m.text})
	}
	if len(all.list) < 2 || !all.all(isNumber) {
		return nil, nil
	}
	return labels, []value{all}
}

func (p *plot) points() (n int) {
	for _, s := range p.series {
		n += len(s.y)
	}
	return n
}

// setKind sets the kind of chart: by default bars for few points with labels, else a line.
func (p *plot) setKind(kind string) {
	n := p.points()
	switch {
	case len(p.labels) == 0 || n > maxBars:
		p.kind = kindLine
	case kind != "":
		p.kind = kind
	default:
		p.kind = kindLine
		layouts := []string{time.RFC3339, time.DateOnly, "2006-01", time.TimeOnly, "15:04"}
		isTime := slices.ContainsFunc(layouts, func(layout string) bool {
			_, err := time.Parse(layout, p.labels[0])
			return err == nil
		})
		if n <= 12 && !isTime {
			p.kind = kindBar
		}
	}
}

// label returns the label of a point, "" if it has none.
func (p *plot) label(x float64) string {
	i := int(x)
	if float64(i) == x && i >= 0 && i < len(p.labels) {
		return p.labels[i]
	}
	return ""
}

func (p *plot) altText() string {
	var b strings.Builder
	b.WriteString(map[string]string{kindLine: "Line chart", kindBar: "Bar chart"}[p.kind])
	if p.title != "" {
		b.WriteString(" “" + txt.Clip(p.title, maxLabel) + "”")
	}
	b.WriteString(".")
	for i := range p.series {
		b.WriteString(" " + p.describe(&p.series[i]))
	}
	if p.omitted > 0 {
		fmt.Fprintf(&b, " %d more left out.", p.omitted)
	}
	return txt.Clip(b.String(), 1000)
}

func (p *plot) describe(s *series) string {
	if len(s.y) == 0 {
		return s.name + ": nothing."
	}
	low, high := 0, 0
	for i, y := range s.y {
		if y < s.y[low] {
			low = i
		}
		if y > s.y[high] {
			high = i
		}
	}
	text := fmt.Sprintf("%d values", len(s.y))
	if s.name != "" {
		text = s.name + ": " + text
	}
	last := len(s.y) - 1
	switch {
	case last == 0:
		return strings.TrimSuffix(text, "1 values") + p.point(s, 0) + "."
	case low == high:
		return fmt.Sprintf("%s, all %s.", text, formatNumber(s.y[0]))
	case last == 1:
		return fmt.Sprintf("%s, from %s to %s.", text, p.point(s, 0), p.point(s, 1))
	}
	return fmt.Sprintf("%s, from %s to %s, lowest %s, highest %s.", text, p.point(s, 0), p.point(s, last),
		p.point(s, low), p.point(s, high))
}

func (p *plot) point(s *series, i int) string {
	at := p.label(s.x[i])
	if at == "" && len(p.labels) == 0 {
		return formatNumber(s.y[i])
	}
	return formatNumber(s.y[i]) + " (" + at + ")"
}

// formatNumber writes a number with no more digits than a person wants to read.
func formatNumber(f float64) string {
	s := fmt.Sprintf("%.6g", f)
	if strings.Contains(s, "e+") {
		s = fmt.Sprintf("%.0f", f)
	}
	return s
}
