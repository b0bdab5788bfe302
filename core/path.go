package core

import (
	"fmt"
	"net/url"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxPath is the longest path in bytes, as printed.
const maxPath = 512

// personMark is the second element of a user's path.
const personMark = "@user"

// Path identifies a place or a user: the interface's name, then the platform's stable ids, outermost first
// ("telegram/-100123/7"). It is comparable. The zero Path is the root above all interfaces.
//
// Within an element, '/', '%', control characters, white space and invalid UTF-8 are percent-encoded (each byte, in
// upper-case hex); nothing else is, so that every path has exactly one spelling.
type Path struct{ s string }

// ParsePath parses a path, which must have its one spelling. ParsePath(s).String() == s for every s that it accepts.
func ParsePath(s string) (Path, error) {
	if len(s) > maxPath {
		return Path{}, fmt.Errorf("bad path: %d bytes, at most %d are allowed", len(s), maxPath)
	}
	for element := range strings.SplitSeq(s, "/") {
		if element == "" {
			return Path{}, fmt.Errorf("bad path: %q has an empty element", s)
		}
		want := encode(decode(element))
		if want != element {
			return Path{}, fmt.Errorf("bad path: write the element %q as %q", element, want)
		}
	}
	return Path{s}, nil
}

// MakePath builds a path from plain elements, encoding what must be encoded.
func MakePath(elements ...string) (Path, error) {
	encoded := make([]string, len(elements))
	for i, e := range elements {
		encoded[i] = encode(e)
	}
	return ParsePath(strings.Join(encoded, "/"))
}

// MustPath is ParsePath for constants; it panics on a malformed one.
func MustPath(s string) Path {
	p, err := ParsePath(s)
	if err != nil {
		panic(err)
	}
	return p
}

// String prints the path; the zero Path prints as "".
func (p Path) String() string { return p.s }

// IsZero reports whether p is the root.
func (p Path) IsZero() bool { return p.s == "" }

// Interface returns the first element, decoded: the name of the interface that serves the path.
func (p Path) Interface() string {
	first, _, _ := strings.Cut(p.s, "/")
	return decode(first)
}

// Elements returns the decoded elements, outermost first.
func (p Path) Elements() []string {
	if p.s == "" {
		return nil
	}
	parts := strings.Split(p.s, "/")
	for i, e := range parts {
		parts[i] = decode(e)
	}
	return parts
}

// Nearer reports whether a, of two paths that p belongs to, has precedence over b: the
// longer one has. A channel has precedence over a category, which is as long.
func (p Path) Nearer(a, b Path) bool {
	n, m := len(a.Elements()), len(b.Elements())
	if n != m {
		return n > m
	}
	return a == b || p.Within(a)
}

// Within reports whether p is root or lies below it, element by element:
// "a/bc" is not within "a/b". Everything is within the zero Path.
func (p Path) Within(root Path) bool {
	rest, ok := strings.CutPrefix(p.s, root.s)
	return ok && (root.s == "" || rest == "" || rest[0] == '/')
}

// NamedIn reports whether a text names p or a path below it. "a/b" is named in "Ann (a/b/c)", but not in "a/bc".
func (p Path) NamedIn(text string) bool {
	before, after, found := strings.Cut(text, p.s)
	if !found || p.IsZero() {
		return found
	}
	isWord := func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune("_-%", r) }
	last, _ := utf8.DecodeLastRuneInString(before)
	next, _ := utf8.DecodeRuneInString(after)
	return !isWord(last) && !isWord(next) || p.NamedIn(after)
}

// Parent returns the path without its last element; for the zero Path, the zero Path.
func (p Path) Parent() Path {
	i := strings.LastIndexByte(p.s, '/')
	return Path{p.s[:max(i, 0)]}
}

// Group returns the group that a place belongs to: the guild of a channel, the chat of a topic.
func (p Path) Group() Path {
	for !p.Parent().Parent().IsZero() {
		p = p.Parent()
	}
	return p
}

// Person returns the path of a user of p's interface.
func (p Path) Person(id string) (Path, error) {
	iface, _, _ := strings.Cut(p.s, "/")
	s := iface + "/" + personMark + "/" + encode(id)
	if iface == "" || id == "" || len(s) > maxPath {
		return MakePath(p.Interface(), personMark, id)
	}
	return Path{s}, nil
}

// IsPerson reports whether p identifies a user and not a place.
func (p Path) IsPerson() bool {
	_, rest, _ := strings.Cut(p.s, "/")
	id, found := strings.CutPrefix(rest, personMark+"/")
	return found && !strings.Contains(id, "/")
}

// MarshalText implements encoding.TextMarshaler, for JSON, TOML and logs.
func (p Path) MarshalText() ([]byte, error) { return []byte(p.s), nil }

// UnmarshalText implements encoding.TextUnmarshaler; "" is the zero Path.
func (p *Path) UnmarshalText(text []byte) error {
	if len(text) == 0 {
		*p = Path{}
		return nil
	}
	parsed, err := ParsePath(string(text))
	if err == nil {
		*p = parsed
	}
	return err
}

func encode(plain string) string {
	if !strings.ContainsFunc(plain, func(r rune) bool { return mustEncode(r, 1) }) {
		return plain
	}
	var b strings.Builder
	for i := 0; i < len(plain); {
		r, size := utf8.DecodeRuneInString(plain[i:])
		if mustEncode(r, size) {
			for _, c := range []byte(plain[i : i+size]) {
				fmt.Fprintf(&b, "%%%02X", c)
			}
		} else {
			b.WriteString(plain[i : i+size])
		}
		i += size
	}
	return b.String()
}

func mustEncode(r rune, size int) bool {
	return r == '/' || r == '%' || unicode.IsControl(r) || unicode.IsSpace(r) ||
		r == utf8.RuneError && size == 1
}

// decode reverses encode. An element with an invalid escape stays as it is.
func decode(element string) string {
	plain, err := url.PathUnescape(element)
	if err != nil {
		return element
	}
	return plain
}
