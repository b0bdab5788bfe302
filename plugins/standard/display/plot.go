package display

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"synthbot/core/txt"
)

// Kinds of chart that are drawn.
const (
	kindLine = "line"
	kindBar  = "bar"
)

// Bounds of a chart.
const (
	maxSeries = 8
	maxPoints = 1000
	mostBars  = 40 // in all; more are a line
)

// plot is what a chart shows.
type plot struct {
	title  string
	kind   string
	labels []string // of the points, where x counts them from 0
	series []series
	left   int // series and points that are left out
}

type series struct {
	name string
	x, y []float64
}

// plot reads a value as a chart; ok is false where there is nothing to draw.
func (v value) plot(kind string) (p plot, ok bool) {
	if kind == "" {
		_, kind = known(v.get("type", "kind").text)
	}
	labels, values := v.get("labels", "categories", "x"), v.get("values", "data")
	switch {
	case v.get("series").kind == array:
		p, ok = ofSeries(labels, v.get("series").list)
	case values.all(isNumber):
		p, ok = ofSeries(labels, []value{values})
		p.series[0].name = txt.Clip(v.get("label", "name").text, maxLabel)
	case v.all(isNumber):
		p, ok = ofSeries(value{}, []value{v})
	case v.all(isObject):
		p, ok = ofRecords(v.list)
	case v.kind == object:
		p, ok = ofNumbers(v)
	}
	if !ok || p.points() == 0 {
		return plot{}, false
	}
	p.choose(kind)
	return p, true
}

// ofSeries reads lists of numbers, or objects with one each.
func ofSeries(labels value, list []value) (plot, bool) {
	p := plot{left: max(0, len(list)-maxSeries)}
	for _, e := range labels.list[:min(len(labels.list), maxPoints)] {
		p.labels = append(p.labels, txt.Clip(e.plain(), maxLabel))
	}
	for _, e := range list[:len(list)-p.left] {
		data := e
		if e.kind == object {
			data = e.get("data", "values", "points", "y")
		}
		s, paired, ok := ofData(data.list)
		if !ok {
			return plot{}, false
		}
		if paired {
			p.labels = nil
		}
		p.left += max(0, len(data.list)-maxPoints)
		s.name = txt.Clip(e.get("name", "label", "title").text, maxLabel)
		p.series = append(p.series, s)
	}
	return p, true
}

// ofData reads numbers, or pairs of them.
func ofData(list []value) (s series, paired, ok bool) {
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

// ofRecords reads objects with a text that labels them, and numbers.
func ofRecords(list []value) (plot, bool) {
	var p plot
	name := ""
	for _, m := range list[0].list {
		switch {
		case m.kind == text && name == "":
			name = m.key
		case m.kind == number && len(p.series) < maxSeries:
			p.series = append(p.series, series{name: txt.Clip(m.key, maxLabel)})
		}
	}
	p.left = max(0, len(list)-maxPoints)
	for i, e := range list[:len(list)-p.left] {
		p.labels = append(p.labels, e.get(name).text)
		for k := range p.series {
			if y, ok := e.get(p.series[k].name).number(); ok {
				p.series[k].x, p.series[k].y = append(p.series[k].x, float64(i)), append(p.series[k].y, y)
			}
		}
	}
	if name == "" {
		p.labels = nil
	}
	return p, len(p.series) > 0
}

// ofNumbers reads an object whose members are numbers.
func ofNumbers(v value) (plot, bool) {
	var p plot
	s := series{}
	for _, m := range v.list {
		y, ok := m.number()
		switch {
		case m.key == "title" || m.key == "type":
		case !ok:
			return plot{}, false
		case len(s.y) < maxPoints:
			p.labels = append(p.labels, m.key)
			s.x, s.y = append(s.x, float64(len(s.x))), append(s.y, y)
		default:
			p.left++
		}
	}
	p.series = []series{s}
	return p, len(s.y) > 1
}

func (p *plot) points() (n int) {
	for _, s := range p.series {
		n += len(s.y)
	}
	return n
}

// choose settles the kind: few points with names are bars, times a line.
func (p *plot) choose(kind string) {
	n := p.points()
	switch {
	case len(p.labels) == 0 || n > mostBars:
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

// label names a point; "" where it has no name.
func (p *plot) label(x float64) string {
	i := int(x)
	if float64(i) == x && i >= 0 && i < len(p.labels) {
		return p.labels[i]
	}
	return ""
}

// words say what the chart shows: what a picture's alt text is for.
func (p *plot) words() string {
	var b strings.Builder
	b.WriteString(map[string]string{kindLine: "Line chart", kindBar: "Bar chart"}[p.kind])
	if p.title != "" {
		b.WriteString(" “" + txt.Clip(p.title, maxLabel) + "”")
	}
	b.WriteString(".")
	for i := range p.series {
		b.WriteString(" " + p.describe(&p.series[i]))
	}
	if p.left > 0 {
		fmt.Fprintf(&b, " %d more left out.", p.left)
	}
	return txt.Clip(b.String(), 1000)
}

// describe says where a series begins and ends, and what its extremes are.
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
		return fmt.Sprintf("%s, all %s.", text, short(s.y[0]))
	case last == 1:
		return fmt.Sprintf("%s, from %s to %s.", text, p.point(s, 0), p.point(s, 1))
	}
	return fmt.Sprintf("%s, from %s to %s, lowest %s, highest %s.", text, p.point(s, 0), p.point(s, last),
		p.point(s, low), p.point(s, high))
}

func (p *plot) point(s *series, i int) string {
	at := p.label(s.x[i])
	if at == "" && len(p.labels) == 0 {
		return short(s.y[i])
	}
	return short(s.y[i]) + " (" + at + ")"
}

// short writes a number with no more digits than a person wants to read.
func short(f float64) string {
	s := fmt.Sprintf("%.6g", f)
	if strings.Contains(s, "e") {
		s = fmt.Sprintf("%.0f", f)
	}
	return s
}
