// Package config reads a TOML file into structs whose fields carry tags. Its tests render the commented example and the
// reference page from the same tags. It contains no settings itself: each package has its own struct, and a setting's
// name, default, description and check are one field.
//
//	type Config struct {
//		Timeout time.Duration `toml:"timeout" doc:"How long an answer may take." default:"30s" min:"1s" max:"1h"`
//	}
//
// Tags of a field:
//
//	toml      the key; a field without it is not read, an embedded struct without it is part of its parent
//	doc       one sentence, for the example and the reference
//	default   the value if the key is missing, as text ("30s"; "a, b" for a list)
//	min, max  bounds of a number or duration, or of the length of a text in characters; of each element of a list
//	oneof     the allowed values, as "a|b|c"; of each element of a list
//	items     how many elements a list may have
//	visible   "true": a text must have a visible character; each element of a list
//	required  "true": the key must be there, if it has no default, and not be empty
//	example   what the example file shows if there is no default
//	kind      what a value names: "user" or "place", a path of the bot; "file", a file or folder, relative to the
//	          configuration file; "private file", the same, if it holds a secret; "program", a list of a program
//	          and its arguments
//
// Types of a field: string, bool, the signed integers, float64, time.Duration (as text: "30s"), [secret.Secret], every
// encoding.TextUnmarshaler, nested structs, slices and string-keyed maps of all of these, pointers to them (nil if the
// key is missing), and [Table] if the shape of a table depends on its name or its content. A bad tag or type is a
// programmer's mistake and panics, whatever the file contains; a test finds them all.
//
// A secret is a literal, "env:NAME" or "file:PATH". A relative PATH is looked up in $CREDENTIALS_DIRECTORY, then in the
// folder of the configuration file. Nothing else is read from the environment.
//
// One reading reports all faults of a file, each with its line and a fix. No fault contains a secret.
package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"reflect"
	"slices"

	"synthbot/core/txt"
)

// MaxFile is the size limit of a configuration file in bytes.
const MaxFile = 1 << 20

const byteOrderMark = "\uFEFF" // at the start of files that some editors write

// Options say how a file is read.
type Options struct {
	// Getenv looks up env: secrets and $CREDENTIALS_DIRECTORY; nil: os.Getenv.
	Getenv func(string) string
	// Open opens file: secrets and the file of [Open]; nil: os.Open.
	Open func(string) (io.ReadCloser, error)
	// References leaves secrets unresolved: a field holds the reference itself, or "(literal)", and may be printed.
	References bool
}

func (o Options) getenv(name string) string {
	if o.Getenv == nil {
		return os.Getenv(name)
	}
	return o.Getenv(name)
}

// read returns the content of a file. A file of more than limit bytes is an error.
func (o Options) read(name string, limit int) ([]byte, error) {
	open := o.Open
	if open == nil {
		open = func(name string) (io.ReadCloser, error) { return os.Open(name) }
	}
	f, err := open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, int64(limit)+1))
	if err == nil && len(data) > limit {
		err = fmt.Errorf("over %d KiB", limit>>10)
	}
	return data, err
}

// ioReason returns the text of an I/O error without the file's name.
func ioReason(err error) string {
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		err = p.Err
	}
	return err.Error()
}

// Document is one file: the table of all its keys, and the faults found so far. It is not safe for concurrent use.
type Document struct {
	Table
	file       string
	options    Options
	broken     bool // a part could not be read, so keys in it seem to be missing
	faults     Faults
	faultCount int      // including those beyond maxFaults
	secrets    []string // the files that secrets were read from

	checkFaults int // how many of the faults the Check of a struct reported
}

// Read reads data, the content of file, into structs; see [Table.Decode]. The error is nil or [Faults].
func Read(file string, data []byte, into any, o Options) error {
	d := Parse(file, data, o)
	d.Decode(into)
	return d.Err()
}

// Open is [Parse] for a file on disk. A file that cannot be read is a fault.
func Open(file string, o Options) *Document {
	data, err := o.read(file, MaxFile)
	if err != nil && len(data) <= MaxFile {
		d := newDocument(file, o)
		d.broken = true
		d.Fault("cannot be read: " + ioReason(err))
		return d
	}
	return Parse(file, data, o)
}

// Parse reads the syntax of data, the content of file. The document is never
// nil; Err returns the faults. file is for messages, and its folder for secrets.
func Parse(file string, data []byte, o Options) *Document {
	d := newDocument(file, o)
	if len(data) > MaxFile {
		d.broken = true
		d.Fault(fmt.Sprintf("is over %d KiB; a configuration is smaller", MaxFile>>10))
		return d
	}
	d.at = d.parse(bytes.TrimPrefix(data, []byte(byteOrderMark)))
	return d
}

