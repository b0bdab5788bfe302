package console

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"synthbot/core/txt"
)

// The assumed size of a terminal.
const (
	defaultWidth  = 80
	defaultHeight = 24
)

// frame is how long a picture of the thinking sign is shown.
const frame = 250 * time.Millisecond

// screen draws the edited line below the conversation, and the sign that the bot is
// thinking. It ends every row itself, so that it always knows where the cursor is. Safe for
// concurrent use.
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
	shown    layout // on the terminal; no rows: nothing
}

func (s *screen) width() int {
	columns, _ := s.size()
	return columns
}

func (s *screen) print(text string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.redraw(strings.ReplaceAll(text, "\n", "\r\n") + "\r\n")
}

// redraw replaces the edited line by a text, and draws the sign, the prompt and the line below
// it, with the cursor in its place. s.mu is held.
func (s *screen) redraw(text string) error {
	if s.closed {
		return nil
	}
	erase := s.erase()
	l := s.layout(true)
	s.shown = l
	line := strings.Join(l.rows, "\r\n") + "\r" + move(len(l.rows)-1-l.row, 'A') + move(l.col, 'C')
	_, err := io.WriteString(s.out, erase+text+line)
	return err
}

// refresh draws the line again after it or the terminal changed.
func (s *screen) refresh() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.redraw("")
}

// press carries out key presses, and shows the result. It returns the lines that were
// entered, which stay on the terminal, and whether the user leaves.
func (s *screen) press(keys []key) (lines []string, left bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	above := ""
	for _, k := range keys {
		switch {
		case s.edit.text == "" && (k.code == leave || k.code == deleteOrEnd):
			return lines, true, s.redraw(above)
		case k.code == redraw:
			above, s.shown = "\x1b[H\x1b[2J", layout{}
		case k.code == enter && strings.TrimSpace(s.edit.text) != "":
			above += strings.Join(s.layout(false).rows, "\r\n") + "\r\n"
			lines = append(lines, s.edit.take())
		case k.code != enter:
			s.edit.press(k)
		}
	}
	if len(keys) == 0 {
		return nil, false, nil
	}
	return lines, false, s.redraw(above)
}

// close erases the sign and the line for good.
func (s *screen) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, _ = io.WriteString(s.out, s.erase())
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

// count adds n to the number of thinkers, and draws the next picture of the sign.
func (s *screen) count(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.thinkers += n
	s.dots = (s.dots + 1) % 4
	_ = s.redraw("")
}

// erase returns what erases the shown rows. A terminal that became narrower has wrapped the
// rows that were too wide.
func (s *screen) erase() string {
	l := s.shown
	if s.closed || len(l.rows) == 0 {
		return ""
	}
	s.shown = layout{}
	columns := s.width()
	up := l.col / columns
	for _, w := range l.widths[:l.row] {
		up += max(1, (w+columns-1)/columns)
	}
	return "\r" + move(up, 'A') + "\x1b[J"
}

func move(n int, direction byte) string {
	if n <= 0 {
		return ""
	}
	return fmt.Sprintf("\x1b[%d%c", n, direction)
}

// layout is the edited line as rows of the terminal.
type layout struct {
	rows     []string
	widths   []int
	row, col int // of the cursor
}

// layout breaks the sign, the prompt and the line into rows. A line that is higher than the
// terminal is cropped to the rows around the cursor if it is being edited.
func (s *screen) layout(editing bool) layout {
	columns, height := s.size()
	var l layout
	l.add(s.style(promptStyle, s.prompt), txt.Width(s.prompt))
	at := 0
	for g := range txt.Graphemes(s.edit.text) {
		w := txt.Columns(g)
		if g != "\n" {
			l.fit(w, columns)
		}
		if at == s.edit.pos {
			l.setCursor()
		}
		at += len(g)
		if g == "\n" {
			l.add("", 0)
			continue
		}
		l.rows[len(l.rows)-1] += g
		l.widths[len(l.rows)-1] += w
	}
	if at == s.edit.pos {
		l.fit(1, columns)
		l.setCursor()
	}
	if !editing {
		return l
	}
	height = max(1, height-1-min(1, s.thinkers)) // the sign has a row
	from := max(0, min(l.row-height+1, len(l.rows)-height))
	to := min(len(l.rows), from+height)
	l.rows, l.widths, l.row = l.rows[from:to], l.widths[from:to], l.row-from
	if s.thinkers > 0 {
		sign := clipColumns(s.sign+strings.Repeat(".", s.dots), columns)
		l.rows = slices.Insert(l.rows, 0, s.style(dim, sign))
		l.widths = slices.Insert(l.widths, 0, txt.Width(sign))
		l.row++
	}
	return l
}

func (l *layout) add(text string, width int) {
	l.rows, l.widths = append(l.rows, text), append(l.widths, width)
}

func (l *layout) setCursor() { l.row, l.col = len(l.rows)-1, l.widths[len(l.rows)-1] }

// fit begins another row if the last one has no room.
func (l *layout) fit(width, columnCount int) {
	used := l.widths[len(l.widths)-1]
	if used > 0 && used+width > columnCount {
		l.add("", 0)
	}
}

// clipColumns returns the start of s that fits.
func clipColumns(s string, columnCount int) string {
	used, size := 0, 0
	for g := range txt.Graphemes(s) {
		used += txt.Columns(g)
		if used > columnCount {
			break
		}
		size += len(g)
	}
	return s[:size]
}
