package console

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"unicode/utf8"

	"synthbot/core/txt"
)

// Question is one question to the user of a terminal.
type Question struct {
	Title, About string
	Initial      string   // the proposed answer
	Options      []Option // the possible answers; none: any text
	Hidden       bool     // the answer is not shown
	Check        func(answer string) error
}

// Option is a possible answer.
type Option struct{ Label, Value string }

// Errors of Form.Ask.
var (
	ErrLeft = errors.New("left without an answer")
	ErrBack = errors.New("back to the previous question")
)

// Form asks questions at a terminal, one after the other. An answered question is replaced by one line.
// It is not safe for concurrent use.
type Form struct {
	console      *Console // for its streams and styles
	out          io.Writer
	plain        bool
	chunks       <-chan input
	stop         func()
	decoder      decoder
	keys         []string // pressed but not handled yet
	answers      int      // how many questions are answered
	stopIgnoring func()   // ends ignoreKeys; nil: it does not run
	inputEnded   bool
}

// NewForm returns a form. If plain is set, questions and answers are plain lines, for screen readers and terminals
// that cannot move the cursor. The caller closes the form.
func NewForm(in io.Reader, out io.Writer, plain bool) *Form {
	f := &Form{console: New(Options{In: in, Out: out, Terminal: true, NoColor: plain}), out: out, plain: plain}
	size := chunkSize
	if plain {
		size = 1 // input after the line is left to other readers
	}
	f.chunks, f.stop = readChunks(in, size)
	return f
}

// Close stops reading.
func (f *Form) Close() {
	f.Note("")
	f.stop()
}

// Note shows what the user waits for, until the next question or Close. Keys pressed meanwhile are ignored, except
// that Ctrl-C interrupts the process.
func (f *Form) Note(text string) {
	if f.stopIgnoring != nil {
		f.stopIgnoring()
		f.stopIgnoring = nil
	}
	if text != "" && !f.plain {
		f.ignoreKeys()
	}
	switch {
	case !f.plain:
		_, _ = io.WriteString(f.out, "\r\x1b[J"+f.console.text.styled(dim, text))
	case text != "":
		_, _ = io.WriteString(f.out, text+"\n")
	}
}

// ignoreKeys ignores keys until stopIgnoring is called.
func (f *Form) ignoreKeys() {
	restore, err := setRaw(f.console.opt.In)
	if err != nil {
		return // typed characters stay visible
	}
	over, done := make(chan struct{}), make(chan struct{})
	f.stopIgnoring = func() {
		close(over)
		<-done
		restore()
	}
	go func() {
		defer close(done)
		for {
			select {
			case <-over:
				return
			case chunk := <-f.chunks:
				if strings.Contains(chunk.text, leave) {
					_ = syscall.Kill(syscall.Getpid(), syscall.SIGINT)
				}
				if chunk.err != nil {
					f.inputEnded = true
					return
				}
			}
		}
	}()
}

// Ask returns the answer to a question. It returns ErrLeft if the user leaves, or the input or ctx ends. It returns
// ErrBack, and erases the previous answer, if the user wants to change that one.
func (f *Form) Ask(ctx context.Context, q Question) (string, error) {
	if q.Check == nil {
		q.Check = func(string) error { return nil }
	}
	if f.plain {
		return f.askPlain(ctx, &q)
	}
	f.Note("")
	if f.inputEnded {
		return "", ErrLeft
	}
	restore, err := setRaw(f.console.opt.In)
	if err != nil {
		return "", fmt.Errorf("terminal: %w", err)
	}
	defer restore()
	resized := make(chan os.Signal, 1)
	signal.Notify(resized, syscall.SIGWINCH)
	defer signal.Stop(resized)
	a := newAsking(f, &q)
	_, _ = io.WriteString(f.out, markPastes)
	defer func() { _, _ = io.WriteString(f.out, stopMarks) }()
	for {
		for len(f.keys) > 0 {
			k := f.keys[0]
			f.keys = f.keys[1:]
			answer, done, err := a.press(k)
			if done {
				return answer, f.finishQuestion(a, answer, err)
			}
		}
		if err := a.screen.refresh(); err != nil {
			return "", fmt.Errorf("terminal: %w", err)
		}
		select {
		case <-ctx.Done():
			return "", f.finishQuestion(a, "", ErrLeft)
		case <-resized:
		case chunk := <-f.chunks:
			f.keys = f.decoder.feed(chunk.text)
			if chunk.err != nil {
				return "", f.finishQuestion(a, "", ErrLeft)
			}
		}
	}
}

