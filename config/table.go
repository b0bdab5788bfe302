package config

// Table is a table whose shape the reader of the file decides on: by its name,
// or by what stands in it. As a field's type it takes the table unread, with
// its place in the file. The zero Table is one that does not stand in the file.
type Table struct {
	at         *spot
	references bool
}

// IsZero reports whether the file has no such table.
func (t Table) IsZero() bool { return t.at == nil }

// Name is the last part of the table's key.
func (t Table) Name() string {
	if t.at == nil {
		return ""
	}
	return t.at.name
}

// Decode reads the table into structs, as [Document.Decode] does the whole
// file; faults join those of the document. A key is known if any of them knows
// it.
func (t Table) Decode(into ...any) {
	t.decode(false, into)
}

// Peek reads only the keys that the structs have, and leaves the rest for
// Decode.
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

// Unresolved is the same table, its secrets left as with [Options.References]:
// for one that is switched off, whose secrets may be absent.
func (t Table) Unresolved() Table {
	t.references = true
	return t
}

// Fault notes a fault that the caller found; at leads to the key from the
// table. The zero Table notes nothing.
func (t Table) Fault(text string, at ...any) {
	if t.at != nil {
		t.at.walk(at).fault(text)
	}
}

// Line is where the table, or a key in it, stands; 0 if it does not.
func (t Table) Line(at ...any) int {
	if t.at == nil {
		return 0
	}
	return t.at.walk(at).stands()
}
