package config

import (
	"errors"
	"fmt"
	"reflect"
	"strings"

	"synthbot/core"
	"synthbot/core/txt"
)

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
	what := strings.Join(append([]string{f.doc}, f.limits()...), " ")
	if f.initial == nil && f.example != nil {
		what += " Example: `" + literal(f.typ, *f.example) + "`."
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
			err = fmt.Errorf("%v", r)
		}
	}()
	var all []error
	for _, s := range p.sections(into) {
		if s.header != "" && s.doc == "" {
			all = append(all, fmt.Errorf("%s has no sentence", s.header))
		}
		for _, f := range s.fields {
			if !strings.HasSuffix(f.doc, ".") {
				all = append(all, fmt.Errorf("%s %s: %q is not a sentence", s.header, f.name, f.doc))
			}
		}
	}
	return errors.Join(all...)
}