// finishQuestion replaces a question by a line with its answer, if err is nil. It returns err, or an error of the
// output.
func (f *Form) finishQuestion(a *asking, answer string, err error) error {
	a.screen.close()
	switch {
	case err == nil:
		f.answers++
		line := f.console.text.row(a.Title+" "+a.answerText(answer), f.console.width()-1, dim)
		_, err = io.WriteString(f.out, line.text+"\r\n")
	case errors.Is(err, ErrBack):
		f.answers--
		_, _ = io.WriteString(f.out, move(1, 'A')+"\x1b[J")
	}
	return err
}

type asking struct {
	*Question
	screen *screen
	first  bool   // there is no previous question
	at     int    // the selected option
	fault  string // what is wrong with the last answer
}

func newAsking(f *Form, q *Question) *asking {
	a := &asking{Question: q, first: f.answers == 0, at: q.initialOption()}
	a.screen = newScreen(f.console, "> ", nil)
	a.screen.hidden, a.screen.header = q.Hidden, a.header
	if len(q.Options) == 0 {
		a.screen.edit.insert(q.Initial)
	}
	return a
}

func (a *asking) header(columns, height int) []row {
	r := a.screen.console.text
	rows := append(r.rows(a.Title, columns, bold), r.rows(a.About, columns, 0)...)
	keys := "Enter: next"
	if len(a.Options) > 0 {
		keys = "Arrow keys or the number, then Enter"
	}
	if !a.first {
		keys += " · Shift-Tab: back"
	}
	last := r.rows(keys+" · Ctrl-C: leave", columns, dim)
	if a.fault != "" {
		last = append(r.rows("! "+a.fault, columns, bold), last...)
	}
	room := max(1, height-len(rows)-len(last)-1) // 1 for the edited line
	from := max(0, min(a.at-room/2, len(a.Options)-room))
	for i := from; i < min(from+room, len(a.Options)); i++ {
		mark, s := "  ", style(0)
		if i == a.at {
			mark, s = "> ", bold
		}
		rows = append(rows, r.row(fmt.Sprintf("%s%d. %s", mark, i+1, a.Options[i].Label), columns, s))
	}
	return append(rows, last...)
}

// press handles one key press. done is true if the question is answered or left.
func (a *asking) press(key string) (answer string, done bool, err error) {
	typed := a.screen.edit
	a.fault = ""
	switch {
	case key == backTab && !a.first:
		return "", true, ErrBack
	case typed.text == "" && (key == leave || key == deleteOrEnd):
		return "", true, ErrLeft
	case key == enter:
		answer, a.fault = a.parse(typed.text, a.at)
		return answer, a.fault == "", nil
	case len(a.Options) > 0 && key == up:
		typed.text, typed.pos, a.at = "", 0, max(a.at-1, 0)
	case len(a.Options) > 0 && key == down:
		typed.text, typed.pos, a.at = "", 0, min(a.at+1, len(a.Options)-1)
	default:
		typed.press(key)
		a.at = max(0, a.findOption(typed.text, a.at))
	}
	return "", false, nil
}

// parse returns the answer that a text means. fault says what is wrong with it; "" if nothing is. usual is the index
// of the option that an empty text means.
func (q *Question) parse(text string, usual int) (answer, fault string) {
	answer = strings.TrimSpace(text)
	if len(q.Options) > 0 {
		at := q.findOption(answer, usual)
		if at < 0 {
			return "", fmt.Sprintf("choose 1 to %d", len(q.Options))
		}
		answer = q.Options[at].Value
	}
	err := q.Check(answer)
	if err != nil {
		return "", err.Error()
	}
	return answer, ""
}

