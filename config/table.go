package config

// Table is a table that is decoded later, into structs that depend on its name or
// content. The zero Table is one that the file lacks.
type Table struct {
	at         *cursor
	references bool
}

// Decode reads the table into structs, as [Document.Decode] does the whole file.
// Faults join those of the document. A key is known if any of the structs has it.
func (t Table) Decode(into ...any) {
	t.decode(false, into)
}

// Peek reads only the keys that the structs have, and leaves the rest to Decode.
func (t Table) Peek(into ...any) {
	t.decode(true, into)
}

func (t Table) decode(partial bool, into []any) {
	if t.at == nil {
		Defaults(into...)
		return
	}
	reader{doc: t.at.doc, references: t.references, partial: partial}.table(t.at, structs(into))
}

// Unresolved returns the same table with its secrets unresolved, as with
// [Options.References]. It is for a disabled one, whose secrets may be missing.
func (t Table) Unresolved() Table {
	t.references = true
	return t
}

// Fault adds a fault that the caller found; at leads to the key from the table.
// The zero Table ignores it.
func (t Table) Fault(text string, at ...any) {
	if t.at != nil {
		t.at.walk(at).fault(text)
	}
}

// Line is the line of the table, or of a key in it; 0 if it is missing.
func (t Table) Line(at ...any) int {
	if t.at == nil {
		return 0
	}
	return t.at.walk(at).exactLine()
}
