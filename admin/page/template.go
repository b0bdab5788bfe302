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

// Templates have the syntax of text/template, but this file executes them: it looks values up
// and prints them, and calls no methods. (Package text/template can call any method by its
// name, so that the linker would keep all methods of the program: 4 MB.) All values are escaped
// for HTML, so that they may be used in texts and in quoted attributes only; in addresses with
// q. A test enforces that.

// templateSet holds a layout and all templates that it calls, by name.
type templateSet map[string]*parse.Tree

// part is an entry of the menu.
type part struct{ Path, Name string }

// parts returns the menu.
func parts() []part {
	return []part{
		{"/", "Now"}, {"/talk", "Conversations"}, {"/memories", "Memories"}, {"/personas", "Personas"},
		{"/charts", "Charts"}, {"/catalogue", "Catalogue"}, {"/settings", "Settings"}, {"/sessions", "Sessions"},
	}
}

// openingForm is the form that opens a private place.
type openingForm struct {
	CSRF, Place string
	Seq         uint64 // of the turn to return to; 0: none
}

// sheets reads all templates, each with the layout.
func sheets() map[string]templateSet {
	all := make(map[string]templateSet)
	entries, err := templates.ReadDir("templates")
	if err != nil {
		panic(err) // the folder is part of the program
	}
	for _, e := range entries {
		b := make(templateSet)
		for _, file := range []string{"layout.html", "chart.html", "opening.html", e.Name()} {
			b.read(file)
		}
		all[strings.TrimSuffix(e.Name(), ".html")] = b
	}
	return all
}

// read adds the templates of a file.
func (b templateSet) read(file string) {
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

// functions returns the functions of templates by name.
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

// execute executes a template.
func (b templateSet) execute(w *bytes.Buffer, name string, data any) (err error) {
	defer func() {
		fault := recover()
		if fault != nil {
			err = fmt.Errorf("sheet %s: %v", name, fault)
		}
	}()
	r := &executor{templateSet: b, w: w, functions: functions()}
	r.call(name, reflect.ValueOf(data))
	return nil
}

// executor executes a template. It panics on errors; execute recovers.
type executor struct {
	templateSet
	w         *bytes.Buffer
	functions map[string]any
	vars      []variable
}

type variable struct {
	name  string
	value reflect.Value
}

// call executes a template by its name, with its own variables.
func (r *executor) call(name string, dot reflect.Value) {
	tree := r.templateSet[name]
	if tree == nil {
		panic("there is no " + name)
	}
	outer := r.vars
	r.vars = []variable{{"$", dot}}
	r.walk(dot, tree.Root)
	r.vars = outer
}

func (r *executor) walk(dot reflect.Value, node parse.Node) {
	switch n := node.(type) {
	case *parse.ListNode:
		for _, child := range n.Nodes {
			r.walk(dot, child)
		}
	case *parse.TextNode:
		r.w.Write(n.Text)
	case *parse.ActionNode:
		v := r.pipe(dot, n.Pipe)
		if len(n.Pipe.Decl) == 0 {
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
		panic("unsupported: " + node.String())
	}
}

// branch executes an if or a with.
func (r *executor) branch(dot reflect.Value, n *parse.BranchNode, with bool) {
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

// each executes a range over a list.
func (r *executor) each(dot reflect.Value, n *parse.BranchNode) {
	mark := len(r.vars)
	list := inner(r.command(dot, n.Pipe))
	if !truth(list) {
		if n.ElseList != nil {
			r.walk(dot, n.ElseList)
		}
		return
	}
	for i := range list.Len() {
		names := n.Pipe.Decl
		if len(names) > 0 {
			r.vars = append(r.vars, variable{names[len(names)-1].Ident[0], list.Index(i)})
			if len(names) > 1 {
				r.vars = append(r.vars, variable{names[0].Ident[0], reflect.ValueOf(i)})
			}
		}
		r.walk(list.Index(i), n.List)
		r.vars = r.vars[:mark]
	}
}

// pipe returns the value of a command, which may be assigned to a variable.
func (r *executor) pipe(dot reflect.Value, p *parse.PipeNode) reflect.Value {
	v := r.command(dot, p)
	for _, name := range p.Decl {
		r.vars = append(r.vars, variable{name.Ident[0], v})
	}
	return v
}

func (r *executor) command(dot reflect.Value, p *parse.PipeNode) reflect.Value {
	if len(p.Cmds) != 1 {
		panic("unsupported: " + p.String())
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

func (r *executor) operand(dot reflect.Value, node parse.Node) reflect.Value {
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
	panic("unsupported: " + node.String())
}

// fields returns a field of a value. A missing key of a map has no value.
func fields(v reflect.Value, names []string) reflect.Value {
	for _, name := range names {
		switch v = inner(v); v.Kind() {
		case reflect.Map:
			v = v.MapIndex(reflect.ValueOf(name))
		case reflect.Struct:
			v = v.FieldByName(name)
			if !v.IsValid() {
				panic("there is no field " + name)
			}
		default:
			panic("nothing has the field " + name)
		}
	}
	return v
}

// inner returns the value of an interface or a pointer.
func inner(v reflect.Value) reflect.Value {
	for v.Kind() == reflect.Interface || v.Kind() == reflect.Pointer {
		v = v.Elem()
	}
	return v
}

// truth reports whether a value exists and is not empty.
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
