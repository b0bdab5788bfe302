package engine

import (
	"bytes"
	"strings"
	"unicode/utf8"

	"synthbot/core"
	"synthbot/core/llm"
)

// Reveal finds, in a plan that is still being written, the text of the message
// that it will send to the place it answers: the plan's `response`, or the text
// of the interface's message action once it is certain that it goes there. It
// shows one message, the first of the plan.
//
// What it shows only grows, unless the plan turns out to be none, or the step to
// be one that may not run; then it shows nothing again. When a plan is complete
// and well-formed, the text is exactly that of a message of it, or empty.
//
// The zero Reveal is not usable; it is for one goroutine.
type Reveal struct {
	place  string
	action string // folded

	in    []byte // what came, from the start of the JSON that is tried
	pos   int    // read up to here
	tries int
	until string // the end of a block of reasoning that is skipped
	p     parser

	shown  string // who shows: "" nobody, "response", "step"
	text   strings.Builder
	closed bool // the text is complete
}

// NewReveal watches for messages to place, which its interface sends by action.
func NewReveal(place core.Path, action string) *Reveal {
	return &Reveal{place: place.String(), action: foldName(action)}
}

// Limits of what is watched.
const (
	maxReveal = 256 << 10 // bytes; a longer answer is not shown while it grows
	maxTries  = 16        // beginnings that turned out to be no JSON
	maxLevels = 32
)

// Text is what may be shown so far. It never ends inside of a character, and holds
// nothing of what the model thinks.
func (r *Reveal) Text() string {
	if r.closed {
		return llm.Unthink(r.text.String())
	}
	return llm.UnthinkGrowing(r.whole())
}

// whole is the text without a character that has only begun.
func (r *Reveal) whole() string {
	s := r.text.String()
	for i := 1; i < utf8.UTFMax && i <= len(s); i++ {
		tail := s[len(s)-i:]
		if utf8.RuneStart(tail[0]) {
			if !utf8.FullRuneInString(tail) {
				return s[:len(s)-i]
			}
			break
		}
	}
	return s
}

// Write takes the next piece of the answer in.
func (r *Reveal) Write(piece string) {
	if len(r.in)+len(piece) > maxReveal {
		r.hide()
		r.tries = maxTries
	}
	if r.tries >= maxTries {
		return
	}
	r.in = append(r.in, piece...)
	for r.tries < maxTries {
		if !r.p.begun && !r.seek() {
			return
		}
		for r.pos < len(r.in) && !r.p.ended && !r.p.broken {
			r.p.step(r.in[r.pos], r)
			r.pos++
		}
		if !r.p.broken {
			return
		}
		r.retry()
	}
}

// retry takes what looked like a plan for prose, and looks for a plan behind
// its first character.
func (r *Reveal) retry() {
	r.hide()
	r.tries++
	r.in = r.in[r.p.start+1:]
	r.pos, r.p = 0, parser{}
}

func (r *Reveal) hide() {
	r.shown, r.closed = "", false
	r.text.Reset()
}

// seek finds the start of a plan, behind reasoning and prose; false: more must
// come. It looks at each byte a bounded number of times.
func (r *Reveal) seek() bool {
	for r.pos < len(r.in) {
		if r.until != "" && !r.skip() {
			return false
		}
		rest := r.in[r.pos:]
		if len(rest) == 0 {
			return false
		}
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
				r.p = parser{begun: true, start: r.pos}
				return true
			}
		}
		r.pos++
	}
	return false
}

// skip goes behind the end of a block of reasoning; false: it has not come.
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

// begin reports whether a message's text, of which nothing has come yet, may be shown
// as it grows.
func (r *Reveal) begin(who string) bool {
	if r.shown != "" && (r.shown != who || who == "step") {
		return false
	}
	r.hide()
	r.shown = who
	return true
}

// settle shows a step's text when the step is complete, or hides it when it may
// not run.
func (r *Reveal) settle(s *stepSeen) {
	runs := s.sends(r) && s.pathKnown(r, true) && !s.conditional
	switch {
	case s.live && !runs:
		r.hide()
	case s.live:
		r.closed = true
	case runs && s.text != "" && r.begin("step"):
		r.text.WriteString(s.text)
		r.closed = true
	}
}

// foldName makes names of actions comparable, as the catalogue does.
func foldName(name string) string {
	return strings.NewReplacer("_", "", "-", "", ".", "", " ", "").Replace(strings.ToLower(name))
}

// stepSeen is what is known of the step that is being read.
type stepSeen struct {
	kind        string
	path        string
	hasPath     bool
	elsewhere   bool // it names a recipient of its own
	conditional bool // it may not run
	text        string
	fromText    bool // text came under its first name
	live        bool // the text is shown as it grows
}

// sends reports whether the step is the interface's message action.
func (s *stepSeen) sends(r *Reveal) bool {
	kind := foldName(s.kind)
	return kind != "" && (kind == r.action || kind == "message")
}

// pathKnown reports whether the message goes to the place that is watched: it
// says so, or, when the step is complete, it says nothing else.
func (s *stepSeen) pathKnown(r *Reveal, complete bool) bool {
	if s.elsewhere {
		return false
	}
	return s.hasPath && s.path == r.place || complete && !s.hasPath
}
