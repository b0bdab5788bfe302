package display

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"synthbot/core/txt"
)

// maxLines is how many lines a card or a list has.
const maxLines = 30

// metric is one line with a number.
func (v value) metric(title string) (string, bool) {
	m, ok := v.measured()
	if !ok {
		return "", false
	}
	line := escape(txt.Clip(cmp.Or(title, v.says("label", "name", "metric")), maxLabel))
	if line == "" && m.key != "value" {
		line = label(m.key)
	}
	if line != "" {
		line = "**" + line + "**: "
	}
	line += m.line(maxCell)
	unit := v.says("unit", "currency")
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

// measured is what a metric is about: the scalar, its value, or the only number there is.
func (v value) measured() (value, bool) {
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

// bullets are the lines of a list.
func (v value) bullets() (string, bool) {
	items := v.list
	if v.kind == object {
		items = v.get("items").list
	}
	return lines(items, func(e value) string { return "- " + e.item() }), len(items) > 0
}

// item is an element of a list on one line.
func (v value) item() string {
	if v.kind != object {
		return v.line(maxLine)
	}
	name := v.says("title", "name", "label", "text")
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

// card shows whatever there is, a line for each property.
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

// property is a line of a card; an array of several things gets lines of its own.
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

// lines writes elements one below the other, as many as there is room for.
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
