package config

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"synthbot/core"
	"synthbot/core/txt"
)

// Component describes the content of a [Table]: Name is its last key, Into are
// pointers to the structs that it is decoded into.
type Component struct {
	Name string
	Doc  string
	Into []any
}

// Page renders the example file and the reference of a configuration.
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
	one := section{key: key, doc: f.doc(), optional: up.optional || formOf(f.typ) != formTable}
	if formOf(f.leaf()) == formRaw {
		return p.components(one, formOf(f.typ) == formMap, list)
	}
	switch formOf(f.typ) {
	case formList:
		one.header = "[[" + key + "]]"
	case formMap:
		name := "NAME"
		if text := f.example(); text != nil {
			name = *text
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
	list := append([]string{f.doc()}, f.limits()...)
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

// Reference renders a page in Markdown with a table of keys for each section.
func (p Page) Reference(into any) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# Configuration\n\n%s\n", p.Intro)
	for _, s := range p.sections(into) {
		if s.header != "" {
			fmt.Fprintf(&b, "\n## `%s`\n\n%s\n", s.header, s.doc)
		}
		if len(s.fields) > 0 {
			b.WriteString("\n| key | type | default | what it does |\n|---|---|---|---|\n")
		}
		for _, f := range s.fields {
			b.WriteString(f.row())
		}
	}
	return b.String()
}

func (f *field) row() string {
	initial := "–"
	switch {
	case f.required:
		initial = "required"
	case f.initial != nil:
		initial = "`" + literal(f.typ, *f.initial) + "`"
	case f.typ.Kind() == reflect.Bool:
		initial = "`false`"
	}
	what := strings.Join(append([]string{f.doc()}, f.limits()...), " ")
	if f.initial == nil && f.example() != nil {
		what += " Example: `" + literal(f.typ, *f.example()) + "`."
	}
	cells := []string{"`" + QuoteKey(f.name) + "`", typeWord(f.typ), initial, what}
	for i, cell := range cells {
		cells[i] = strings.ReplaceAll(txt.Line(cell), "|", `\|`)
	}
	return "| " + strings.Join(cells, " | ") + " |\n"
}

// typeWord names a type for users.
func typeWord(t reflect.Type) string {
	switch formOf(t) {
	case formPointer:
		return typeWord(t.Elem())
	case formList:
		return "list: " + typeWord(t.Elem())
	case formMap:
		return "table: " + typeWord(t.Elem())
	}
	switch {
	case t == typeDuration:
		return "duration"
	case t == typeSecret:
		return "secret"
	case t == reflect.TypeFor[core.Path]():
		return "path"
	case readsText(t), t.Kind() == reflect.String:
		return "text"
	case t.Kind() == reflect.Bool:
		return "true or false"
	case t.Kind() == reflect.Float64:
		return "number"
	}
	return "whole number"
}

// Lint checks the tags of a configuration and of everything that its tables may hold.
func (p Page) Lint(into any) (err error) {
	defer func() {
		r := recover()
		if r != nil {
			err = fmt.Errorf("got %v", r)
		}
	}()
	var all []error
	for _, s := range p.sections(into) {
		if s.header != "" && s.doc == "" {
			all = append(all, fmt.Errorf("%s has no sentence", s.header))
		}
		for _, f := range s.fields {
			if !strings.HasSuffix(f.doc(), ".") {
				all = append(all, fmt.Errorf("%s %s: %q is not a sentence", s.header, f.name, f.doc()))
			}
			all = append(all, f.lintTexts())
		}
	}
	return errors.Join(all...)
}

func (f *field) doc() string { return f.tag.Get("doc") }

// lintTexts checks the field's default and its example.
func (f *field) lintTexts() error {
	var all []error
	for _, text := range []*string{f.initial, f.example()} {
		if text == nil || formOf(f.leaf()) > formSecret {
			continue
		}
		if err := f.setText(reflect.New(f.typ).Elem(), *text); err != nil {
			all = append(all, fmt.Errorf("config: %s: key %s: %q: %w", f.owner, f.name, *text, err))
		}
	}
	return errors.Join(all...)
}
