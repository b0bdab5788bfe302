package config

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"unicode"

	"github.com/pelletier/go-toml/v2/unstable"

	"synthbot/core/txt"
)

// StatementKind says what a [Statement] is.
type StatementKind int

const (
	StatementComment StatementKind = iota
	StatementHeader                // [a.b]
	StatementArray                 // [[a.b]]
	StatementValue                 // key = …
)

// Statement is a statement of a TOML file, or a line with nothing but a comment.
type Statement struct {
	Kind       StatementKind
	Commented  bool // it is in a comment: "#key = …", "#[table]", but not "# key = …"
	Key        []string
	Start, End int // offsets of its lines, with the last line's end
	From, To   int // offsets of the value, or of a header's key, unless it is in a comment
}

// Statements lists the statements of a TOML file in their order, for programs that
// change its text. It checks the syntax of each, but not, for example, for duplicates.
func Statements(text string) ([]Statement, error) {
	data := []byte(text)
	begin := 0
	if strings.HasPrefix(text, byteOrderMark) {
		begin = copy(data, "   ")
	}
	p := unstable.Parser{KeepComments: true}
	p.Reset(data)
	var list []Statement
	for p.NextExpression() {
		s, from, to := newStatement(&p, p.Expression())
		s.Start = max(begin, bytes.LastIndexByte(data[:from], '\n')+1)
		_, rest, _ := bytes.Cut(data[to:], []byte("\n"))
		s.End = len(data) - len(rest)
		list = append(list, s)
	}
	var wrong *unstable.ParserError
	if errors.As(p.Error(), &wrong) {
		line := p.Shape(p.Range(wrong.Highlight)).Start.Line
		return nil, fmt.Errorf("line %d: %w", line, wrong)
	}
	return list, nil
}

// newStatement converts an expression. from and to are offsets on its first and its last line.
func newStatement(p *unstable.Parser, e *unstable.Node) (s Statement, from, to int) {
	from, to = int(e.Raw.Offset), int(e.Raw.Offset+e.Raw.Length)
	switch e.Kind {
	case unstable.Comment:
		return inComment(p.Raw(e.Raw)[1:]), from, to
	case unstable.Table:
		s.Kind = StatementHeader
	case unstable.ArrayTable:
		s.Kind = StatementArray
	case unstable.KeyValue:
		s.Kind = StatementValue
	}
	end := 0
	for key := e.Key(); key.Next(); {
		if end == 0 {
			s.From = int(key.Node().Raw.Offset)
		}
		end = int(key.Node().Raw.Offset + key.Node().Raw.Length)
		s.Key = append(s.Key, string(key.Node().Data))
	}
	if s.Kind != StatementValue {
		s.To = end
		return s, end, end
	}
	s.From, s.To = to-len(bytes.TrimLeft(p.Data()[end:to], " \t=")), to
	return s, from, to
}

// inComment returns the statement in a comment, if the comment begins with one.
func inComment(text []byte) (s Statement) {
	p := unstable.Parser{}
	p.Reset(text)
	if len(text) > 0 && !bytes.ContainsAny(text[:1], " \t#") && p.NextExpression() {
		s, _, _ = newStatement(&p, p.Expression())
		s.Commented, s.From, s.To = true, 0, 0
	}
	return s
}

// QuoteKey returns one part of a key as in a file, in quotes if necessary.
func QuoteKey(name string) string {
	bare := name != "" && strings.IndexFunc(name, func(r rune) bool {
		return r > unicode.MaxASCII || !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '_' && r != '-'
	}) < 0
	if bare {
		return name
	}
	return Quote(name)
}

const zeroWidthJoiner = '\u200d'

// Quote returns a text as a TOML string on one line. Invalid UTF-8 becomes U+FFFD.
func Quote(text string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range text {
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\t':
			b.WriteString(`\t`)
		case unicode.IsControl(r) || !unicode.IsPrint(r) && r != zeroWidthJoiner:
			fmt.Fprintf(&b, `\U%08X`, r)
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte('"')
	return b.String()
}

// Nearest returns the known name that is most similar to a mistyped one; "" if none is similar enough.
func Nearest(name string, known []string) string {
	const longest = 64
	if len(name) > longest {
		return ""
	}
	best, least := "", 0
	for _, k := range known {
		d := txt.Distance(foldName(name), foldName(k))
		if d <= 1+len(k)/5 && d < len(k) && (best == "" || d < least) {
			best, least = k, d
		}
	}
	return best
}

func foldName(name string) string {
	return strings.NewReplacer("_", "", "-", "", " ", "").Replace(strings.ToLower(name))
}
