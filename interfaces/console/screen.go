package console

import (
	"context"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"synthbot/core/txt"
)

// Sizes of a terminal that does not tell.
const (
	defaultWidth  = 80
	defaultHeight = 24
)

// frame is how long the thinking sign stands still.
const frame = 250 * time.Millisecond

// screen draws the line that is being typed at the bottom of a terminal, below
// all that was said, and the sign that the bot is at work. Every row is ended by
// the screen and not by the terminal's own wrapping, so that it always knows
// where the cursor is. Safe for concurrent use.
type screen struct {
	out    io.Writer
	size   func() (columns, rows int)
	prompt string
	sign   string
	style  func(style, string) string

	mu       sync.Mutex
	edit     *editor
	thinkers int
	dots     int
	closed   bool
	// What stands on the terminal: the width of each row, and the cursor.
	rows     []int
	row, col int
}

func (s *screen) width() int {
	columns, _ := s.size()
	return columns
}

// print puts text above the line that is being typed.
func (s *screen) print(text string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	body := s.erased() + strings.ReplaceAll(text, "\n", "\r\n") + "\r\n"
	_, err := io.WriteString(s.out, body+s.drawn())
	return err
}

// refresh draws the line again after it or the terminal changed.
func (s *screen) refresh() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, err := io.WriteString(s.out, s.erased()+s.drawn())
	return err
}

// press lets the editor do its work and shows it.
func (s *screen) press(keys ...key) error {
	s.mu.Lock()
	for _, k := range keys {
		s.edit.press(k)
	}
	s.mu.Unlock()
	return s.refresh()
}

// enter takes the line, which stays on the terminal as it was typed.
func (s *screen) enter() (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if strings.TrimSpace(s.edit.text) == "" {
		return "", nil
	}
	shown := s.erased() + strings.Join(s.lay(false).rows, "\r\n") + "\r\n"
	line := s.edit.take()
	_, err := io.WriteString(s.out, shown+s.drawn())
	return line, err
}

// empty reports whether nothing is typed.
func (s *screen) empty() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.edit.text == ""
}

// clear empties the whole terminal but for the line.
func (s *screen) clear() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rows = nil
	_, err := io.WriteString(s.out, "\x1b[H\x1b[2J"+s.drawn())
	return err
}

// close takes the sign and the line away for good.
func (s *screen) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, _ = io.WriteString(s.out, s.erased())
	s.closed = true
}

// think shows the sign until ctx ends.
func (s *screen) think(ctx context.Context) {
	s.count(1)
	defer s.count(-1)
	tick := time.NewTicker(frame)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			s.count(0)
		}
	}
}

// count draws the sign's next picture after n more are thinking.
func (s *screen) count(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.thinkers += n
	s.dots = (s.dots + 1) % 4
	if !s.closed {
		_, _ = io.WriteString(s.out, s.erased()+s.drawn())
	}
}

// erased takes away what was drawn last, and leaves the cursor in its place. A
// terminal that became narrower has wrapped the rows that were too wide.
func (s *screen) erased() string {
	if s.closed || len(s.rows) == 0 {
		return ""
	}
	columns := s.width()
	up := s.col / columns
	for _, w := range s.rows[:s.row] {
		up += max(1, (w+columns-1)/columns)
	}
	s.rows = nil
	if up == 0 {
		return "\r\x1b[J"
	}
	return fmt.Sprintf("\r\x1b[%dA\x1b[J", up)
}

// drawn draws the sign, the prompt and the line, with the cursor in its place.
func (s *screen) drawn() string {
	if s.closed {
		return ""
	}
	l := s.lay(true)
	s.rows, s.row, s.col = l.widths, l.row, l.col
	out := strings.Join(l.rows, "\r\n") + "\r"
	if up := len(l.rows) - 1 - l.row; up > 0 {
		out += fmt.Sprintf("\x1b[%dA", up)
	}
	if l.col > 0 {
		out += fmt.Sprintf("\x1b[%dC", l.col)
	}
	return out
}

// layout is the line as rows of the terminal.
type layout struct {
	rows     []string
	widths   []int
	row, col int // of the cursor
}

// lay breaks sign, prompt and line into rows. While it is being typed, a line
// that is higher than the terminal shows what is around the cursor only.
func (s *screen) lay(typing bool) layout {
	columns, height := s.size()
	var l layout
	l.add(s.style(promptStyle, s.prompt), txt.Width(s.prompt))
	at := 0
	for g := range txt.Graphemes(s.edit.text) {
		if at == s.edit.pos {
			l.here()
		}
		at += len(g)
		l.put(g, columns)
	}
	if at == s.edit.pos {
		if l.widths[len(l.widths)-1] >= columns {
			l.add("", 0)
		}
		l.here()
	}
	if !typing {
		return l
	}
	if s.thinkers > 0 {
		sign := cutColumns(s.sign+strings.Repeat(".", s.dots), columns)
		l.above(s.style(dim, sign), txt.Width(sign))
		height--
	}
	l.crop(max(1, height-1), s.thinkers > 0)
	return l
}

func (l *layout) add(text string, width int) {
	l.rows, l.widths = append(l.rows, text), append(l.widths, width)
}

// here notes the place of the cursor.
func (l *layout) here() { l.row, l.col = len(l.rows)-1, l.widths[len(l.rows)-1] }

func (l *layout) put(g string, columnCount int) {
	if g == "\n" {
		l.add("", 0)
		return
	}
	w := txt.Columns(g)
	if last := len(l.rows) - 1; l.widths[last]+w > columnCount && l.widths[last] > 0 {
		if l.row == last && l.col >= l.widths[last] { // the cursor goes along
			l.row, l.col = last+1, 0
		}
		l.add("", 0)
	}
	last := len(l.rows) - 1
	l.rows[last] += g
	l.widths[last] += w
}

// above puts the sign over the line.
func (l *layout) above(sign string, width int) {
	l.rows = append([]string{sign}, l.rows...)
	l.widths = append([]int{width}, l.widths...)
	l.row++
}

// crop keeps as many rows as are wanted, those around the cursor.
func (l *layout) crop(height int, sign bool) {
	first := 0
	if sign {
		first = 1
	}
	extra := len(l.rows) - first - height
	if extra <= 0 {
		return
	}
	from := first + min(max(0, l.row-first-height+1), extra)
	l.rows = append(l.rows[:first:first], l.rows[from:from+height]...)
	l.widths = append(l.widths[:first:first], l.widths[from:from+height]...)
	l.row -= from - first
}

// cutColumns is the beginning of s that fits.
func cutColumns(s string, columnCount int) string {
	used, size := 0, 0
	for g := range txt.Graphemes(s) {
		if used += txt.Columns(g); used > columnCount {
			break
		}
		size += len(g)
	}
	return s[:size]
}
