package engine

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"synthbot/core"
	"synthbot/core/llm"
)

// Reveal extracts a message from a plan that the model is still writing: the plan's `response`, or the text of the
// interface's message action as soon as it is certain that it goes to the place that the plan answers. It shows the
// first such message of the plan.
//
// The text only grows, until the plan turns out to be invalid or the step may not run; then it is empty again. When a
// plan is complete and well-formed, the text is that of one of its messages, or empty.
//
// The zero Reveal is not usable. Not safe for concurrent use.
type Reveal struct {
	place  string
	action string // folded

	in    []byte // the input, from the start of the JSON that is tried
	pos   int    // index in in: read up to here
	tries int
	until string // the mark that ends the reasoning being skipped

	start  int     // index in in: where the plan begins
	levels []level // open objects and lists; none: no plan has begun, or it has ended
	ended  bool

	inString bool
	live     bool // the current string is the shown text
	word     strings.Builder

	shown  string // the source of the text: "", "response" or "step"
	text   string
	closed bool // the text is complete
}

// level is an open object or list.
type level struct {
	role role
	key  string // folded
	want string // which tokens may come next, one of the constants
	next string // which tokens may come after a value
	step *step  // the step that contains it
}

// role is what an object or a list means in a plan.
type role uint8

const (
	roleOther role = iota
	roleRoot       // the plan, or a single step without a plan
	roleSteps
	roleStep
	rolePayload
)

// Values of level.want and level.next: first bytes of the allowed tokens; 0 for a number, true, false and null.
const (
	wantFirstKey  = `"}`
	wantKey       = `"`
	wantColon     = `:`
	wantValue     = `"{[0`
	wantFirstItem = `"{[0]`
	wantNextKey   = `,}`
	wantNextItem  = `,]`
)

func (l *level) wantsKey() bool { return l.want == wantFirstKey || l.want == wantKey }

// step is what has been read of a step.
type step struct {
	kind        string
	path        string
	hasPath     bool
	elsewhere   bool // it names a recipient
	conditional bool // it may not run
	text        string
	fromText    bool // text came from the key "text", which wins over "message"
	live        bool // the text is shown as it grows
}

// NewReveal makes a Reveal for messages to place. action is the message action of its interface.
func NewReveal(place core.Path, action string) *Reveal {
	return &Reveal{place: place.String(), action: foldName(action)}
}

// Limits of what a Reveal reads.
const (
	maxReveal  = 256 << 10 // bytes; a longer answer is not shown while it grows
	maxTries   = 16        // failed attempts to find a plan
	maxLevels  = 32
	maxLiteral = 64
)

// Text returns what may be shown so far. It contains only complete characters and none of the model's reasoning.
func (r *Reveal) Text() string {
	text := r.text
	if r.live {
		text = r.word.String()
	}
	if r.closed {
		return llm.Unthink(text)
	}
	incomplete := func(c rune) bool { return c == utf8.RuneError }
	return llm.UnthinkGrowing(strings.TrimRightFunc(text, incomplete))
}

// progress is the result of reading a token.
type progress int

const (
	progressOn     progress = iota
	progressWait            // the token is incomplete
	progressBroken          // the input is not JSON
)

// Write reads the next piece of the answer.
func (r *Reveal) Write(piece string) {
	if len(r.in)+len(piece) > maxReveal {
		r.hide()
		r.tries = maxTries
	}
	if r.tries >= maxTries {
		return
	}
	r.in = append(r.in, piece...)
	for r.tries < maxTries && !r.ended && (len(r.levels) > 0 || r.seek()) {
		read := r.token
		if r.inString {
			read = r.string
		}
		switch read() {
		case progressWait:
			return
		case progressBroken: // prose: search on after its first character
			r.hide()
			r.tries++
			r.in = r.in[r.start+1:]
			r.pos, r.levels, r.inString = 0, nil, false
		}
	}
}

func (r *Reveal) hide() { r.shown, r.text, r.live, r.closed = "", "", false, false }