func (q *Question) initialOption() int {
	return max(0, slices.IndexFunc(q.Options, func(o Option) bool { return o.Value == q.Initial }))
}

// findOption returns the index of the option that a number or a part of its label means. It returns usual if nothing
// is typed, and -1 if no option matches.
func (q *Question) findOption(typed string, usual int) int {
	typed = txt.Fold(strings.TrimSpace(typed))
	if typed == "" {
		return usual
	}
	n, err := strconv.Atoi(typed)
	if err == nil {
		if n < 1 || n > len(q.Options) {
			return -1
		}
		return n - 1
	}
	return slices.IndexFunc(q.Options, func(o Option) bool { return strings.Contains(txt.Fold(o.Label), typed) })
}

func (q *Question) answerText(answer string) string {
	switch {
	case answer == "":
		return "–"
	case q.Hidden:
		return "(given)"
	}
	i := slices.IndexFunc(q.Options, func(o Option) bool { return o.Value == answer })
	if i >= 0 {
		return q.Options[i].Label
	}
	return txt.ClipLine(answer, 100)
}

// askPlain asks without moving the cursor: a few lines with the question, then one with the answer.
func (f *Form) askPlain(ctx context.Context, q *Question) (string, error) {
	text := f.plainText(q)
	for {
		_, _ = io.WriteString(f.out, text)
		line, err := f.readPlain(ctx, q.Hidden)
		switch {
		case err != nil:
			return "", err
		case line == "<" && f.answers > 0:
			f.answers--
			return "", ErrBack
		case line == "" && len(q.Options) == 0:
			line = q.Initial
		}
		answer, fault := q.parse(line, q.initialOption())
		if fault == "" {
			f.answers++
			return answer, nil
		}
		text = "! " + fault + "\n"
	}
}

func (f *Form) plainText(q *Question) string {
	text, initial := q.Title+"\n", q.Initial
	if q.About != "" {
		text += q.About + "\n"
	}
	for i, o := range q.Options {
		text += fmt.Sprintf("%d. %s\n", i+1, o.Label)
		initial = strconv.Itoa(q.initialOption() + 1)
	}
	if f.answers > 0 {
		text += "Type < to go back.\n"
	}
	if initial != "" {
		text += "Press Enter for: " + initial + "\n"
	}
	return text
}

// readPlain shows a prompt and reads a line. A terminal does not show a hidden one.
func (f *Form) readPlain(ctx context.Context, hidden bool) (string, error) {
	if hidden && IsTerminal(f.console.opt.In) {
		restore, err := setRaw(f.console.opt.In)
		if err != nil {
			return "", fmt.Errorf("terminal: %w", err)
		}
		defer func() {
			restore()
			_, _ = io.WriteString(f.out, "\n")
		}()
	}
	_, _ = io.WriteString(f.out, "> ")
	line := ""
	for {
		select {
		case <-ctx.Done():
			return "", ErrLeft
		case chunk := <-f.chunks:
			line += chunk.text
			if hidden {
				line = backspaced(line)
			}
			text, _, ended := strings.Cut(strings.ReplaceAll(line, "\r", "\n"), "\n")
			if ended {
				return strings.TrimSpace(clean(text)), nil
			}
			if chunk.err != nil || strings.Contains(text, leave) || len(line) > maxPaste {
				return "", ErrLeft
			}
		}
	}
}

// backspaced applies a Backspace at the end of a line. Otherwise the terminal does that, but not in raw mode.
func backspaced(line string) string {
	before := strings.TrimRight(line, "\x7f\b")
	if len(before) == len(line) {
		return line
	}
	_, size := utf8.DecodeLastRuneInString(before)
	return before[:len(before)-size]
}
