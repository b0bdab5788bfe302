package page

import (
	"bytes"
	"fmt"
	"html"
	"net/url"
	"path"
	"reflect"
	"strings"
	"text/template/parse"
)

// The sheets are written in the language of text/template, as far as it is used
// here, and carried out below: values are looked up and printed, methods are not
// called. (Package text/template can call any method by its name, for which the
// linker must keep all methods of the whole program: 4 MB.) All that is printed
// is escaped for HTML, so that it may stand in texts and in quoted attributes,
// and nowhere else; in addresses it goes through q. A test holds the sheets to it.

// book is a layout with all that it calls, by name.
type book map[string]*parse.Tree

// part is one part of the page, as the menu shows it.
type part struct{ Path, Name string }

// parts are in the order of the menu.
func parts() []part {
	return []part{
		{"/", "Now"}, {"/talk", "Conversations"}, {"/memories", "Memories"}, {"/personas", "Personas"},
		{"/charts", "Charts"}, {"/catalogue", "Catalogue"}, {"/settings", "Settings"}, {"/sessions", "Sessions"},
	}
}

// openingForm asks why a private place is to be opened.
type openingForm struct {
	CSRF, Place string
	Seq         uint64 // of the turn to come back to; 0: none
}

// sheets reads the templates: each with the layout around it.
func sheets() map[string]book {
	all := make(map[string]book)
	entries, err := templates.ReadDir("templates")
	if err != nil {
		panic(err) // the folder is part of the program
	}
	for _, e := range entries {
		b := make(book)
		for _, file := range []string{"layout.html", "chart.html", "opening.html", e.Name()} {
			b.read(file)
		}
		all[strings.TrimSuffix(e.Name(), ".html")] = b
	}
	return all
}

// read adds what a file defines.
func (b book) read(file string) {
	text, err := templates.ReadFile(path.Join("templates", file))
	if err != nil {
		panic(err)
	}
	trees, err := parse.Parse(file, string(text), "", "", functions())
	if err != nil {
		panic(err) // tested
	}
	for name, tree := range trees {
		b[name] = tree
	}
}

// functions are what sheets may call, by name.
func functions() map[string]any {
	return map[string]any{
		"parts": func([]reflect.Value) any { return parts() },
		"q":     func(a []reflect.Value) any { return url.QueryEscape(printed(a[0])) },
		"len":   func(a []reflect.Value) any { return inner(a[0]).Len() },
		"not":   func(a []reflect.Value) any { return !truth(a[0]) },
		"eq":    func(a []reflect.Value) any { return printed(a[0]) == printed(a[1]) },
		"or": func(a []reflect.Value) any {
			if truth(a[0]) {
				return printed(a[0])
			}
			return printed(a[1])
		},
		"open": func(a []reflect.Value) any {
			f := openingForm{CSRF: printed(a[0]), Place: printed(a[1])}
			if len(a) > 2 {
				f.Seq = inner(a[2]).Uint()
			}
			return f
		},
	}
}

// execute carries a sheet out.
func (b book) execute(w *bytes.Buffer, name string, data any) (err error) {
	defer func() {
		if fault := recover(); fault != nil {
			err = fmt.Errorf("sheet %s: %v", name, fault)
		}
	}()
	r := &reading{book: b, w: w, functions: functions()}
	r.call(name, reflect.ValueOf(data))
	return nil
}

// reading is a sheet that is carried out. What is wrong panics, see execute.
type reading struct {
	book
	w         *bytes.Buffer
	functions map[string]any
	vars      []variable
}

type variable struct {
	name  string
	value reflect.Value
}

// call carries out what has that name, with variables of its own.
func (r *reading) call(name string, dot reflect.Value) {
	tree := r.book[name]
	if tree == nil {
		panic("there is no " + name)
	}
	outer := r.vars
	r.vars = []variable{{"$", dot}}
	r.walk(dot, tree.Root)
	r.vars = outer
}

func (r *reading) walk(dot reflect.Value, node parse.Node) {
	switch n := node.(type) {
	case *parse.ListNode:
		for _, child := range n.Nodes {
			r.walk(dot, child)
		}
	case *parse.TextNode:
		r.w.Write(n.Text)
	case *parse.ActionNode:
		if v := r.pipe(dot, n.Pipe); len(n.Pipe.Decl) == 0 {
			r.w.WriteString(html.EscapeString(printed(v)))
		}
	case *parse.IfNode:
		r.branch(dot, &n.BranchNode, false)
	case *parse.WithNode:
		r.branch(dot, &n.BranchNode, true)
	case *parse.RangeNode:
		r.each(dot, &n.BranchNode)
	case *parse.TemplateNode:
		r.call(n.Name, r.pipe(dot, n.Pipe))
	default:
		panic("not read here: " + node.String())
	}
}