// seek finds the start of a plan, after reasoning and prose. It returns false if there is none
// yet. It reads each byte a bounded number of times.
func (r *Reveal) seek() bool {
	for r.pos < len(r.in) {
		if r.until != "" && !r.skip() || r.pos == len(r.in) {
			return false
		}
		rest := r.in[r.pos:]
		end, wait := llm.ThoughtBegins(string(rest[:min(len(rest), 32)]))
		switch {
		case wait:
			return false
		case end != "":
			r.until = end
		case rest[0] == '{' || rest[0] == '[':
			next := bytes.TrimLeft(rest[1:min(len(rest), 64)], " \t\r\n")
			if len(next) == 0 && len(rest) < 64 {
				return false
			}
			if len(next) > 0 && (rest[0] == '{' && next[0] == '"' || rest[0] == '[' && next[0] == '{') {
				r.start = r.pos
				r.pos++
				r.open(rest[0], &level{step: new(step)})
				return true
			}
		}
		r.pos++
	}
	return false
}

// skip skips to the end of a block of reasoning. It returns false if that has not come yet.
func (r *Reveal) skip() bool {
	i := bytes.Index(bytes.ToLower(r.in[r.pos:]), []byte(r.until))
	if i < 0 {
		r.pos = max(r.pos, len(r.in)-len(r.until)+1)
		return false
	}
	r.pos += i + len(r.until)
	r.until = ""
	return true
}

// token reads a token, or the opening quote of a string. It accepts only JSON, except that models may write raw
// control characters in strings.
func (r *Reveal) token() progress {
	r.pos = len(r.in) - len(bytes.TrimLeft(r.in[r.pos:], " \t\r\n"))
	if r.pos == len(r.in) {
		return progressWait
	}
	top := &r.levels[len(r.levels)-1]
	kind := r.in[r.pos]
	if strings.IndexByte(`{}[],:"`, kind) < 0 {
		kind = '0'
	}
	opens := kind == '{' || kind == '['
	if strings.IndexByte(top.want, kind) < 0 || opens && len(r.levels) >= maxLevels {
		return progressBroken
	}
	if kind == '0' {
		return r.literal(top)
	}
	r.pos++
	switch kind {
	case '{', '[':
		r.open(kind, top)
	case '}', ']':
		r.close()
	case ':', ',':
		top.want = wantValue
		if kind == ',' && top.next == wantNextKey {
			top.want = wantKey
		}
	case '"':
		r.inString = true
		r.word.Reset()
		r.live = !top.wantsKey() && r.shows(top)
	}
	return progressOn
}

func (r *Reveal) literal(top *level) progress {
	rest := r.in[r.pos:]
	end := bytes.IndexAny(rest, " \t\r\n,]}")
	switch {
	case end > maxLiteral || end < 0 && len(rest) > maxLiteral:
		return progressBroken
	case end < 0:
		return progressWait
	}
	r.pos += end
	top.want = top.next
	if !json.Valid(rest[:end]) {
		return progressBroken
	}
	if string(rest[:end]) == "true" {
		top.mark()
	}
	return progressOn
}

// string reads the rest of a string.
func (r *Reveal) string() progress {
	for r.pos < len(r.in) {
		switch c := r.in[r.pos]; c {
		case '"':
			r.pos++
			r.endString()
			return progressOn
		case '\\':
			decoded, size := unescape(r.in[r.pos:])
			if size == 0 {
				return progressWait
			}
			if size < 0 {
				return progressBroken
			}
			r.word.WriteRune(decoded)
			r.pos += size
		default:
			r.word.WriteByte(c)
			r.pos++
		}
	}
	return progressWait
}

// unescape decodes the escape sequence that s begins with. size is 0 if it is incomplete and -1 if it is invalid.
func unescape(s []byte) (decoded rune, size int) {
	if len(s) < 2 {
		return 0, 0
	}
	i := strings.IndexByte(`"\/bfnrt`, s[1])
	switch {
	case i >= 0:
		return rune("\"\\/\b\f\n\r\t"[i]), 2
	case s[1] != 'u':
		return 0, -1
	case len(s) < 6:
		return 0, 0
	}
	unit, err := strconv.ParseUint(string(s[2:6]), 16, 16)
	if err != nil {
		return 0, -1
	}
	first, second := rune(unit), s[6:]
	if !utf16.IsSurrogate(first) || first >= 0xDC00 {
		return first, 6
	}
	if len(second) < 6 && strings.HasPrefix(`\u`, string(second[:min(len(second), 2)])) {
		return 0, 0
	}
	if bytes.HasPrefix(second, []byte(`\u`)) {
		unit, _ = strconv.ParseUint(string(second[2:6]), 16, 16)
		decoded = utf16.DecodeRune(first, rune(unit))
		if decoded != utf8.RuneError {
			return decoded, 12
		}
	}
	return utf8.RuneError, 6
}

