package coretest

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"synthbot/core/txt"
)

// Screen is a small terminal: it shows what a program writes as a user sees it. It wraps as
// real ones do: the cursor stays behind the last column until something more is written.
type Screen struct {
	Row, Col int             // of the cursor, from the first row ever shown
	Modes    map[string]bool // by name, such as "?2004": set or reset
	Unknown  []string        // sequences that some terminals do not support

	columns, height int
	grid            [][]string // all rows; the screen is the last height of them
	pending         string
}

// NewScreen returns an empty screen.
func NewScreen(columns, height int) *Screen {
	return &Screen{columns: columns, height: height, grid: [][]string{nil}, Modes: map[string]bool{}}
}

// Write shows output. Incomplete characters and sequences wait for the rest.
func (v *Screen) Write(p []byte) (int, error) {
	s := v.pending + string(p)
	for s != "" {
		size := v.step(s)
		if size == 0 {
			break
		}
		s = s[size:]
	}
	v.pending = s
	return len(p), nil
}

func (v *Screen) step(s string) int {
	switch s[0] {
	case '\r':
		v.Col = 0
		return 1
	case '\n':
		v.down()
		return 1
	case '\a':
		return 1
	case 0x1b:
		return v.sequence(s)
	}
	end := strings.IndexAny(s, "\r\n\a\x1b")
	if end < 0 {
		end = len(s)
	}
	text := s[:end]
	for !utf8.ValidString(text) && len(text) > 0 {
		text = text[:len(text)-1] // an incomplete character
	}
	for g := range txt.Graphemes(text) {
		v.put(g)
	}
	return len(text)
}

func (v *Screen) sequence(s string) int {
	if len(s) < 3 {
		return 0
	}
	end := 2
	for end < len(s) && (s[end] < '@' || s[end] > '~') {
		end++
	}
	if s[1] != '[' || end == len(s) {
		return 0
	}
	n, _ := strconv.Atoi(s[2:end])
	switch s[end] {
	case 'A':
		v.Row = max(v.Row-max(n, 1), v.top())
	case 'C':
		v.Col = min(v.Col+max(n, 1), v.columns-1)
	case 'J':
		v.eraseBelow(n == 2)
	case 'H':
		v.Row, v.Col = v.top(), 0
	case 'h', 'l':
		v.Modes[s[2:end]] = s[end] == 'h'
	case 'm':
	default:
		v.Unknown = append(v.Unknown, s[:end+1])
	}
	return end + 1
}

func (v *Screen) top() int { return max(0, len(v.grid)-v.height) }

func (v *Screen) down() {
	v.Row++
	if v.Row == len(v.grid) {
		v.grid = append(v.grid, nil)
	}
}

func (v *Screen) put(g string) {
	w := txt.Columns(g)
	if v.Col+w > v.columns {
		v.Col = 0
		v.down()
	}
	line := v.grid[v.Row]
	for len(line) < v.Col+w {
		line = append(line, " ")
	}
	if w == 0 {
		return
	}
	line[v.Col] = g
	if w == 2 {
		line[v.Col+1] = ""
	}
	v.grid[v.Row] = line
	v.Col += w
}

func (v *Screen) eraseBelow(all bool) {
	if all {
		for i := v.top(); i < len(v.grid); i++ {
			v.grid[i] = nil
		}
		return
	}
	v.grid = v.grid[:v.Row+1]
	v.grid[v.Row] = v.grid[v.Row][:min(v.Col, len(v.grid[v.Row]))]
}

// resize changes the width. Rows that are too long wrap, as in most terminals.
func (v *Screen) resize(columns int) {
	var grid [][]string
	row := 0
	for i, line := range v.grid {
		if i == v.Row {
			row = len(grid) + v.Col/columns
		}
		for len(line) > columns {
			grid = append(grid, line[:columns:columns])
			line = line[columns:]
		}
		grid = append(grid, line)
	}
	v.columns, v.grid, v.Row, v.Col = columns, grid, row, v.Col%columns
}

// Incomplete returns output that waits for the rest.
func (v *Screen) Incomplete() string { return v.pending }

// Text returns everything ever shown, row by row, without trailing white space.
func (v *Screen) Text() string {
	var rows []string
	for _, line := range v.grid {
		rows = append(rows, strings.TrimRight(strings.Join(line, ""), " "))
	}
	return strings.TrimRight(strings.Join(rows, "\n"), "\n")
}
