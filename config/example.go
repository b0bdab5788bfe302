package config

import (
	"fmt"
	"reflect"
	"strings"
)

// width is the length limit of a line of comment.
const width = 78

// Example renders a complete configuration file with a sentence for each key.
// Optional keys and tables are commented out: a key or header begins with "#", a
// sentence with "# ". The file has no faults as it is, nor with all keys commented in.
func (p Page) Example(into any) string {
	var b strings.Builder
	comment(&b, p.Intro)
	for _, s := range p.sections(into) {
		s.example(&b)
	}
	return b.String()
}

func (s *section) example(b *strings.Builder) {
	if b.Len() > 0 {
		b.WriteByte('\n')
	}
	if s.header != "" {
		comment(b, s.doc)
		b.WriteString(mark(s.optional) + s.header + "\n")
	}
	for _, f := range s.fields {
		text, isDefault := f.shown(s.optional)
		comment(b, strings.Join(f.sentences(isDefault), " "))
		fmt.Fprintf(b, "%s%s = %s\n", mark(s.optional || !f.required), QuoteKey(f.name), text)
	}
}

func mark(spare bool) string {
	if spare {
		return "#"
	}
	return ""
}

// sentences describes a field whose value is shown below.
func (f *field) sentences(isDefault bool) []string {
	list := append([]string{f.doc}, f.limits()...)
	switch {
	case f.required:
		list = append(list, "Required.")
	case f.initial != nil && !isDefault:
		list = append(list, "Default: "+literal(f.typ, *f.initial)+".")
	case !isDefault:
		list = append(list, "For example:")
	}
	return list
}

// limits describes the rules of a field.
func (f *field) limits() []string {
	var list []string
	if f.rules.oneof != nil {
		list = append(list, "One of: "+strings.Join(f.rules.choices(), ", ")+".")
	}
	span := f.rules.span()
	switch {
	case span == "":
	case f.leaf().Kind() == reflect.String:
		list = append(list, "Length in characters: "+span+".")
	default:
		list = append(list, span+".")
	}
	return list
}

// comment writes a text as lines of comment.
func comment(b *strings.Builder, text string) {
	for paragraph := range strings.SplitSeq(text, "\n") {
		line := "#"
		for word := range strings.FieldsSeq(paragraph) {
			if len(line)+1+len(word) > width && line != "#" {
				b.WriteString(line + "\n")
				line = "#"
			}
			line += " " + word
		}
		if line != "#" {
			b.WriteString(line + "\n")
		}
	}
}
