package setup

import (
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"unicode"
)

// File is the text of a configuration file that is being changed.
type File struct {
	text  string
	line  string // what ends a line
	state []statement
}

// Open takes a file that is right TOML.
func Open(text string) (*File, error) {
	f := &File{line: "\n"}
	if strings.Contains(text, "\r\n") {
		f.line = "\r\n"
	}
	return f, f.set(text)
}

// String is the whole file as it stands now.
func (f *File) String() string { return f.text }

func (f *File) set(text string) (err error) {
	f.text = text
	f.state, err = scan(text)
	return err
}

// splice puts lines in place of a part of the text.
func (f *File) splice(from, to int, with string) error {
	return f.set(f.text[:from] + with + f.text[to:])
}

// ErrShape is that the file says something in a way that cannot be changed in
// place; the text names what.
var ErrShape = errors.New("cannot be changed in place")

// Set gives a key of a table a value, which is written as it is: see [Text].
func (f *File) Set(table []string, key, literal string) error {
	for _, list := range f.lists() {
		if below(table, list) {
			return f.shape(list)
		}
	}
	if i, err := f.find(append(slices.Clone(table), key)); err != nil {
		return err
	} else if i >= 0 {
		return f.splice(f.state[i].from, f.state[i].to, literal)
	}
	at := f.table(table)
	if at < 0 {
		if done, err := f.dotted(table, key, literal); done || err != nil {
			return err
		}
		var err error
		if at, err = f.open(header, table); err != nil {
			return err
		}
	}
	return f.put(at, key, literal)
}

// Add adds texts to a list that is written on several lines, and leaves the lines
// and their comments as they are; done is false where there is no such list.
func (f *File) Add(table []string, key string, texts []string) (done bool, err error) {
	i, err := f.find(append(slices.Clone(table), key))
	if err != nil || i < 0 {
		return false, err
	}
	st := &f.state[i]
	was := f.text[st.from:st.to]
	if !strings.HasPrefix(was, "[") || !strings.Contains(was, "\n") {
		return false, nil
	}
	with := strings.TrimSuffix(Texts(texts), "]") + ","
	return true, f.splice(st.from, st.from+1, with)
}

// Count is how many tables a list of tables has.
func (f *File) Count(list ...string) int { return len(f.elements(list)) }

// SetIn gives a key of the n-th table of a list a value.
func (f *File) SetIn(list []string, n int, key, literal string) error {
	all := f.elements(list)
	if n < 0 || n >= len(all) {
		return fmt.Errorf("%w: there is no [[%s]] number %d", ErrShape, strings.Join(list, "."), n+1)
	}
	for i := all[n] + 1; i < len(f.state) && !f.begins(i); i++ {
		if st := &f.state[i]; st.kind == value && !st.spare && slices.Equal(st.key, []string{key}) {
			return f.splice(st.from, st.to, literal)
		}
	}
	return f.put(all[n], key, literal)
}

// Pair is a key and its value, as it is to be written.
type Pair struct{ Key, Literal string }

// First adds a table to a list of tables, before all others.
func (f *File) First(list []string, pairs ...Pair) error {
	if i, err := f.find(list); err != nil {
		return err
	} else if i >= 0 {
		return f.shape(list)
	}
	all := f.elements(list)
	var err error
	at := 0
	if len(all) > 0 {
		at, err = f.before(all[0], list)
	} else {
		at, err = f.open(array, list)
	}
	for _, p := range pairs {
		if err == nil {
			err = f.put(at, p.Key, p.Literal)
		}
	}
	return err
}

// before adds a table in front of the one at i and its comment.
func (f *File) before(i int, list []string) (int, error) {
	for i > 0 && f.state[i-1].kind == other && strings.HasPrefix(f.source(i-1), "#") {
		i--
	}
	start := f.state[i].start
	return i, f.splice(start, start, "[["+dots(list)+"]]"+f.line+f.line)
}

func (f *File) source(i int) string {
	return strings.TrimSpace(f.text[f.state[i].start:f.state[i].end])
}

// begins reports whether a table begins at i.
func (f *File) begins(i int) bool {
	st := &f.state[i]
	return !st.spare && (st.kind == header || st.kind == array)
}

// find is where a key stands, -1 where it does not. An inline table around it
// cannot be changed.
func (f *File) find(full []string) (int, error) {
	for i, key := range f.values() {
		if slices.Equal(key, full) {
			return i, nil
		}
		if below(full, key) {
			return 0, f.shape(key)
		}
	}
	return -1, nil
}

