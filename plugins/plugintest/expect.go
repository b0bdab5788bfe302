package plugintest

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	"synthbot/core"
)

// expect compares the output with the current line.
func (s *Script) expect() {
	s.t.Helper()
	if s.line.name == "prompt" || s.line.name == "rules" {
		s.expectPrompt()
		return
	}
	i := -1
	s.until(func() bool {
		s.listen()
		i = s.find()
		return i >= 0 || !s.plan.live
	})
	if i < 0 {
		s.Fatalf("that is not there:\n%s", s.state())
	}
	u := s.said[i]
	if s.line.op == '=' && u.text != s.line.arg {
		if *update {
			s.line.instead = u.text
		} else {
			s.Fatalf("there is:\n%s", s.state())
		}
	}
	if s.line.op == '~' && !s.match(u.text) {
		s.Fatalf("there is:\n%s", s.state())
	}
	s.said = slices.Delete(s.said, i, i+1)
}

// find returns the first utterance of the line's kind and place, or -1.
func (s *Script) find() int {
	l := s.line
	place := s.here
	if l.place != "" {
		p, err := core.ParsePath(l.place)
		if err != nil {
			s.Fatalf("%v", err)
		}
		place = p
	}
	return slices.IndexFunc(s.said, func(u utterance) bool {
		return u.kind == l.name && (u.place == place || u.place.IsZero())
	})
}

// match returns whether the line's regexp matches, and sets the variables of its named groups.
func (s *Script) match(text string) bool {
	re, err := regexp.Compile(s.line.arg)
	if err != nil {
		s.Fatalf("%v", err)
	}
	m := re.FindStringSubmatch(text)
	for i, name := range re.SubexpNames() {
		if m != nil && name != "" {
			s.vars[name] = m[i]
		}
	}
	return m != nil
}

func (s *Script) expectPrompt() {
	s.t.Helper()
	s.until(func() bool { return s.model.count() > 0 || !s.plan.live })
	q := s.model.current()
	if q == nil {
		s.Fatalf("the model was never asked:\n%s", s.state())
	}
	text := q.text()
	if s.line.name == "rules" {
		text = q.rules()
	}
	if s.match(text) != (s.line.op == '~') {
		s.Fatalf("it was asked:\n  %s", strings.ReplaceAll(text, "\n", "\n  "))
	}
}

// setting executes the current line if it is a setting, and returns whether it is.
func (s *Script) setting() bool {
	l := s.line
	words := strings.Fields(l.arg)
	var err error
	switch {
	case l.name == "clock" && !s.lived:
		s.pass(l.arg)
		return true
	case l.name == "zone":
		err = s.setZone(l.arg)
	case l.name == "language":
		s.language = l.arg
	case l.name == "buttons":
		s.buttons = l.arg != "off"
	case l.name == "engine":
		s.engine = l.arg != "none"
	case l.name == "share":
		for _, w := range words {
			p, wrong := core.ParsePath(w)
			if s.shares = append(s.shares, p); wrong != nil {
				err = wrong
			}
		}
	default:
		return false
	}
	if s.lived {
		s.Fatalf("that must come before anything happens")
	}
	if err != nil {
		s.Fatalf("%v", err)
	}
	return true
}

// command executes a command line.
func (s *Script) command() {
	s.t.Helper()
	l := s.line
	switch l.name {
	case "zone", "language", "buttons", "engine", "share":
	case "clock":
		if s.lived {
			s.quiet()
			s.pass(l.arg)
		}
	case "press":
		if s.speaker == nil {
			s.Fatalf("nobody has spoken yet")
		}
		s.quiet()
		by := *s.speaker
		by.how, by.arg = append(by.how, "presses"), l.arg
		s.receive(s.event(&by))
	case "stop", "restart":
		s.quiet()
		s.end()
		if l.name == "restart" {
			s.start()
		}
	case "start":
		if s.world == nil {
			s.start()
		}
	case "nothing":
		if len(s.said) > 0 {
			s.Fatalf("it was not expected:\n%s", s.state())
		}
	case "anything":
		s.said = nil
	case "asked":
		n, err := strconv.Atoi(l.arg)
		if now := s.model.count(); err != nil || now-s.asked != n {
			s.Fatalf("the model was asked %d times", now-s.asked)
		}
		s.asked = s.model.count()
	default:
		do := s.plan.verbs[l.name]
		if do == nil {
			s.Fatalf("nothing is called %q", l.name)
		}
		do(s, l.arg)
		s.settle()
	}
}
