package markdown

import (
	"strings"

	"synthbot/core/txt"
)

// fence is the line that opens a code block.
type fence struct {
	lead string // what precedes it: indentation and quote marks
	mark string // three or more backticks or tildes
	info string
}

// opening returns the line that opens the block again in the next part, with a short info.
func (f *fence) opening() string {
	if len(f.info) > 40 {
		return f.lead + f.mark
	}
	return f.lead + f.mark + f.info
}

func (f *fence) closing() string { return "\n" + f.lead + f.mark }

// opensFence reads a line that opens a code block, perhaps after quote marks and list marks. It returns nil for other
// lines.
func opensFence(line string) *fence {
	before := itemLead().FindString(line)
	body := line[len(before):]
	mark := body[:fenceSize(body)]
	info := strings.TrimSpace(body[len(mark):])
	if mark == "" || mark[0] == '`' && strings.Contains(info, "`") {
		return nil
	}
	return &fence{lead: itemMark().ReplaceAllLiteralString(before, " "), mark: mark, info: info}
}

func (f *fence) closes(line string) bool {
	lead, body := leading(line)
	size := fenceSize(body)
	return size >= len(f.mark) && body[0] == f.mark[0] && strings.TrimSpace(body[size:]) == "" &&
		indentation(lead) <= indentation(f.lead)+3
}

// endsBefore reports whether line is outside of the quote that the block is in.
func (f *fence) endsBefore(line string) bool {
	lead, _ := leading(line)
	return strings.Count(lead, ">") < strings.Count(f.lead, ">")
}

// unindent removes a list's indentation from the lines of the block that rest begins with. In
// a new part, without the list, a fence must not be indented that far.
func (f *fence) unindent(rest string) (string, *fence) {
	in := indentation(f.lead)
	if in <= 3 || strings.Contains(f.lead, ">") {
		return rest, f
	}
	flat := &fence{mark: f.mark, info: f.info}
	var b strings.Builder
	for line := range strings.Lines(rest) {
		drop := min(in, len(line)-len(strings.TrimLeft(line, " ")))
		b.WriteString(line[drop:])
		rest = rest[len(line):]
		if f.closes(line) {
			break
		}
	}
	return b.String() + rest, flat
}

// List marks count as spaces.
var (
	itemLead = txt.Pattern(`^([ \t>]|([-*+]|\d{1,9}[.)]) )*`)
	itemMark = txt.Pattern(`[^ \t>]`)
)

// leading cuts a line into its indentation and quote marks, and its text.
func leading(line string) (before, body string) {
	body = strings.TrimLeft(line, " \t>")
	return line[:len(line)-len(body)], body
}

// fenceSize counts the backticks or tildes at the start of s. It returns 0 if they are too few for a fence.
func fenceSize(s string) int {
	n := max(len(s)-len(strings.TrimLeft(s, "`")), len(s)-len(strings.TrimLeft(s, "~")))
	if n < 3 {
		return 0
	}
	return n
}

// indentation returns how many characters of a lead follow its last quote mark.
func indentation(lead string) int {
	return len(lead) - 1 - strings.LastIndexByte(lead, '>')
}
