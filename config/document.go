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

// MaxFile is the largest configuration file in bytes.
const MaxFile = 1 << 20

// Options say how a file is read. The zero value is right outside of tests.
type Options struct {
	// Getenv looks up env: secrets and $CREDENTIALS_DIRECTORY; nil: os.Getenv.
	Getenv func(string) string
	// Open opens file: secrets and the file of [Open]; nil: os.Open.
	Open func(string) (io.ReadCloser, error)
	// References leaves secrets unresolved: a field holds the reference itself,
	// or "(literal)". What it reveals may then be printed.
	References bool
}

func (o Options) getenv(name string) string {
	if o.Getenv == nil {
		return os.Getenv(name)
	}
	return o.Getenv(name)
}

// read returns at most limit bytes; a longer file is an error.
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

// reason is an I/O error in a few words, without the file's name.
func reason(err error) string {
	var p *fs.PathError
	if errors.As(err, &p) {
		err = p.Err
	}
	return err.Error()
}

// Document is one file: what stands in it, and what was found wrong with it so
// far. It is for one goroutine.
type Document struct {
	file     string
	options  Options
	root     spot
	broken   bool // something could not be read: what is missing proves nothing
	findings findings
	secrets  []string // the files that secrets were read from
}

// Read reads data, the content of file, into the structs that into points to;
// see [Document.Decode]. The error is nil or [Faults].
func Read(file string, data []byte, into any, o Options) error {
	d := Parse(file, data, o)
	d.Decode(into)
	return d.Err()
}

// Open is [Parse] for a file on disk. That it cannot be read is a fault, too.
func Open(file string, o Options) *Document {
	data, err := o.read(file, MaxFile)
	if err != nil && len(data) <= MaxFile {
		d := &Document{file: file, options: o, broken: true}
		d.root = spot{doc: d}
		d.Fault("cannot be read: " + reason(err))
		return d
	}
	return Parse(file, data, o)
}

// Parse reads the syntax of data, the content of file. The document is never
// nil; what is wrong is kept for Err. file is for messages, and for secrets
// that lie beside it.
func Parse(file string, data []byte, o Options) *Document {
	d := &Document{file: file, options: o}
	d.root = spot{doc: d}
	if len(data) > MaxFile {
		d.broken = true
		d.Fault(fmt.Sprintf("is over %d KiB; a configuration is smaller", MaxFile>>10))
		return d
	}
	values, positions := d.parse(bytes.TrimPrefix(data, []byte("\uFEFF")))
	d.root.value, d.root.node = values, positions
	return d
}

// Decode reads the whole file into structs; each of into is a pointer to one.
// A key is known if any of them knows it. Fields get their defaults first; one
// without a default keeps what it held. Then a struct with the method
//
//	Check(fault func(text string, at ...any))
//
// is asked for faults that no tag can tell, if it has none yet. Err tells what
// was found.
func (d *Document) Decode(into ...any) {
	r := reader{doc: d, references: d.options.References}
	r.table(&d.root, structs(into))
}

// Fault notes a fault that the caller found; at leads to the key, from the
// top, by names (string) and indices (int).
func (d *Document) Fault(text string, at ...any) { d.root.walk(at).fault(text) }

// Line is where a key stands, 0 if it does not; at is as in Fault.
func (d *Document) Line(at ...any) int { return d.root.walk(at).stands() }

// SecretFiles are the files that secrets were read from, as they were opened:
// those that the system handed over in $CREDENTIALS_DIRECTORY are left out.
func (d *Document) SecretFiles() []string { return slices.Clone(d.secrets) }

// Err returns all [Faults] found so far, or nil.
func (d *Document) Err() error { return d.findings.err(d.file) }

// structs checks what a caller gave to be filled.
func structs(into []any) []reflect.Value {
	list := make([]reflect.Value, len(into))
	for i, p := range into {
		v := reflect.ValueOf(p)
		if v.Kind() != reflect.Pointer || v.IsNil() || v.Elem().Kind() != reflect.Struct {
			panic(fmt.Sprintf("config: %T is no pointer to a struct", p))
		}
		list[i] = v.Elem()
	}
	return list
}

// spot is a place in a document, whether something stands there or not.
type spot struct {
	doc   *Document
	up    *spot
	name  string // in a table
	index int    // in a list, where name is ""
	list  bool
	value any   // nil: nothing stands here
	node  *node // nil: nothing stands here
}

func (s *spot) key(name string) *spot {
	table, _ := s.value.(map[string]any)
	return &spot{doc: s.doc, up: s, name: name, value: table[name], node: s.node.key(name)}
}

func (s *spot) item(i int) *spot {
	child := &spot{doc: s.doc, up: s, index: i, list: true, node: s.node.item(i)}
	if list, _ := s.value.([]any); i >= 0 && i < len(list) {
		child.value = list[i]
	}
	return child
}

func (s *spot) walk(at []any) *spot {
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

// String is the key as it would be written in the file.
func (s *spot) String() string {
	switch {
	case s.up == nil:
		return ""
	case s.list:
		return fmt.Sprintf("%s[%d]", s.up, s.index)
	case s.up.up == nil:
		return writeKey(s.name)
	}
	return s.up.String() + "." + writeKey(s.name)
}

// stands is the line of what stands here, 0 where nothing does.
func (s *spot) stands() int {
	if s.node == nil {
		return 0
	}
	return s.node.line
}

// line is where the key stands, else where the table does that lacks it.
func (s *spot) line() int {
	for ; s != nil; s = s.up {
		if s.node != nil {
			return s.node.line
		}
	}
	return 0
}

func (s *spot) fault(text string) {
	f := Fault{File: s.doc.file, Line: s.line(), Key: txt.Clip(s.String(), 120), Text: text}
	s.doc.findings.add(f)
}
