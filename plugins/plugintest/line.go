package plugintest

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// line is a line of a script, together with those that continue it.
type line struct {
	number, last int
	text         string // the first line as written
	kind         kind
	name         string // the speaker, the expectation, the kind of answer, or the command
	how          []string
	place        string
	op           byte // of an expectation: = ~ !
	arg          string

	// With -update-scripts.
	instead string   // of arg
	before  []string // lines that go before
}

type kind int

const (
	happens kind = iota // somebody says something
	answers             // the model
	expects
	does // a command
)

var (
	speech = regexp.MustCompile(`^([\pL][\pL\pN_ .-]*?)\s*(?:\(([^)]*)\))?\s*(?:@\s*(\S+?))?\s*>(?: |$)(?s:(.*))$`)
	answer = regexp.MustCompile(`^(model|says|does|fails)<(?: |$)?(?s:(.*))$`)
	expect = regexp.MustCompile(`^(bot|edit|whisper|tell|admins|file|prompt|rules)(?:\s*@\s*(\S+?))?\s*([=~!])(?: |$)(?s:(.*))$`)
	order  = regexp.MustCompile(`^([a-z]+)(?:\s+(?s:(.*)))?$`)
)

// parse parses a script. Its error begins with the line number.
func parse(script string) ([]line, error) {
	var lines []line
	for i, text := range strings.Split(script, "\n") {
		trimmed := strings.TrimSpace(text)
		if trimmed == "" || strings.HasPrefix(trimmed, "#") {
			continue
		}
		if text[0] == ' ' || text[0] == '\t' {
			if len(lines) == 0 {
				return nil, fmt.Errorf("%d: it continues nothing", i+1)
			}
			l := &lines[len(lines)-1]
			l.arg, l.last = l.arg+"\n"+trimmed, i+1
			continue
		}
		l, err := parseLine(trimmed)
		if err != nil {
			return nil, fmt.Errorf("%d: %w", i+1, err)
		}
		l.number, l.last, l.text = i+1, i+1, trimmed
		lines = append(lines, l)
	}
	return lines, nil
}

func parseLine(text string) (line, error) {
	if m := answer.FindStringSubmatch(text); m != nil {
		return line{kind: answers, name: m[1], arg: m[2]}, nil
	}
	if m := expect.FindStringSubmatch(text); m != nil {
		l := line{kind: expects, name: m[1], place: m[2], op: m[3][0], arg: m[4]}
		if asks := l.name == "prompt" || l.name == "rules"; l.op == '!' && !asks || l.op == '=' && asks {
			return l, fmt.Errorf("%s takes no %c", l.name, l.op)
		}
		return l, nil
	}
	if m := speech.FindStringSubmatch(text); m != nil {
		l := line{kind: happens, name: m[1], place: m[3], arg: m[4]}
		for how := range strings.SplitSeq(m[2], ",") {
			if how = strings.TrimSpace(how); how != "" {
				l.how = append(l.how, how)
			}
			if word, _, _ := strings.Cut(how, " "); how != "" && !slices.Contains(ways, word) {
				return l, fmt.Errorf("%q is no way to say something", how)
			}
		}
		return l, nil
	}
	if m := order.FindStringSubmatch(text); m != nil {
		return line{kind: does, name: m[1], arg: m[2]}, nil
	}
	return line{}, fmt.Errorf("%q is nothing that a script can say", text)
}

// is returns whether the parentheses contain a word, and what follows that word.
func (l *line) is(way string) (rest string, ok bool) {
	for _, how := range l.how {
		if how == way {
			return "", true
		}
		if rest, ok := strings.CutPrefix(how, way+" "); ok {
			return strings.TrimSpace(rest), true
		}
	}
	return "", false
}

// ways lists the words that parentheses may contain.
var ways = []string{
	"private", "aside", "admin", "moderator", "bot", "voice", "reply", "locale", "file", "edit", "delete", "react", "presses", "forwards",
}

// rewritten returns the script with the changes of -update-scripts.
func rewritten(script string, lines []line) string {
	old := strings.Split(script, "\n")
	var b strings.Builder
	next := 0
	for i := range lines {
		l := &lines[i]
		for ; next < l.number-1; next++ {
			b.WriteString(old[next] + "\n")
		}
		for _, text := range l.before {
			b.WriteString(indented(text) + "\n")
		}
		if l.instead != "" {
			head, _, _ := strings.Cut(l.text, "=")
			b.WriteString(indented(head+"= "+l.instead) + "\n")
			next = l.last
		}
	}
	return b.String() + strings.Join(old[next:], "\n")
}

func indented(text string) string { return strings.ReplaceAll(text, "\n", "\n\t") }