// open begins an object or a list that is a value of top.
func (r *Reveal) open(bracket byte, top *level) {
	top.want = top.next
	list := bracket == '['
	next := level{want: wantFirstKey, next: wantNextKey, step: top.step}
	if list {
		next.want, next.next = wantFirstItem, wantNextItem
	}
	ofStep := top.role == roleStep || top.role == roleRoot
	switch {
	case len(r.levels) == 0 && list, top.role == roleRoot && list && top.key == "actions":
		next.role = roleSteps
	case len(r.levels) == 0:
		next.role = roleRoot
	case top.role == roleSteps && !list:
		next.role, next.step = roleStep, new(step)
	case ofStep && !list && slices.Contains([]string{"payload", "params", "actioninput", "arguments"}, top.key):
		next.role = rolePayload
	case ofStep:
		top.mark()
	}
	r.levels = append(r.levels, next)
}

// mark marks the step as conditional if the current key of l decides whether it runs.
func (l *level) mark() {
	ofStep := l.role == roleStep || l.role == roleRoot
	if ofStep && (l.key == "conditions" || l.key == "requiresconfirmation") {
		l.step.conditional = true
	}
}

// close ends an object or a list. At the end of a step it shows the step's text, or hides it if the step may not run.
func (r *Reveal) close() {
	top := r.levels[len(r.levels)-1]
	r.levels = r.levels[:len(r.levels)-1]
	r.ended = len(r.levels) == 0
	if top.role != roleStep && top.role != roleRoot {
		return
	}
	s := top.step
	runs := r.sends(s) && !s.elsewhere && (!s.hasPath || s.path == r.place) && !s.conditional
	switch {
	case s.live && !runs:
		r.hide()
	case s.live:
		r.closed = true
	case runs && s.text != "" && r.begin("step"):
		r.text, r.closed = s.text, true
	}
}

// sends reports whether a step is the interface's message action.
func (r *Reveal) sends(s *step) bool {
	kind := foldName(s.kind)
	return kind != "" && (kind == r.action || kind == "message")
}

// begin starts to show the text of a new message. It returns false if another message is already shown.
func (r *Reveal) begin(who string) bool {
	if r.shown != "" && (r.shown != who || who == "step") {
		return false
	}
	r.hide()
	r.shown = who
	return true
}

// shows reports whether the string that begins here is shown while it grows: the text of a step
// only if the step is known to be a message to this place.
func (r *Reveal) shows(top *level) bool {
	switch {
	case top.role == roleRoot:
		return top.key == "response" && r.begin("response")
	case top.role != rolePayload || top.key != "text":
		return false
	}
	s := top.step
	here := !s.elsewhere && s.hasPath && s.path == r.place
	if here && r.sends(s) && !s.conditional && r.begin("step") {
		s.live = true
		return true
	}
	return false
}

// endString stores a complete key or value.
func (r *Reveal) endString() {
	r.inString = false
	top, word := &r.levels[len(r.levels)-1], r.word.String()
	if top.wantsKey() {
		top.key, top.want = foldName(word), wantColon
		isText := top.role == rolePayload && (top.key == "text" || top.key == "message")
		if isText && word != top.key {
			top.key = "" // actions do not know other spellings
		}
		return
	}
	top.want = top.next
	if r.live {
		r.text, r.live = word, false
		r.closed = top.role == roleRoot
		if r.closed && word == "" {
			r.hide() // an empty response is not a message
		}
	}
	top.mark()
	top.set(word)
}

func (l *level) set(word string) {
	s, ofStep := l.step, l.role == roleStep || l.role == roleRoot
	switch key := l.key; {
	case ofStep && (key == "type" || key == "action" || key == "name"):
		s.kind = word
	case ofStep && key == "target":
		s.elsewhere = s.elsewhere || word != ""
	case l.role != rolePayload:
	case key == "text":
		s.text, s.fromText = word, true
	case key == "message":
		if !s.fromText {
			s.text = word
		}
	case key == "interfacepath":
		s.path, s.hasPath = word, true
	case key == "recipient":
		s.elsewhere = true
	}
}

// foldName normalises an action's name like the catalogue does.
func foldName(name string) string { return separators.Replace(strings.ToLower(name)) }

var separators = strings.NewReplacer("_", "", "-", "", ".", "", " ", "")
