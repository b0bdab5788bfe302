package main

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strconv"
	"strings"
)

// editor inserts mutants into the text of a file.
type editor struct {
	file    string
	source  []byte
	bad     map[string]bool // lines whose mutants do not compile
	next    int
	name    string // of the package
	mutants []mutant
	set     *token.FileSet
	edits   []edit
}

// edit replaces the bytes from at to end. Of several edits at one offset, a lower rank comes first. Texts before a node
// have positive ranks, the outermost first. Texts after a node have negative ranks, the innermost first.
type edit struct {
	at, end int
	text    string
	rank    int
}

// mutate returns the file with all of its mutants.
func (e *editor) mutate() ([]byte, error) {
	e.set = token.NewFileSet()
	f, err := parser.ParseFile(e.set, e.file, e.source, parser.SkipObjectResolution|parser.ParseComments)
	if err != nil {
		return nil, err
	}
	e.name = f.Name.Name
	for _, d := range f.Decls {
		if fn, ok := d.(*ast.FuncDecl); ok && fn.Body != nil {
			ast.Inspect(fn.Body, e.visit)
		}
	}
	return e.apply(), nil
}

// apply returns the edited source. Lines keep their numbers, so that errors of the compiler can be assigned to mutants.
func (e *editor) apply() []byte {
	slices.SortStableFunc(e.edits, func(a, b edit) int {
		return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.rank, b.rank))
	})
	var out []byte
	at := 0
	for _, x := range e.edits {
		out = append(append(out, e.source[at:x.at]...), x.text...)
		at = x.end
	}
	return append(out, e.source[at:]...)
}

func (e *editor) offset(p token.Pos) int { return e.set.Position(p).Offset }

// mutant adds a mutant and returns its number; 0 on a line whose mutants do not compile.
func (e *editor) mutant(at token.Pos, what string) int {
	line := e.set.Position(at).Line
	if e.bad[fmt.Sprintf("%s:%d", e.file, line)] {
		return 0
	}
	number := e.next + len(e.mutants) + 1
	e.mutants = append(e.mutants, mutant{number, e.file, line, what})
	return number
}

// wrap makes a mutant by texts around a node, in which %d is its number.
func (e *editor) wrap(n ast.Node, what, before, after string) {
	number := e.mutant(n.Pos(), what)
	if number > 0 {
		named := strings.NewReplacer("%d", strconv.Itoa(number))
		e.around(n, named.Replace(before), named.Replace(after))
	}
}

// around inserts texts before and after a node.
func (e *editor) around(n ast.Node, before, after string) {
	rank, from, to := len(e.edits)+1, e.offset(n.Pos()), e.offset(n.End())
	e.edits = append(e.edits, edit{from, from, before, rank}, edit{to, to, after, -rank})
}

func (e *editor) replace(at token.Pos, old, text string) {
	e.edits = append(e.edits, edit{e.offset(at), e.offset(at) + len(old), text, len(e.edits) + 1})
}

// visit adds the mutants of a node.
func (e *editor) visit(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.BlockStmt:
		e.statements(n.List)
	case *ast.CaseClause:
		e.statements(n.Body)
	case *ast.CommClause:
		e.statements(n.Body)
	case *ast.IfStmt:
		e.condition(n.Cond)
	case *ast.BinaryExpr:
		e.binary(n)
	case *ast.ReturnStmt:
		e.returned(n)
	}
	return true
}

// statements adds a mutant for each statement, which leaves it out.
func (e *editor) statements(list []ast.Stmt) {
	for _, s := range list {
		switch s := s.(type) {
		case *ast.AssignStmt:
			if s.Tok == token.DEFINE {
				continue
			}
		case *ast.ExprStmt:
			call, ok := s.X.(*ast.CallExpr)
			if !ok || e.quiet(call) {
				continue
			}
		case *ast.BranchStmt:
			if s.Tok == token.FALLTHROUGH || s.Tok == token.GOTO {
				continue
			}
		case *ast.ReturnStmt:
			if len(s.Results) > 0 {
				continue
			}
		case *ast.IncDecStmt, *ast.DeferStmt, *ast.SendStmt:
		default:
			continue
		}
		first, _, _ := strings.Cut(e.text(s), "\n")
		e.wrap(s, "leave out: "+first, "if !mutated(%d) { ", " }")
	}
}

// quiet reports whether a call only logs or panics: tests need not notice that.
func (e *editor) quiet(call *ast.CallExpr) bool {
	text := e.text(call.Fun)
	return text == "panic" || strings.Contains(text, "log.") || strings.Contains(text, "Log.")
}

func (e *editor) text(n ast.Node) string {
	return string(e.source[e.offset(n.Pos()):e.offset(n.End())])
}

// condition adds a mutant that negates a condition, unless binary changes it.
func (e *editor) condition(x ast.Expr) {
	if _, ok := x.(*ast.BinaryExpr); ok {
		return
	}
	e.wrap(x, "negate: "+e.text(x), "((", ") != mutated(%d))")
}

// binary adds the mutants of a binary expression: they move the bound of a comparison, negate an equality, or leave
// out one side of && or ||.
func (e *editor) binary(x *ast.BinaryExpr) {
	switch x.Op {
	case token.LSS:
		e.bound(x, "mutantLess")
	case token.LEQ:
		e.bound(x, "mutantLessEqual")
	case token.GTR:
		e.bound(x, "mutantGreater")
	case token.GEQ:
		e.bound(x, "mutantGreaterEqual")
	case token.EQL, token.NEQ:
		e.wrap(x, "negate: "+e.text(x), "((", ") != mutated(%d))")
	case token.LAND, token.LOR:
		for _, side := range []ast.Expr{x.X, x.Y} {
			number := e.mutant(side.Pos(), "leave out of "+x.Op.String()+": "+e.text(side))
			switch {
			case number == 0:
			case x.Op == token.LAND:
				e.around(side, "((", fmt.Sprintf(") || mutated(%d))", number))
			default:
				e.around(side, "((", fmt.Sprintf(") && !mutated(%d))", number))
			}
		}
	}
}

// bound adds a mutant that exchanges < and <=, or > and >=. It does not use the negation of one for the other: with
// NaN, all are false.
func (e *editor) bound(x *ast.BinaryExpr, name string) {
	number := e.mutant(x.Pos(), "move the bound: "+e.text(x))
	if number == 0 {
		return
	}
	e.around(x, fmt.Sprintf("%s(%d, ", name, number), ")")
	e.replace(x.OpPos, x.Op.String(), ",")
}

// returned adds mutants that negate a returned true or false, and that drop a returned err.
func (e *editor) returned(n *ast.ReturnStmt) {
	for _, r := range n.Results {
		id, ok := r.(*ast.Ident)
		if !ok {
			continue
		}
		switch id.Name {
		case "true", "false":
			e.wrap(id, "negate: "+e.text(n), "(", " != mutated(%d))")
		case "err":
			e.wrap(id, "no error: "+e.text(n), "mutantError(%d, ", ")")
		}
	}
}
