package telegramtest

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Limits of rich messages.
const (
	maxRich      = 32768 // characters
	maxRichDepth = 16
	maxBlocks    = 500
	maxColumns   = 20
)

// sendRich implements sendRichMessage, for HTML that Markdown can express.
func (s *Server) sendRich(c Call) (any, error) {
	chat, m, err := s.newMessage(c)
	if err != nil {
		return nil, err
	}
	if m.Text, err = readRich(c); err != nil {
		return nil, err
	}
	m.Kind = "rich"
	return s.addMessage(chat, m), nil
}

func readRich(c Call) (string, error) {
	var in struct {
		HTML     *string         `json:"html"`
		Markdown *string         `json:"markdown"`
		Blocks   json.RawMessage `json:"blocks"`
	}
	if json.Unmarshal([]byte(c.Params["rich_message"]), &in) != nil {
		return "", refuse("can't parse InputRichMessage JSON object")
	}
	if in.HTML == nil || in.Markdown != nil || in.Blocks != nil {
		return "", refuse("this server knows rich messages in HTML only")
	}
	text, err := ParseRich(*in.HTML)
	if err == nil && strings.TrimSpace(text) == "" {
		err = refuse("RICH_MESSAGE_EMPTY")
	}
	return text, err
}

// allowedParents lists the elements that may contain an element; "" is the message itself.
func allowedParents(tag string) []string {
	flow := []string{"", "li", "blockquote"}
	switch tag {
	case "p", "h1", "h2", "h3", "h4", "h5", "h6", "ul", "ol", "blockquote", "pre", "hr", "table":
		return flow
	case "li":
		return []string{"ul", "ol"}
	case "input":
		return []string{"li"}
	case "tr":
		return []string{"table"}
	case "td", "th":
		return []string{"tr"}
	case "b", "i", "s", "u", "a", "code", "br":
		return []string{"p", "h1", "h2", "h3", "h4", "h5", "h6", "li", "td", "th", "blockquote", "b", "i", "s", "u", "a", "pre"}
	}
	return nil
}

// ParseRich reads the HTML of a rich message and returns the visible text.
func ParseRich(s string) (string, error) {
	p := richParser{htmlParser: htmlParser{s: s}}
	if !utf8.ValidString(s) {
		return "", refuse("strings must be encoded in UTF-8")
	}
	if err := p.run(); err != nil {
		return "", refuse("can't parse rich message: %v", err)
	}
	text := strings.TrimSpace(p.text.String())
	if utf8.RuneCountInString(text) > maxRich || p.blocks > maxBlocks {
		return "", refuse("RICH_MESSAGE_TOO_LONG")
	}
	return text, nil
}

type richParser struct {
	htmlParser
	stack   []string
	numbers []int // of the next item of each open list; negative for bullets
	blocks  int
	cells   int
}

func (p *richParser) run() error {
	for p.at < len(p.s) {
		var err error
		switch rest := p.s[p.at:]; {
		case strings.HasPrefix(rest, "</"):
			err = p.end()
		case rest[0] == '<':
			err = p.start()
		case rest[0] == '&':
			p.reference()
		default:
			_, size := utf8.DecodeRuneInString(rest)
			p.write(rest[:size])
			p.at += size
		}
		if err != nil {
			return err
		}
	}
	if n := len(p.stack); n > 0 {
		return refuse("no end of %s", p.stack[n-1])
	}
	return nil
}

func (p *richParser) start() error {
	end := strings.IndexByte(p.s[p.at:], '>')
	if end < 0 {
		return refuse("unclosed start tag at byte offset %d", p.at)
	}
	source := strings.TrimSuffix(p.s[p.at+1:p.at+end], "/")
	tag, _, _ := strings.Cut(source, " ")
	parent := ""
	if n := len(p.stack); n > 0 {
		parent = p.stack[n-1]
	}
	may := allowedParents(tag)
	if may == nil || !slices.Contains(may, parent) || slices.Contains([]string{"b", "i", "s", "u", "a"}, tag) && slices.Contains(p.stack, tag) {
		return refuse("%s inside of %q at byte offset %d", tag, parent, p.at)
	}
	p.at += end + 1
	p.count(tag)
	p.mark(tag, source)
	switch tag {
	case "br", "hr":
		p.write("\n")
		return nil
	case "input":
		return nil
	}
	p.stack = append(p.stack, tag)
	if len(p.stack) > maxRichDepth || p.cells > maxColumns {
		return refuse("RICH_MESSAGE_TOO_DEEP")
	}
	return nil
}

// mark writes the bullets, numbers and check boxes that apps show.
func (p *richParser) mark(tag, source string) {
	switch tag {
	case "ul":
		p.numbers = append(p.numbers, -1)
	case "ol":
		_, start, _ := strings.Cut(source, `start="`)
		p.numbers = append(p.numbers, int(atoi(strings.TrimSuffix(start, `"`))))
	case "input":
		p.write(map[bool]string{true: "[x] ", false: "[ ] "}[strings.Contains(source, "checked")])
	case "li":
		n := &p.numbers[len(p.numbers)-1]
		if *n < 0 {
			p.write("• ")
			return
		}
		p.write(strconv.Itoa(*n) + ". ")
		*n++
	}
}

func (p *richParser) count(tag string) {
	switch tag {
	case "tr":
		p.cells = 0
	case "td", "th":
		p.cells++
		return
	case "b", "i", "s", "u", "a", "code", "br", "input":
		return
	}
	p.blocks++
}

func (p *richParser) end() error {
	end := strings.IndexByte(p.s[p.at:], '>')
	if end < 0 || len(p.stack) == 0 || p.s[p.at+2:p.at+end] != p.stack[len(p.stack)-1] {
		return refuse("unexpected end tag at byte offset %d", p.at)
	}
	tag := p.stack[len(p.stack)-1]
	p.stack = p.stack[:len(p.stack)-1]
	p.at += end + 1
	switch tag {
	case "td", "th":
		p.write(" | ")
	case "ul", "ol":
		p.numbers = p.numbers[:len(p.numbers)-1]
	case "p", "h1", "h2", "h3", "h4", "h5", "h6", "li", "pre", "tr", "blockquote":
		p.write("\n")
	}
	return nil
}