func newDocument(file string, o Options) *Document {
	d := &Document{file: file, options: o}
	d.Table = Table{&node{doc: d}, o.References}
	return d
}

// HasFault reports whether a fault of a key was found so far. at is as in Fault.
func (d *Document) HasFault(at ...any) bool {
	key := txt.Clip(d.at.walk(at).String(), 120)
	return slices.ContainsFunc(d.faults, func(f Fault) bool { return f.Key == key })
}

// Broken reports whether a part could not be read, so that keys in it seem to be missing.
func (d *Document) Broken() bool { return d.broken }

// SecretFiles returns the files that secrets were read from, each once, without those in $CREDENTIALS_DIRECTORY.
func (d *Document) SecretFiles() []string {
	return slices.Compact(slices.Sorted(slices.Values(d.secrets)))
}

// structs returns the structs that into points to; it panics if one is not a struct.
func structs(into []any) []reflect.Value {
	list := make([]reflect.Value, len(into))
	for i, p := range into {
		v := reflect.ValueOf(p)
		if v.Kind() != reflect.Pointer || v.IsNil() || v.Elem().Kind() != reflect.Struct {
			panic(fmt.Sprintf("config: %T is not a pointer to a struct", p))
		}
		list[i] = v.Elem()
	}
	return list
}

// node is a key or an element of a document, which may be missing.
type node struct {
	doc   *Document
	up    *node
	name  string // in a table
	index int    // in a list, where name is ""
	list  bool
	depth int
	line  int // 0: missing
	value any // nil: missing
	keys  map[string]*node
	items []*node
}

func (n *node) key(name string) *node {
	child := n.keys[name]
	if child == nil {
		child = &node{doc: n.doc, up: n, name: name}
	}
	if table, ok := n.value.(map[string]any); ok {
		child.value = table[name]
	}
	return child
}

func (n *node) item(i int) *node {
	child := &node{doc: n.doc, up: n, index: i, list: true}
	if i >= 0 && i < len(n.items) {
		child = n.items[i]
	}
	if list, ok := n.value.([]any); ok && i >= 0 && i < len(list) {
		child.value = list[i]
	}
	return child
}

func (s *node) walk(at []any) *node {
	for _, step := range at {
		switch step := step.(type) {
		case string:
			s = s.key(step)
		case int:
			s = s.item(step)
		default:
			panic(fmt.Sprintf("config: a key has names and indices, not %T", step))
		}
	}
	return s
}

// String returns the key as in a file.
func (s *node) String() string {
	switch {
	case s.up == nil:
		return ""
	case s.list:
		return fmt.Sprintf("%s[%d]", s.up, s.index)
	case s.up.up == nil:
		return QuoteKey(s.name)
	}
	return s.up.String() + "." + QuoteKey(s.name)
}

// fault adds a fault at the line of the key, or of the table that lacks it.
func (s *node) fault(text string) { s.add(Fault{Text: text}) }

func (s *node) add(f Fault) {
	at := s
	for at.line == 0 && at.up != nil {
		at = at.up
	}
	f.File, f.Line, f.Key = s.doc.file, at.line, txt.Clip(s.String(), 120)
	s.doc.add(f)
}

// Table is a table of a document. The zero Table is a missing one. A field of this type is decoded later, into structs
// that depend on the table's name or content.
type Table struct {
	at         *node
	references bool
}

// Decode reads the table into structs; each element of into is a pointer to one. A key is known if any of the structs
// has it. First, fields with a default get it; others keep their values. Last, the method
//
//	Check(fault func(text string, at ...any))
//
// of each struct that has it reports faults that no tag can express. It is called only if the table and those inside it
// have no other faults. Faults become those of the document.
func (t Table) Decode(into ...any) { t.decode(false, into) }

// Peek reads only the keys that the structs have, and leaves the rest to Decode.
func (t Table) Peek(into ...any) { t.decode(true, into) }

func (t Table) decode(partial bool, into []any) {
	if t.at == nil {
		Defaults(into...)
		return
	}
	reader{doc: t.at.doc, references: t.references, partial: partial}.table(t.at, structs(into))
}

// Unresolved returns the table with [Options.References], for disabled tables, whose secrets may be missing.
func (t Table) Unresolved() Table {
	t.references = true
	return t
}

// Resolved reports whether secrets are read, not only their references.
func (t Table) Resolved() bool { return !t.references }

// Fault adds a fault that the caller found. at is the path of the key from the table: names (string) and indices (int).
// The zero Table ignores it.
func (t Table) Fault(text string, at ...any) {
	if t.at != nil {
		t.at.walk(at).fault(text)
	}
}

// Line returns the line of the table, or of a key in it; 0 if it is missing.
func (t Table) Line(at ...any) int {
	if t.at == nil {
		return 0
	}
	return t.at.walk(at).line
}
