package config

import (
	"cmp"
	"fmt"
	"reflect"
	"strings"
)

// Component describes the content of a [Table]: Name is its last key, Into are
// pointers to the structs that it is decoded into.
type Component struct {
	Name string
	Doc  string
	Into []any
}

// Page renders the example file of a configuration, and for tests its reference.
type Page struct {
	Intro string // sentences at the top
	// Tables lists, by the key of a field, what its Table or its map of Tables
	// may hold ("interfaces", "plugins").
	Tables map[string][]Component
}

// section is a header and the keys below it.
type section struct {
	key      string // "" is the top of the file
	header   string
	doc      string
	fields   []field
	optional bool // commented out as a whole: a file may have none, or several
}

// sections lists the tables of a configuration in the order of its fields.
func (p Page) sections(into any) []section {
	top := section{}
	return p.below(top, types(structs([]any{into})), nil)
}

func types(values []reflect.Value) []reflect.Type {
	list := make([]reflect.Type, len(values))
	for i, v := range values {
		list[i] = v.Type()
	}
	return list
}

// below appends a section and those inside of it.
func (p Page) below(s section, shapes []reflect.Type, list []section) []section {
	var tables []field
	for _, t := range shapes {
		for _, f := range fieldsOf(t) {
			form := formOf(f.leaf())
			if form == formTable || form == formRaw {
				tables = append(tables, f)
			} else {
				s.fields = append(s.fields, f)
			}
		}
	}
	if s.key != "" || len(s.fields) > 0 {
		list = append(list, s)
	}
	for _, f := range tables {
		list = p.inside(s, &f, list)
	}
	return list
}

// inside appends the sections of a field that holds tables.
func (p Page) inside(up section, f *field, list []section) []section {
	key := QuoteKey(f.name)
	if up.key != "" {
		key = up.key + "." + key
	}
	one := section{key: key, doc: f.doc, optional: up.optional || formOf(f.typ) != formTable}
	if formOf(f.leaf()) == formRaw {
		return p.components(one, formOf(f.typ) == formMap, list)
	}
	switch formOf(f.typ) {
	case formList:
		one.header = "[[" + key + "]]"
	case formMap:
		name := "NAME"
		if f.example != nil {
			name = *f.example
		}
		one.key += "." + QuoteKey(name)
		fallthrough
	default:
		one.header = "[" + one.key + "]"
	}
	return p.below(one, []reflect.Type{f.leaf()}, list)
}

func (p Page) components(up section, named bool, list []section) []section {
	for _, c := range p.Tables[up.key] {
		s := section{key: up.key, doc: cmp.Or(c.Doc, up.doc), optional: true}
		if named {
			s.key += "." + QuoteKey(c.Name)
		}
		s.header = "[" + s.key + "]"
		list = p.below(s, types(structs(c.Into)), list)
	}
	return list
}

// shown returns a field's value in the example file, and whether it is the default:
// that of the tag, or the zero value. In an optional table, the example comes before
// the default.
func (f *field) shown(spare bool) (text string, isDefault bool) {
	switch {
	case f.example != nil && (spare || f.initial == nil):
		return literal(f.typ, *f.example), f.initial != nil && *f.initial == *f.example
	case f.initial != nil:
		return literal(f.typ, *f.initial), true
	}
	return literal(f.typ, ""), true
}

func (f *field) sample() string {
	switch formOf(f.typ) {
	case formTable, formRaw:
		return "a table [" + QuoteKey(f.name) + "]"
	}
	if formOf(f.leaf()) == formTable {
		return "a table [[" + QuoteKey(f.name) + "]]"
	}
	text, _ := f.shown(true)
	return QuoteKey(f.name) + " = " + text
}

// literal is the text of a tag as a value in a file; "" is the zero value.
func literal(t reflect.Type, text string) string {
	switch formOf(t) {
	case formPointer:
		return literal(t.Elem(), text)
	case formList:
		parts := split(text)
		for i, part := range parts {
			parts[i] = literal(t.Elem(), part)
		}
		return "[" + strings.Join(parts, ", ") + "]"
	case formMap:
		parts := split(text)
		for i, part := range parts {
			name, value, _ := strings.Cut(part, "=")
			parts[i] = QuoteKey(name) + " = " + literal(t.Elem(), value)
		}
		return "{" + strings.Join(parts, ", ") + "}"
	}
	k := kindOf(t)
	switch {
	case text == "":
		return k.zero
	case strings.HasPrefix(k.zero, `"`):
		return Quote(text)
	}
	return text
}

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
