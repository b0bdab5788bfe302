// Package template executes templates with a part of the syntax of text/template: if, with, range, template, fields,
// and functions of the caller; $ is the data of the whole page. It looks values up and prints them, and calls no
// methods. (Package text/template can call any method by its name, so that the linker would keep all methods of the
// program: 4 MB.) All values are escaped for HTML, so that they may be used in texts and in quoted attributes only; in
// addresses with the page's function q. A test of the page enforces that.
package template

import (
	"bytes"
	"fmt"
	"html"
	"io/fs"
	"reflect"
	"text/template/parse"
)

// Set holds templates by name.
type Set map[string]*parse.Tree

// Funcs are functions that templates call by name, each with one value.
type Funcs map[string]func(value any) string

// Read reads the templates of files, which may call functions of these names. It panics if one is not valid: they
// are part of the program.
func Read(files fs.FS, functions Funcs, names ...string) Set {
	known := make(map[string]any)
	for name := range functions {
		known[name] = true
	}
	b := make(Set)
	for _, file := range names {
		text, err := fs.ReadFile(files, file)
		if err != nil {
			panic(err)
		}
		trees, err := parse.Parse(file, string(text), "", "", known)
		if err != nil {
			panic(err)
		}
		for name, tree := range trees {
			b[name] = tree
		}
	}
	return b
}

// Execute writes the template of a name. If it returns an error, w may hold a part.
func (b Set) Execute(w *bytes.Buffer, name string, data any, functions Funcs) (err error) {
	defer func() {
		fault := recover()
		if fault != nil {
			err = fmt.Errorf("sheet %s: %v", name, fault)
		}
	}()
	r := &executor{b, w, reflect.ValueOf(data), functions}
	r.call(name, r.root)
	return nil
}

// executor executes a template. It panics on errors; execute recovers.
type executor struct {
	Set
	w         *bytes.Buffer
	root      reflect.Value
	functions Funcs
}

func (r *executor) call(name string, dot reflect.Value) {
	tree := r.Set[name]
	if tree == nil {
		panic("there is no " + name)
	}
	r.walk(dot, tree.Root)
}

func (r *executor) walk(dot reflect.Value, node parse.Node) {
	switch n := node.(type) {
	case *parse.ListNode:
		if n == nil {
			return // there is no else
		}
		for _, child := range n.Nodes {
			r.walk(dot, child)
		}
	case *parse.TextNode:
		r.w.Write(n.Text)
	case *parse.ActionNode:
		r.w.WriteString(html.EscapeString(printed(r.value(dot, n.Pipe))))
	case *parse.IfNode:
		r.branch(dot, &n.BranchNode)
	case *parse.WithNode:
		r.branch(dot, &n.BranchNode)
	case *parse.RangeNode:
		r.branch(dot, &n.BranchNode)
	case *parse.TemplateNode:
		r.call(n.Name, r.value(dot, n.Pipe))
	default:
		panic("unsupported: " + node.String())
	}
}

func (r *executor) branch(dot reflect.Value, n *parse.BranchNode) {
	v := r.value(dot, n.Pipe)
	switch {
	case !isTrue(v):
		r.walk(dot, n.ElseList)
	case n.NodeType == parse.NodeIf:
		r.walk(dot, n.List)
	case n.NodeType == parse.NodeWith:
		r.walk(v, n.List)
	default:
		list := indirect(v)
		for i := range list.Len() {
			r.walk(list.Index(i), n.List)
		}
	}
}

// value returns the value of a field, or of a function of one.
func (r *executor) value(dot reflect.Value, p *parse.PipeNode) reflect.Value {
	if len(p.Cmds) != 1 || len(p.Decl) > 0 {
		panic("unsupported: " + p.String())
	}
	args := p.Cmds[0].Args
	switch n := args[0].(type) {
	case *parse.DotNode:
		return dot
	case *parse.FieldNode:
		return fields(dot, n.Ident)
	case *parse.VariableNode: // $, because there are no others
		return fields(r.root, n.Ident[1:])
	case *parse.IdentifierNode:
		of := r.value(dot, &parse.PipeNode{Cmds: []*parse.CommandNode{{Args: args[1:]}}})
		return reflect.ValueOf(r.functions[n.Ident](indirect(of).Interface()))
	}
	panic("unsupported: " + p.String())
}

// fields returns a field of a value. A missing key of a map has no value.
func fields(v reflect.Value, names []string) reflect.Value {
	for _, name := range names {
		switch v = indirect(v); v.Kind() {
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

// indirect returns the value of an interface or a pointer.
func indirect(v reflect.Value) reflect.Value {
	for v.Kind() == reflect.Interface || v.Kind() == reflect.Pointer {
		v = v.Elem()
	}
	return v
}

// isTrue reports whether a value exists and is not empty.
func isTrue(v reflect.Value) bool {
	switch v = indirect(v); v.Kind() {
	case reflect.Invalid:
		return false
	case reflect.Slice, reflect.Map:
		return v.Len() > 0
	}
	return !v.IsZero()
}

func printed(v reflect.Value) string {
	if !v.IsValid() || v.Kind() == reflect.Interface && v.IsNil() {
		return ""
	}
	return fmt.Sprint(v.Interface())
}
