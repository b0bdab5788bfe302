package console

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"synthbot/core/txt"
)

// vt is a small terminal: it shows what a program writes as a person would see
// it. It wraps as real ones do: the cursor stays behind the last column until
// something more is written.
type vt struct {
	columns, height int
	grid            [][]string // all rows; the screen is the last height of them
	row, col        int        // in grid
	modes           map[string]bool
	pending         string
	unknown         []string
}

func newVT(columns, height int) *vt {
	return &vt{columns: columns, height: height, grid: [][]string{nil}, modes: map[string]bool{}}
}

// Write takes output; what is not whole waits.
func (v *vt) Write(p []byte) (int, error) {
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

func (v *vt) step(s string) int {
	switch s[0] {
	case '\r':
		v.col = 0
		return 1
	case '\n':
		v.down()
		return 1
	case '\a':
		return 1
	case escape:
		return v.sequence(s)
	}
	end := strings.IndexAny(s, "\r\n\a\x1b")
	if end < 0 {
		end = len(s)
	}
	text := s[:end]
	for !utf8.ValidString(text) && len(text) > 0 {
		text = text[:len(text)-1] // a character that is not whole yet
	}
	for g := range txt.Graphemes(text) {
		v.put(g)
	}
	return len(text)
}

func (v *vt) sequence(s string) int {
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
		v.row = max(v.row-max(n, 1), v.top())
	case 'C':
		v.col = min(v.col+max(n, 1), v.columns-1)
	case 'J':
		v.eraseBelow(n == 2)
	case 'H':
		v.row, v.col = v.top(), 0
	case 'h', 'l':
		v.modes[s[2:end]] = s[end] == 'h'
	case 'm':
	default:
		v.unknown = append(v.unknown, s[:end+1])
	}
	return end + 1
}

func (v *vt) top() int { return max(0, len(v.grid)-v.height) }

func (v *vt) down() {
	v.row++
	if v.row == len(v.grid) {
		v.grid = append(v.grid, nil)
	}
}

func (v *vt) put(g string) {
	w := txt.Columns(g)
	if v.col+w > v.columns {
		v.col = 0
		v.down()
	}
	line := v.grid[v.row]
	for len(line) < v.col+w {
		line = append(line, " ")
	}
	if w == 0 {
		return
	}
	line[v.col] = g
	if w == 2 {
		line[v.col+1] = ""
	}
	v.grid[v.row] = line
	v.col += w
}

func (v *vt) eraseBelow(all bool) {
	if all {
		for i := v.top(); i < len(v.grid); i++ {
			v.grid[i] = nil
		}
		return
	}
	v.grid = v.grid[:v.row+1]
	v.grid[v.row] = v.grid[v.row][:min(v.col, len(v.grid[v.row]))]
}

// resize makes the terminal narrower or wider; rows that are too long wrap, as
// most terminals do it.
func (v *vt) resize(columns int) {
	var grid [][]string
	row := 0
	for i, line := range v.grid {
		if i == v.row {
			row = len(grid) + v.col/columns
		}
		for len(line) > columns {
			grid = append(grid, line[:columns:columns])
			line = line[columns:]
		}
		grid = append(grid, line)
	}
	v.columns, v.grid, v.row, v.col = columns, grid, row, v.col%columns
}

// text is all that was ever seen, row by row, without trailing white space.
func (v *vt) text() string {
	var rows []string
	for _, line := range v.grid {
		rows = append(rows, strings.TrimRight(strings.Join(line, ""), " "))
	}
	return strings.TrimRight(strings.Join(rows, "\n"), "\n")
}
