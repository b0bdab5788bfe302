package telegramtest

import (
	"html"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// Entity is a style or link of a text; Offset and Length are UTF-16 units.
type Entity struct {
	Type     string `json:"type"`
	Offset   int    `json:"offset"`
	Length   int    `json:"length"`
	URL      string `json:"url,omitempty"`
	Language string `json:"language,omitempty"`
}

// entityType returns the type of entity that a tag makes; "" for an unknown tag.
func entityType(tag string) string {
	switch tag {
	case "b", "strong":
		return "bold"
	case "i", "em":
		return "italic"
	case "u", "ins":
		return "underline"
	case "s", "strike", "del":
		return "strikethrough"
	case "span", "tg-spoiler":
		return "spoiler"
	case "a":
		return "text_link"
	case "code", "pre", "blockquote":
		return tag
	case "tg-emoji":
		return "custom_emoji"
	}
	return ""
}

// ParseHTML reads a text in Telegram's HTML. It refuses what Telegram refuses, and also what its documentation forbids
// but its server corrects silently: styles around code, and quotes within quotes.
func ParseHTML(s string) (string, []Entity, error) {
	if !utf8.ValidString(s) {
		return "", nil, refuse("strings must be encoded in UTF-8")
	}
	p := htmlParser{s: s}
	if err := p.run(); err != nil {
		return "", nil, refuse("can't parse entities: %v", err)
	}
	return p.text.String(), p.entities, nil
}

type openTag struct {
	name   string
	at     int // in s
	entity Entity
}

type htmlParser struct {
	s        string
	at       int
	units    int
	text     strings.Builder
	open     []openTag
	entities []Entity
}

func (p *htmlParser) run() error {
	for p.at < len(p.s) {
		var err error
		switch rest := p.s[p.at:]; {
		case strings.HasPrefix(rest, "</"):
			err = p.endTag()
		case rest[0] == '<':
			err = p.startTag()
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
	if n := len(p.open); n > 0 {
		return refuse(`Can't find end tag corresponding to start tag "%s"`, p.open[n-1].name)
	}
	return nil
}

func (p *htmlParser) write(s string) {
	p.text.WriteString(s)
	p.units += units(s)
}

// reference reads a character reference. Any other "&" is text.
func (p *htmlParser) reference() {
	end := strings.IndexByte(p.s[p.at:], ';')
	if end > 0 && end < 12 {
		ref := p.s[p.at : p.at+end+1]
		named := slices.Contains([]string{"&lt;", "&gt;", "&amp;", "&quot;"}, ref)
		if plain := html.UnescapeString(ref); named || strings.HasPrefix(ref, "&#") && plain != ref {
			p.write(plain)
			p.at += len(ref)
			return
		}
	}
	p.write("&")
	p.at++
}

func (p *htmlParser) startTag() error {
	begin := p.at
	end := strings.IndexByte(p.s[begin:], '>')
	if end < 0 {
		return refuse("Unclosed start tag at byte offset %d", begin)
	}
	name, attributes, err := readTag(p.s[begin+1 : begin+end])
	if err != nil {
		return refuse("%v at byte offset %d", err, begin)
	}
	kind := entityType(name)
	if kind == "" || name == "span" && attributes["class"] != "tg-spoiler" {
		return refuse(`Unsupported start tag "%s" at byte offset %d`, name, begin)
	}
	e := Entity{Type: kind, Offset: p.units, URL: attributes["href"]}
	if err := p.checkNesting(kind, attributes, &e); err != nil {
		return refuse("%v at byte offset %d", err, begin)
	}
	p.open = append(p.open, openTag{name, begin, e})
	p.at += end + 1
	return nil
}

// checkNesting returns an error if a new entity may not be inside the open ones.
func (p *htmlParser) checkNesting(kind string, attributes map[string]string, e *Entity) error {
	for i, o := range p.open {
		outer := o.entity.Type
		inPre := outer == "pre" && kind == "code" && i == len(p.open)-1 && p.units == o.entity.Offset
		switch {
		case inPre:
			language, _ := strings.CutPrefix(attributes["class"], "language-")
			p.open[i].entity.Language = language
			e.Type = ""
		case outer == "pre" || outer == "code" || outer == "":
			return refuse("Entity %s inside of %s", kind, outer)
		case (kind == "pre" || kind == "code") && outer != "blockquote":
			return refuse("Entity %s inside of %s", kind, outer)
		case kind == "blockquote" && outer == "blockquote", kind == "text_link" && outer == "text_link":
			return refuse("Entity %s inside of itself", kind)
		}
	}
	return nil
}

// readTag reads the text between the angle brackets of a start tag.
func readTag(s string) (name string, attributes map[string]string, err error) {
	name, rest, _ := strings.Cut(s, " ")
	if name == "" || strings.ContainsAny(name, "\"'=<&\n\t") {
		return "", nil, refuse("Expected a tag name")
	}
	attributes = map[string]string{}
	for rest = strings.TrimSpace(rest); rest != ""; rest = strings.TrimSpace(rest) {
		key, value, ok := strings.Cut(rest, "=")
		if key = strings.ToLower(strings.TrimSpace(key)); !ok && strings.ToLower(rest) == "expandable" {
			return strings.ToLower(name), attributes, nil
		}
		if !ok || len(value) < 2 || value[0] != '"' && value[0] != '\'' {
			return "", nil, refuse("Unexpected attribute in the tag %q", name)
		}
		end := strings.IndexByte(value[1:], value[0])
		if end < 0 {
			return "", nil, refuse("Unclosed attribute in the tag %q", name)
		}
		attributes[key] = html.UnescapeString(value[1 : end+1])
		rest = value[end+2:]
	}
	return strings.ToLower(name), attributes, nil
}

func (p *htmlParser) endTag() error {
	begin := p.at
	end := strings.IndexByte(p.s[begin:], '>')
	if end < 0 {
		return refuse("Unclosed end tag at byte offset %d", begin)
	}
	name := strings.ToLower(strings.TrimSpace(p.s[begin+2 : begin+end]))
	if len(p.open) == 0 {
		return refuse("Unexpected end tag at byte offset %d", begin)
	}
	last := p.open[len(p.open)-1]
	if name != last.name {
		return refuse(`Unmatched end tag at byte offset %d, expected "</%s>", found "</%s>"`, begin, last.name, name)
	}
	p.open = p.open[:len(p.open)-1]
	p.at += end + 1
	if last.entity.Length = p.units - last.entity.Offset; last.entity.Length > 0 && last.entity.Type != "" {
		p.entities = append(p.entities, last.entity)
	}
	return nil
}

// units returns the length of a text in UTF-16 units.
func units(s string) int { return len(utf16.Encode([]rune(s))) }

// atoi reads a number; 0 if it is invalid.
func atoi(s string) int64 {
	n, _ := strconv.ParseInt(s, 10, 64)
	return n
}
