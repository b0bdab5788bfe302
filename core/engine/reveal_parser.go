package engine

import (
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// role is what an object or array means in a plan.
type role uint8

const (
	roleOther role = iota
	roleRoot       // the plan; or a bare step
	roleSteps
	roleStep
	rolePayload
)

// level is one object or array that is open.
type level struct {
	role  role
	list  bool
	key   string
	state state
}

// state is what may come next inside of a level.
type state uint8

const (
	wantKey   state = iota // a key, or the end of an empty object
	wantNext               // a key, after a comma
	wantColon              //
	wantValue              //
	wantItem               // an item of a list, or its end
	wantComma              // a comma, or the end
)

// parser reads JSON byte by byte. It accepts nothing that is not JSON but for
// raw control characters inside of strings, which models write.
type parser struct {
	begun, ended, broken bool
	start                int

	levels  []level
	current stepSeen // the step that is open
	root    stepSeen // the root, where it is a bare step

	inString bool
	isKey    bool
	word     []byte // the string, number or literal that is being read
	shown    bool   // the string is shown as it grows
	escape   int    // 0 none; 1 after '\'; 2… digits of \u
	unit     rune
	high     rune // the first half of a pair
	literal  bool
}

func (p *parser) step(c byte, r *Reveal) {
	switch {
	case p.inString:
		p.stringByte(c, r)
	case p.literal && !strings.ContainsRune(" \t\r\n,]}", rune(c)):
		p.word = append(p.word, c)
		p.broken = len(p.word) > 64
	default:
		if p.literal && !p.endLiteral() {
			p.broken = true
			return
		}
		if c != ' ' && c != '\t' && c != '\r' && c != '\n' {
			p.token(c, r)
		}
	}
}

func (p *parser) top() *level {
	if len(p.levels) == 0 {
		return nil
	}
	return &p.levels[len(p.levels)-1]
}

// token takes a byte between strings and literals.
func (p *parser) token(c byte, r *Reveal) {
	top := p.top()
	switch {
	case c == '{' || c == '[':
		p.open(c == '[', top)
	case top == nil:
		p.broken = true
	case c == '}' && !top.list && (top.state == wantKey || top.state == wantComma),
		c == ']' && top.list && (top.state == wantItem || top.state == wantComma):
		p.close(r)
	case c == ',' && top.state == wantComma:
		top.state = wantNext
		if top.list {
			top.state = wantValue
		}
	case c == ':' && top.state == wantColon:
		top.state = wantValue
	case c == '"' && (top.state == wantKey || top.state == wantNext):
		p.beginString(true, r)
	case c == '"' && (top.state == wantValue || top.state == wantItem):
		p.beginString(false, r)
	case top.state == wantValue || top.state == wantItem:
		p.literal, p.word = true, append(p.word[:0], c)
		top.state = wantComma
	default:
		p.broken = true
	}
}

func (p *parser) endLiteral() bool {
	p.literal = false
	top := p.top()
	switch word := string(p.word); word {
	case "true":
		if top.role == roleStep || top.role == roleRoot {
			p.mark(top, foldName(top.key))
		}
		return true
	case "false", "null":
		return true
	default:
		return word[0] == '-' || word[0] >= '0' && word[0] <= '9'
	}
}

func (p *parser) open(list bool, top *level) {
	next := level{list: list, state: wantKey}
	if list {
		next.state = wantItem
	}
	switch {
	case top == nil:
		next.role = roleRoot
		if list {
			next.role = roleSteps
		}
	case top.state != wantValue && top.state != wantItem || len(p.levels) >= maxLevels:
		p.broken = true
		return
	default:
		next.role = p.roleIn(top, list)
		top.state = wantComma
	}
	if next.role == roleStep {
		p.current = stepSeen{}
	}
	p.levels = append(p.levels, next)
}

// roleIn is the role of a value that begins inside of top.
func (p *parser) roleIn(top *level, list bool) role {
	switch key := foldName(top.key); {
	case top.role == roleRoot && list && key == "actions":
		return roleSteps
	case top.role == roleSteps && !list:
		return roleStep
	case (top.role == roleStep || top.role == roleRoot) && !list && isPayload(key):
		return rolePayload
	case top.role == roleStep || top.role == roleRoot:
		p.mark(top, key)
	}
	return roleOther
}

func isPayload(key string) bool {
	return key == "payload" || key == "params" || key == "actioninput" || key == "arguments"
}

// mark notes a key of a step that decides whether the step runs.
func (p *parser) mark(top *level, key string) {
	if key == "conditions" || key == "requiresconfirmation" {
		p.seen(top).conditional = true
	}
}

// seen is the step that a level belongs to.
func (p *parser) seen(top *level) *stepSeen {
	for _, l := range p.levels {
		if l.role == roleStep {
			return &p.current
		}
	}
	return &p.root
}

func (p *parser) close(r *Reveal) {
	top := p.top()
	p.levels = p.levels[:len(p.levels)-1]
	switch {
	case top.role == roleStep:
		r.settle(&p.current)
	case top.role == roleRoot:
		r.settle(&p.root)
	}
	p.ended = len(p.levels) == 0
}

func (p *parser) beginString(key bool, r *Reveal) {
	top := p.top()
	p.inString, p.isKey, p.word = true, key, p.word[:0]
	p.shown = !key && p.showsString(top, r)
}

// showsString reports whether the string that begins here is to be shown as it grows.
func (p *parser) showsString(top *level, r *Reveal) bool {
	key := foldName(top.key)
	switch top.role {
	case roleRoot:
		return key == "response" && r.begin("response")
	case rolePayload:
		s := p.seen(top)
		if key == "text" && s.sends(r) && s.pathKnown(r, false) && !s.conditional && r.begin("step") {
			s.live = true
			return true
		}
	}
	return false
}

func (p *parser) stringByte(c byte, r *Reveal) {
	switch {
	case p.escape == 1:
		p.escaped(c, r)
	case p.escape > 1:
		p.hexDigit(c, r)
	case c == '"':
		p.writeLoneSurrogate(r)
		p.endString(r)
	case c == '\\':
		p.escape = 1
	default:
		p.writeLoneSurrogate(r)
		p.put(c, r)
	}
}

func (p *parser) put(c byte, r *Reveal) {
	if p.shown {
		r.text.WriteByte(c)
	}
	p.word = append(p.word, c)
}

func (p *parser) putRune(c rune, r *Reveal) {
	for _, b := range utf8.AppendRune(nil, c) {
		p.put(b, r)
	}
}

// writeLoneSurrogate writes the first half of a pair that got no second.
func (p *parser) writeLoneSurrogate(r *Reveal) {
	if p.high != 0 {
		p.high = 0
		p.putRune(utf8.RuneError, r)
	}
}

func (p *parser) escaped(c byte, r *Reveal) {
	p.escape = 0
	if c == 'u' {
		p.escape, p.unit = 2, 0
		return
	}
	p.writeLoneSurrogate(r)
	const from, to = `"\/bfnrt`, "\"\\/\b\f\n\r\t"
	i := strings.IndexByte(from, c)
	if i < 0 {
		p.broken = true
		return
	}
	p.put(to[i], r)
}

func (p *parser) hexDigit(c byte, r *Reveal) {
	i := strings.IndexByte("0123456789abcdef", c|0x20)
	if c < '0' || i < 0 {
		p.broken = true
		return
	}
	p.unit = p.unit<<4 | rune(i)
	if p.escape++; p.escape < 6 {
		return
	}
	p.escape = 0
	if p.high != 0 {
		pair := utf16.DecodeRune(p.high, p.unit)
		if pair != utf8.RuneError {
			p.high = 0
			p.putRune(pair, r)
			return
		}
		p.writeLoneSurrogate(r)
	}
	if p.unit >= 0xD800 && p.unit < 0xDC00 {
		p.high = p.unit
		return
	}
	p.putRune(p.unit, r)
}

// endString puts a key or a value where it belongs.
func (p *parser) endString(r *Reveal) {
	p.inString = false
	top := p.top()
	if p.isKey {
		top.key, top.state = string(p.word), wantColon
		return
	}
	top.state = wantComma
	key := foldName(top.key)
	switch top.role {
	case roleStep, roleRoot:
		p.stepValue(top, key, r)
	case rolePayload:
		p.payloadValue(p.seen(top), key)
	}
}

func (p *parser) stepValue(top *level, key string, r *Reveal) {
	s := p.seen(top)
	switch key {
	case "type", "action", "name":
		s.kind = string(p.word)
	case "target":
		s.elsewhere = s.elsewhere || len(p.word) > 0
	case "response":
		if p.shown {
			r.closed = true
			if len(p.word) == 0 {
				r.hide() // it is not a message
			}
		}
	}
	p.mark(top, key)
}

func (p *parser) payloadValue(s *stepSeen, key string) {
	switch key {
	case "text":
		s.text, s.fromText = string(p.word), true
	case "message":
		if !s.fromText {
			s.text = string(p.word)
		}
	case "interfacepath":
		s.path, s.hasPath = string(p.word), true
	case "recipient":
		s.elsewhere = true
	}
}