// values yields the values that are in no list of tables, each with its whole key.
func (f *File) values() iter.Seq2[int, []string] {
	return func(yield func(int, []string) bool) {
		var here []string
		lists := f.lists()
		for i := range f.state {
			st := &f.state[i]
			switch {
			case f.begins(i):
				here = st.key
			case st.kind != value || st.spare || slices.ContainsFunc(lists, func(l []string) bool { return below(here, l) }):
			case !yield(i, slices.Concat(here, st.key)):
				return
			}
		}
	}
}

func (f *File) shape(key []string) error {
	return fmt.Errorf("%w: %s is written as one value; write it as a table [%s], or change it by hand", ErrShape, dots(key), dots(key))
}

// lists are the keys of all lists of tables.
func (f *File) lists() (keys [][]string) {
	for i := range f.state {
		if st := &f.state[i]; st.kind == array && !st.spare {
			keys = append(keys, st.key)
		}
	}
	return keys
}

// table is where the header of a table stands, -1 where it does not.
func (f *File) table(key []string) int {
	return slices.IndexFunc(f.state, func(st statement) bool { return st.kind == header && !st.spare && slices.Equal(st.key, key) })
}

// elements are the headers of a list of tables.
func (f *File) elements(key []string) (all []int) {
	for i := range f.state {
		if st := &f.state[i]; st.kind == array && !st.spare && slices.Equal(st.key, key) {
			all = append(all, i)
		}
	}
	return all
}

// dotted adds a key to a table that has no header, and stands in dotted keys
// (bot.name = "x") alone.
func (f *File) dotted(table []string, key, literal string) (bool, error) {
	last, from := -1, 0
	for i, whole := range f.values() {
		if n := len(whole) - len(f.state[i].key); n < len(table) && below(whole, table) {
			last, from = i, n
		}
	}
	if last < 0 {
		return false, nil
	}
	return true, f.after(last, dots(append(slices.Clone(table[from:]), key))+" = "+literal)
}

// after adds a line behind a statement.
func (f *File) after(i int, line string) error {
	end := f.state[i].end
	if !strings.HasSuffix(f.text[:end], "\n") {
		line = f.line + line
	}
	return f.splice(end, end, line+f.line)
}

// open makes the header of a table: of an example, or at the end of the file.
func (f *File) open(k kind, key []string) (int, error) {
	name := "[" + dots(key) + "]"
	if k == array {
		name = "[" + name + "]"
	}
	for i := range f.state {
		if st := &f.state[i]; st.spare && st.kind == k && slices.Equal(st.key, key) && f.idle(i) {
			hash := st.start + strings.IndexByte(f.text[st.start:], '#')
			return i, f.splice(hash, hash+1, "")
		}
	}
	text := strings.TrimRight(f.text, " \t\r\n")
	if text != "" {
		text += f.line + f.line
	}
	err := f.set(text + name + f.line)
	return len(f.state) - 1, err
}

// idle reports whether nothing stands behind an example's header that would
// change its table with it.
func (f *File) idle(i int) bool {
	for i++; i < len(f.state) && !f.begins(i); i++ {
		if f.state[i].kind == value && !f.state[i].spare {
			return false
		}
	}
	return true
}

// put adds a key to the table at i: in place of its example, or behind the
// table's last key.
func (f *File) put(i int, key, literal string) error {
	line, last := Key(key)+" = "+literal, i
	for j := i + 1; j < len(f.state) && !f.begins(j); j++ {
		st := &f.state[j]
		switch {
		case st.spare && st.kind != value:
			return f.after(last, line)
		case st.spare && slices.Equal(st.key, []string{key}):
			return f.splice(st.start, st.end, line+f.line)
		case st.kind == value && !st.spare:
			last = j
		}
	}
	return f.after(last, line)
}

// dots writes a dotted key.
func dots(keys []string) string {
	parts := make([]string, len(keys))
	for i, k := range keys {
		parts[i] = Key(k)
	}
	return strings.Join(parts, ".")
}

// Key writes one part of a key.
func Key(name string) string {
	s := scanner{text: name}
	if s.bare(); s.at == len(name) && name != "" {
		return name
	}
	return Text(name)
}

// Text writes a text as a value on one line.
func Text(text string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range strings.ToValidUTF8(text, "\uFFFD") {
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\t':
			b.WriteString(`\t`)
		case unicode.IsControl(r) || r == '\uFEFF':
			fmt.Fprintf(&b, `\U%08X`, r)
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte('"')
	return b.String()
}

// Texts writes a list of texts.
func Texts(list []string) string {
	parts := make([]string, len(list))
	for i, text := range list {
		parts[i] = Text(text)
	}
	return "[" + strings.Join(parts, ", ") + "]"
}
