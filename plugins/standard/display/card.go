package display

import (
	"fmt"
	"strings"

	"synthbot/core/txt"
)

// maxLines is how many lines a card or a list has.
const maxLines = 30

// metric is one line with a number.
func (v value) metric(title string) (string, bool) {
	if v.scalar() && v.kind != null {
		return lead(title) + v.line(maxCell), true
	}
	if v.kind != object {
		return "", false
	}
	m, ok := v.measured()
	if !ok {
		return "", false
	}
	name := title
	for _, key := range []string{"label", "name", "metric"} {
		t := v.get(key)
		if t.kind == text && name == "" {
			name = t.text
		}
	}
	line := escape(txt.Clip(name, maxLabel))
	if line == "" && m.key != "value" {
		line = label(m.key)
	}
	if line != "" {
		line = "**" + line + "**: "
	}
	line += m.value.line(maxCell)
	unit := v.get("unit", "currency")
	if unit.kind == text {
		line += " " + unit.line(maxCell)
	}
	change := v.get("change", "delta", "trend")
	if change.kind == text || change.kind == number {
		line += " (" + arrow(change) + change.line(maxCell) + ")"
	}
	return line, true
}

// lead is a name before a value.
func lead(title string) string {
	if title == "" {
		return ""
	}
	return "**" + escape(txt.Clip(title, maxLabel)) + "**: "
}

// measured is what a metric is about: its value, or the only number there is.
func (v value) measured() (member, bool) {
	named := v.get("value")
	if named.kind != null && named.scalar() {
		return member{"value", named}, true
	}
	var found []member
	for _, m := range v.members {
		if m.value.kind == number && m.key != "change" && m.key != "delta" && m.key != "trend" {
			found = append(found, m)
		}
	}
	if len(found) != 1 {
		return member{}, false
	}
	return found[0], true
}

// arrow shows which way a change goes.
func arrow(change value) string {
	switch f, ok := change.number(); {
	case ok && f > 0:
		return "▲ "
	case ok && f < 0:
		return "▼ "
	}
	return ""
}

// bullets are the lines of a list.
func (v value) bullets() (string, bool) {
	items := v.list
	if v.kind == object {
		items = v.get("items").list
	}
	if len(items) == 0 {
		return "", false
	}
	return lines(items, func(e value) string { return "- " + e.item() }), true
}

// item is an element of a list on one line.
func (v value) item() string {
	if v.kind != object {
		return v.line(maxLine)
	}
	name := v.get("title", "name", "label", "text")
	var parts []string
	if name.kind == text {
		parts = append(parts, "**"+name.line(maxLabel)+"**")
	}
	for _, m := range v.members {
		if !(m.value.kind == text && m.value.text == name.text) && len(parts) < maxColumns {
			parts = append(parts, label(m.key)+": "+m.value.line(maxCell))
		}
	}
	if len(parts) == 0 {
		return "–"
	}
	return strings.Join(parts, " · ")
}

// card shows whatever there is, a line for each property.
func (v value) card() string {
	switch {
	case v.kind == array:
		if text, ok := v.bullets(); ok {
			return text
		}
		return "–"
	case v.kind != object:
		return v.line(maxText)
	case len(v.members) == 0:
		return "–"
	}
	list := make([]value, 0, len(v.members))
	for _, m := range v.members {
		if m.key != "title" || m.value.kind != text {
			list = append(list, value{members: []member{m}})
		}
	}
	return lines(list, func(e value) string { return property(e.members[0]) })
}

// property is a line of a card; an array of several things gets lines of its own.
func property(m member) string {
	line := "**" + label(m.key) + "**:"
	if !m.value.all(isObject) {
		return line + " " + m.value.line(maxLine)
	}
	for _, e := range m.value.list[:min(len(m.value.list), maxLines)] {
		line += "\n- " + e.item()
	}
	n := len(m.value.list) - maxLines
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
