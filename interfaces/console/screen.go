package console

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"synthbot/core/txt"
)

// screen draws the edited line below the conversation, and header rows between them, such as "bot is thinking...". It
// wraps lines itself, so that it always knows where the cursor is. Safe for concurrent use.
type screen struct {
	console  *Console
	prompt   string
	hidden   bool // typed characters are shown as *
	header   func(columns, height int) []row
	complete func(line string) []string // Editing.Complete; nil: there are no completions

	mu       sync.Mutex
	edit     *editor
	thinkers int // running calls of think
	dots     int // of the thinking animation
	closed   bool
	shown    layout // on the terminal; no rows: nothing
}

type row struct {
	text  string // with styles
	width int
}

// newScreen returns a screen whose header shows when the bot is thinking.
func newScreen(c *Console, prompt string, history []string) *screen {
	s := &screen{console: c, prompt: prompt, edit: newEditor(history)}
	s.header = func(columns, _ int) []row {
		if s.thinkers == 0 {
			return nil
		}
		return []row{c.text.row(c.opt.PersonaName+" is thinking"+strings.Repeat(".", s.dots), columns, dim)}
	}
	return s
}

func (s *screen) print(text string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.redraw(strings.ReplaceAll(text, "\n", "\r\n") + "\r\n")
}

// redraw replaces the header and the edited line by a text, and draws them again below it. s.mu is held.
func (s *screen) redraw(text string) error {
	if s.closed {
		return nil
	}
	erase := s.erase()
	l := s.layout(true)
	s.shown = l
	line := l.text() + "\r" + move(len(l.rows)-1-l.row, 'A') + move(l.col, 'C')
	_, err := io.WriteString(s.console.opt.Out, erase+text+line)
	return err
}

// refresh draws the header and the line again after they or the terminal changed.
func (s *screen) refresh() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.redraw("")
}

// press handles key presses and draws the result. It returns the lines that were entered, which
// stay on the terminal, and whether the user leaves.
func (s *screen) press(keys []string) (lines []string, left bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	above := ""
	for _, k := range keys {
		switch {
		case s.edit.text == "" && (k == leave || k == deleteOrEnd):
			return lines, true, s.redraw(above)
		case k == redraw:
			above, s.shown = "\x1b[H\x1b[2J", layout{}
		case k == enter && strings.TrimSpace(s.edit.text) != "":
			above += s.layout(false).text() + "\r\n"
			lines = append(lines, s.edit.take())
		case k == tab:
			above += s.completeWord()
		case k != enter:
			s.edit.press(k)
		}
	}
	if len(keys) == 0 {
		return nil, false, nil
	}
	return lines, false, s.redraw(above)
}

func commonPrefix(words []string) string {
	common := words[0]
	for _, word := range words {
		for !strings.HasPrefix(word, common) {
			_, size := utf8.DecodeLastRuneInString(common)
			common = common[:len(common)-size]
		}
	}
	return common
}

// completions calls complete while s.mu is not held, because complete may write to a log that the screen shows.
func (s *screen) completions(line string) []string {
	s.mu.Unlock()
	defer s.mu.Lock()
	return s.complete(line)
}

// completeWord extends the word before the cursor, in a line with a chat command, by what all completions have
// in common. If that adds nothing, it returns rows that list the completions. s.mu is held.
func (s *screen) completeWord() (rows string) {
	line := s.edit.text[:s.edit.pos]
	if s.complete == nil || !strings.HasPrefix(line, "/") || strings.Contains(line, "\n") {
		return ""
	}
	words := s.completions(line)
	if len(words) == 0 {
		return ""
	}
	last := line[strings.LastIndexByte(line, ' ')+1:]
	common := commonPrefix(words)
	if len(words) == 1 {
		common += " "
	}
	if len(common) > len(last) && strings.HasPrefix(common, last) {
		s.edit.insert(common[len(last):])
		return ""
	}
	const maxWords = 100
	if len(words) > maxWords {
		words = append(slices.Clone(words[:maxWords]), "…")
	}
	return layout{rows: s.console.text.rows(strings.Join(words, "  "), s.console.width(), dim)}.text() + "\r\n"
}

// close erases the header and the line. Nothing is drawn afterwards.
func (s *screen) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, _ = io.WriteString(s.console.opt.Out, s.erase())
	s.closed = true
}

// think shows the thinking animation until ctx ends.
func (s *screen) think(ctx context.Context) {
	s.count(1)
	defer s.count(-1)
	tick := time.NewTicker(250 * time.Millisecond)
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

// count adds n to the number of thinkers, and draws the next picture of the animation.
func (s *screen) count(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.thinkers += n
	s.dots = (s.dots + 1) % 4
	_ = s.redraw("")
}

// erase returns a control sequence that erases the shown rows. It allows for rows that the
// terminal wrapped when it became narrower.
func (s *screen) erase() string {
	l := s.shown
	if s.closed || len(l.rows) == 0 {
		return ""
	}
	s.shown = layout{}
	columns := s.console.width()
	up := l.col / columns
	for _, r := range l.rows[:l.row] {
		up += max(1, (r.width+columns-1)/columns)
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
	rows     []row
	row, col int // of the cursor
}

func (l layout) text() string {
	texts := make([]string, len(l.rows))
	for i, r := range l.rows {
		texts[i] = r.text
	}
	return strings.Join(texts, "\r\n")
}

// layout breaks the prompt and the line into rows. If editing is set, the header rows come first, and a line that is
// higher than the terminal is cropped to the rows around the cursor.
func (s *screen) layout(editing bool) (l layout) {
	columns, height := s.console.size()
	cursor, at := -1, 0
	text := slices.Grow(cells(s.prompt, promptStyle), len(s.edit.text)+1)
	for g := range txt.Graphemes(s.edit.text) {
		if at == s.edit.pos {
			cursor = len(text)
		}
		at += len(g)
		c := cell{text: g, width: txt.Columns(g)}
		if s.hidden && g != "\n" {
			c.text, c.width = "*", 1
		}
		text = append(text, c)
	}
	if cursor < 0 { // at the end; on the next row if the last one is full
		cursor = len(text)
		text = append(text, cell{width: 1})
	}
	start := 0
	for _, line := range wrap(text, columns, false) {
		if cursor >= start {
			l.row, l.col = len(l.rows), lineWidth(text[start:min(cursor, start+len(line))])
		}
		l.rows = append(l.rows, row{s.console.text.line(line), lineWidth(line)})
		start += len(line)
		if start < len(text) && text[start].text == "\n" {
			start++
		}
	}
	if !editing {
		return l
	}
	header := s.header(columns, height)
	height = max(1, height-1-len(header))
	from := max(0, min(l.row-height+1, len(l.rows)-height))
	to := min(len(l.rows), from+height)
	l.rows, l.row = append(header, l.rows[from:to]...), len(header)+l.row-from
	return l
}