// branch takes one of two ways; the first one with another dot, for a with.
func (r *reading) branch(dot reflect.Value, n *parse.BranchNode, with bool) {
	mark := len(r.vars)
	v := r.pipe(dot, n.Pipe)
	switch {
	case truth(v) && with:
		r.walk(v, n.List)
	case truth(v):
		r.walk(dot, n.List)
	case n.ElseList != nil:
		r.walk(dot, n.ElseList)
	}
	r.vars = r.vars[:mark]
}

// each goes through a list.
func (r *reading) each(dot reflect.Value, n *parse.BranchNode) {
	mark := len(r.vars)
	list := inner(r.command(dot, n.Pipe))
	if !truth(list) {
		if n.ElseList != nil {
			r.walk(dot, n.ElseList)
		}
		return
	}
	for i := range list.Len() {
		if names := n.Pipe.Decl; len(names) > 0 {
			r.vars = append(r.vars, variable{names[len(names)-1].Ident[0], list.Index(i)})
			if len(names) > 1 {
				r.vars = append(r.vars, variable{names[0].Ident[0], reflect.ValueOf(i)})
			}
		}
		r.walk(list.Index(i), n.List)
		r.vars = r.vars[:mark]
	}
}

// pipe is the value of one command, which may be given a name.
func (r *reading) pipe(dot reflect.Value, p *parse.PipeNode) reflect.Value {
	v := r.command(dot, p)
	for _, name := range p.Decl {
		r.vars = append(r.vars, variable{name.Ident[0], v})
	}
	return v
}

func (r *reading) command(dot reflect.Value, p *parse.PipeNode) reflect.Value {
	if len(p.Cmds) != 1 {
		panic("not read here: " + p.String())
	}
	args := p.Cmds[0].Args
	name, ok := args[0].(*parse.IdentifierNode)
	if !ok {
		return r.operand(dot, args[0])
	}
	var values []reflect.Value
	for _, a := range args[1:] {
		values = append(values, r.operand(dot, a))
	}
	return reflect.ValueOf(r.functions[name.Ident].(func([]reflect.Value) any)(values))
}

func (r *reading) operand(dot reflect.Value, node parse.Node) reflect.Value {
	switch n := node.(type) {
	case *parse.DotNode:
		return dot
	case *parse.FieldNode:
		return fields(dot, n.Ident)
	case *parse.VariableNode:
		for i := len(r.vars) - 1; i >= 0; i-- {
			if r.vars[i].name == n.Ident[0] {
				return fields(r.vars[i].value, n.Ident[1:])
			}
		}
	case *parse.StringNode:
		return reflect.ValueOf(n.Text)
	case *parse.PipeNode:
		return r.command(dot, n)
	}
	panic("not read here: " + node.String())
}

// fields looks a value up; what a map does not hold is none.
func fields(v reflect.Value, names []string) reflect.Value {
	for _, name := range names {
		switch v = inner(v); v.Kind() {
		case reflect.Map:
			v = v.MapIndex(reflect.ValueOf(name))
		case reflect.Struct:
			if v = v.FieldByName(name); !v.IsValid() {
				panic("there is no field " + name)
			}
		default:
			panic("nothing has the field " + name)
		}
	}
	return v
}

// inner is what an interface or a pointer leads to.
func inner(v reflect.Value) reflect.Value {
	for v.Kind() == reflect.Interface || v.Kind() == reflect.Pointer {
		v = v.Elem()
	}
	return v
}

// truth reports whether a value is there, and not empty.
func truth(v reflect.Value) bool {
	switch v = inner(v); v.Kind() {
	case reflect.Invalid:
		return false
	case reflect.Slice, reflect.Map:
		return v.Len() > 0
	case reflect.Struct:
		return true
	}
	return !v.IsZero()
}

func printed(v reflect.Value) string {
	if !v.IsValid() || v.Kind() == reflect.Interface && v.IsNil() {
		return ""
	}
	return fmt.Sprint(v.Interface())
}
