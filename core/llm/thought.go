package llm

import (
	"bytes"
	"encoding/json"
	"io"
	"strings"
	"unicode/utf8"
)

// ThoughtKey is part of the keys of a model's thoughts, which users are never shown or asked about.
const ThoughtKey = "private_thought"

// Thoughtless removes thoughts at any depth from a decoded JSON value, which it changes. text, if
// not nil, replaces each string, which may quote a thought.
func Thoughtless(value any, text func(string) string) any {
	switch x := value.(type) {
	case map[string]any:
		for key, inner := range x {
			if strings.Contains(strings.ToLower(key), ThoughtKey) {
				delete(x, key)
				continue
			}
			x[key] = Thoughtless(inner, text)
		}
	case []any:
		for i := range x {
			x[i] = Thoughtless(x[i], text)
		}
	case string:
		if text != nil {
			return text(x)
		}
	}
	return value
}

// ThoughtlessJSON is Thoughtless for encoded JSON. The result is indented and does not end with a newline.
func ThoughtlessJSON(raw []byte, indent string, text func(string) string) ([]byte, error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var value any
	if err := d.Decode(&value); err != nil {
		return nil, err
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", indent)
	err := e.Encode(Thoughtless(value, text))
	return bytes.TrimSpace(b.Bytes()), err
}

// ThoughtlessLines returns a writer that removes thoughts from JSON lines. Each Write must be one line.
func ThoughtlessLines(w io.Writer) io.Writer { return thoughtlessLines{w} }

type thoughtlessLines struct{ next io.Writer }

func (t thoughtlessLines) Write(line []byte) (int, error) {
	bare := line
	if bytes.Contains(bytes.ToLower(line), []byte(ThoughtKey)) || bytes.Contains(line, []byte(`\u`)) {
		shown, err := ThoughtlessJSON(line, "", nil)
		if err != nil {
			return 0, err
		}
		bare = append(shown, '\n')
	}
	_, err := t.next.Write(bare)
	return len(line), err
}

// thoughtMarks are the marks that models write before and after thoughts in a text.
var thoughtMarks = [...]struct{ open, end string }{
	{"<think>", "</think>"}, {"<thinking>", "</thinking>"}, {"<thought>", "</thought>"},
	{"<reasoning>", "</reasoning>"}, {"<reflection>", "</reflection>"}, {"<scratchpad>", "</scratchpad>"},
	{"<antThinking>", "</antThinking>"},
	{"&lt;think&gt;", "&lt;/think&gt;"}, {"&lt;thinking&gt;", "&lt;/thinking&gt;"},
	{"&lt;thought&gt;", "&lt;/thought&gt;"}, {"&lt;reasoning&gt;", "&lt;/reasoning&gt;"},
	{"<seed:think>", "</seed:think>"}, {"[THINK]", "[/THINK]"}, {"◁think▷", "◁/think▷"},
	{"<|begin_of_thought|>", "<|end_of_thought|>"}, {"<|channel|>analysis", finalChannel},
}

// Marks before the final text, in a text of several channels.
const (
	finalChannel = "<|channel|>final"
	channelWords = "<|message|>"
)

// nextMark finds the first mark at or after an index. opens is false for a mark that ends
// a thought. from is -1 if there is no mark.
func nextMark(text string, at int) (from, to int, opens bool) {
	for i := at; i < len(text); i++ {
		if !mayBeMark(text[i]) {
			continue
		}
		for _, m := range thoughtMarks {
			if hasPrefixFold(text[i:], m.open) {
				return i, i + len(m.open), true
			}
			if hasPrefixFold(text[i:], m.end) {
				to := i + len(m.end)
				return i, to + len(text[to:]) - len(strings.TrimPrefix(text[to:], channelWords)), false
			}
		}
	}
	return -1, -1, false
}

// MayBeMark reports whether a mark around a thought may begin with the character.
func MayBeMark(c rune) bool { return c == '<' || c == '[' || c == '&' || c == '◁' }

func mayBeMark(c byte) bool { return c == "◁"[0] || MayBeMark(rune(c)) }

func hasPrefixFold(text, prefix string) bool {
	return len(text) >= len(prefix) && strings.EqualFold(text[:len(prefix)], prefix)
}

// FindThought returns the positions of the first mark that opens a thought and of the first
// one that ends a thought. Each is nil if there is none.
func FindThought(text string) (open, end []int) {
	for at := 0; open == nil || end == nil; {
		from, to, opens := nextMark(text, at)
		switch {
		case from < 0:
			return open, end
		case opens && open == nil:
			open = []int{from, to}
		case !opens && end == nil:
			end = []int{from, to}
		}
		at = to
	}
	return open, end
}

// ThoughtBegins returns the mark, in lower case, that will end the thought at the start of a text, or "" if the text
// does not begin with a thought. wait reports that the text may be the beginning of a mark.
func ThoughtBegins(text string) (end string, wait bool) {
	for _, m := range thoughtMarks {
		n := min(len(text), len(m.open))
		if !strings.EqualFold(text[:n], m.open[:n]) {
			continue
		}
		if n == len(m.open) {
			return strings.ToLower(m.end), false
		}
		wait = true
	}
	return "", wait
}

// Unthink removes thoughts from a text for users. A thought without an end extends to the end of the text, one without
// a beginning to its start. Marks in code, or alone in quotation marks, are normal text.
func Unthink(text string) string { return unthink(text, false) }

// UnthinkGrowing is Unthink for a text that is still being written. It omits an end that may become part of a thought.
func UnthinkGrowing(text string) string {
	text = unthink(text, true)
	for i := max(0, len(text)-longestMark); i < len(text); i++ {
		if mayBeMark(text[i]) && startsMark(text[i:]) {
			text = text[:i]
		}
	}
	return strings.TrimRight(text, blanks)
}

const (
	blanks = " \t\r\n"
	fence  = "```" // of a code block
)

const longestMark = len("<|begin_of_thought|>")

// startsMark reports whether the text is a mark or the beginning of one.
func startsMark(text string) bool {
	begins := func(mark string) bool {
		return len(text) <= len(mark) && utf8.ValidString(mark[:len(text)]) && strings.EqualFold(text, mark[:len(text)])
	}
	for _, m := range thoughtMarks {
		if begins(m.open) || begins(m.end) {
			return true
		}
	}
	return begins(channelWords)
}

func unthink(text string, growing bool) string {
	u := unthinking{text: text}
	for from, to, opens := nextMark(text, 0); from >= 0; from, to, opens = nextMark(text, to) {
		switch {
		case u.literal(from, to):
		case opens:
			u.open(to)
		default:
			u.end(to)
		}
	}
	if !u.found {
		return text
	}
	switch {
	case u.inside:
	case growing && u.nested > 0:
		u.kept = u.kept[:u.begin]
	default:
		u.keep(len(text))
	}
	return strings.TrimRight(string(u.kept), blanks)
}

// unthinking is the state of removing thoughts from a text.
type unthinking struct {
	text   string
	at     int // index in text: read up to here
	kept   []byte
	code   code // at the end of kept
	tick   int  // index of the next backtick or line break, from the last search
	inside bool
	found  bool

	begin     int // length of kept before the last thought
	beginCode code
	nested    int // thoughts that began inside of the last one and are still open
}

// code is the position relative to Markdown code.
type code struct {
	block  bool // in a code block
	inLine bool // the block's opening fence is on this line
	ticks  int  // runs of backticks on this line
}

func (u *unthinking) keep(to int) {
	part := u.text[u.at:to]
	if u.found && len(u.kept) == 0 {
		part = strings.TrimLeft(part, blanks)
	}
	from := len(u.kept)
	u.kept = append(u.kept, part...)
	for i := from; i < len(u.kept); i++ {
		switch u.kept[i] {
		case '\n':
			u.code.inLine, u.code.ticks = false, 0
		case '`':
			n := len(u.kept) - i - len(bytes.TrimLeft(u.kept[i:], "`"))
			before := bytes.TrimRight(u.kept[:i], " \t")
			beginsLine := len(before) == 0 || bytes.HasSuffix(before, []byte("\n"))
			if n >= len(fence) && (beginsLine || u.code.inLine) {
				u.code.block, u.code.inLine = !u.code.block, !u.code.block
			} else {
				u.code.ticks++
			}
			i += n - 1
		}
	}
	u.at = to
}

// literal keeps the text before a mark. It reports whether the mark is normal text, and keeps it, too, if so.
func (u *unthinking) literal(from, to int) bool {
	if u.inside {
		return false
	}
	u.keep(from)
	inCode := u.code.block || u.code.ticks%2 == 1 && u.codeEnds(to)
	if inCode || quoted(u.text[:from], u.text[to:], '"') || quoted(u.text[:from], u.text[to:], '\'') {
		u.keep(to)
		return true
	}
	u.found = true
	return false
}

// codeEnds reports whether a backtick follows on the same line.
func (u *unthinking) codeEnds(at int) bool {
	if u.tick < at {
		u.tick = len(u.text)
		i := strings.IndexAny(u.text[at:], "`\n")
		if i >= 0 {
			u.tick = at + i
		}
	}
	return u.tick < len(u.text) && u.text[u.tick] == '`'
}

// quoted reports whether quotation marks surround what is between two texts, and the first one follows no word.
func quoted(before, behind string, mark byte) bool {
	n := len(before)
	return n > 0 && before[n-1] == mark && behind != "" && behind[0] == mark &&
		(n == 1 || strings.IndexByte(" \t\n([{=,:", before[n-2]) >= 0)
}

func (u *unthinking) open(to int) {
	u.at = to
	if u.inside {
		u.nested++
		return
	}
	if len(bytes.TrimLeft(u.kept, blanks)) == 0 {
		u.kept = u.kept[:0]
	}
	u.inside, u.begin, u.beginCode = true, len(u.kept), u.code
}

func (u *unthinking) end(to int) {
	u.at = to
	switch {
	case u.inside:
		u.inside = false
	case u.nested > 0:
		u.nested--
		u.kept, u.code = u.kept[:u.begin], u.beginCode
	default:
		u.kept, u.code, u.begin, u.beginCode = u.kept[:0], code{}, 0, code{}
	}
}
