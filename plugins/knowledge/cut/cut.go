// Package cut splits documents, in Markdown or plain text, into passages: at their headings, and then between blocks
// such as paragraphs, lists, tables and code. It does not know where a text comes from, nor who may see it.
package cut

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"synthbot/core/passage"
	"synthbot/core/txt"
)

// Sizes of passages, in bytes.
const (
	Full       = 900  // no further block is added beyond that
	Longest    = 1600 // longer prose and lists are split
	Whole      = 6000 // longer code and tables are split
	titleMax   = 300  // characters
	HeadingMax = 120  // characters
)

// Between separates the headings of a title.
const Between = " › "

type kind int

const (
	prose kind = iota
	list
	table
	code
)

type block struct {
	kind kind
	text string
}

// section is what follows a heading.
type section struct {
	title  string // with the headings above it
	anchor string
	blocks []block
}

// Passages splits a text into passages. It leaves out the blocks for which drops, if not nil, returns true. name is
// the title of a text without one.
func Passages(text, name string, drops func(block string) bool) []passage.Passage {
	var all []passage.Passage
	for _, s := range dropRepeated(sectionsOf(text, name), drops) {
		for _, text := range s.pack() {
			all = append(all, passage.Passage{Title: txt.Clip(s.title, titleMax), Anchor: s.anchor, Text: text})
		}
	}
	return all
}

// Blocks lists the blocks of a text: paragraphs, lists, tables, code.
func Blocks(text string) (blocks []string) {
	for _, s := range sectionsOf(text, "") {
		for _, b := range s.blocks {
			blocks = append(blocks, b.text)
		}
	}
	return blocks
}

func sectionsOf(text, name string) []section {
	r := &reader{lines: strings.Split(text, "\n"), slugs: make(map[string]int)}
	r.open(0, name, "")
	r.frontMatter()
	r.read()
	return r.sections
}

type reader struct {
	lines    []string
	at       int
	headings [7]string // in force, by level; 0 is the document's name
	slugs    map[string]int
	sections []section
}

var (
	heading    = txt.Pattern(`^(#{1,6})\s+(.*?)\s*#*\s*$`)
	underline  = txt.Pattern(`^(=+|-{3,})\s*$`)
	listItem   = txt.Pattern(`^\s*([-*+•]|\d{1,3}[.)])\s+\S`)
	fence      = txt.Pattern("^\\s*(```+|~~~+)")
	ownAnchor  = txt.Pattern(`\s*\{#([^}\s]+)\}\s*$`)
	frontTitle = txt.Pattern(`(?m)^title:\s*["']?(.*?)["']?\s*$`)
)

// frontMatter skips the YAML front matter of a Markdown file, and takes the title from it.
func (r *reader) frontMatter() {
	if len(r.lines) == 0 || strings.TrimSpace(r.lines[0]) != "---" {
		return
	}
	for i, line := range r.lines[1:] {
		if strings.TrimSpace(line) != "---" {
			continue
		}
		title := frontTitle().FindStringSubmatch(strings.Join(r.lines[1:i+1], "\n"))
		if title != nil {
			r.sections = nil
			r.open(0, title[1], "")
		}
		r.at = i + 2
		return
	}
}

func (r *reader) read() {
	for r.at < len(r.lines) {
		line := r.lines[r.at]
		h := heading().FindStringSubmatch(line)
		switch {
		case strings.TrimSpace(line) == "":
			r.at++
		case h != nil:
			r.at++
			r.addHeading(len(h[1]), h[2])
		case r.underlined():
			level := 2
			if r.lines[r.at+1][0] == '=' {
				level = 1
			}
			r.at += 2
			r.addHeading(level, line)
		case isShouted(line) && r.at+1 < len(r.lines):
			r.at++
			r.addHeading(2, line)
		case fence().MatchString(line):
			r.addFenced()
		case strings.HasPrefix(strings.TrimSpace(line), "|"):
			r.addRun(table, func(l string) bool { return strings.HasPrefix(strings.TrimSpace(l), "|") })
		case listItem().MatchString(line):
			r.addRun(list, func(l string) bool { return strings.TrimSpace(l) != "" && !heading().MatchString(l) })
		default:
			r.addRun(prose, func(l string) bool {
				return strings.TrimSpace(l) != "" && !heading().MatchString(l) && !listItem().MatchString(l) &&
					!fence().MatchString(l)
			})
		}
	}
}

// underlined reports whether the next line underlines the present one as a heading.
func (r *reader) underlined() bool {
	return r.at+1 < len(r.lines) && underline().MatchString(r.lines[r.at+1]) &&
		utf8.RuneCountInString(r.lines[r.at]) <= HeadingMax
}

// isShouted reports whether a line of a plain text is a heading in capitals.
func isShouted(line string) bool {
	letters := strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) {
			return r
		}
		return -1
	}, line)
	isUpper := letters == strings.ToUpper(letters) && letters != strings.ToLower(letters)
	return isUpper && utf8.RuneCountInString(letters) >= 6 && utf8.RuneCountInString(line) <= 60 &&
		!strings.HasPrefix(strings.TrimSpace(line), "|")
}

// addRun adds the present line, and the following ones that belong to it, as one block.
func (r *reader) addRun(k kind, belongs func(line string) bool) {
	from := r.at
	for r.at++; r.at < len(r.lines) && belongs(r.lines[r.at]) && !r.underlined(); r.at++ {
	}
	r.add(k, r.lines[from:r.at])
}

func (r *reader) addFenced() {
	mark := fence().FindStringSubmatch(r.lines[r.at])[1]
	from := r.at
	for r.at++; r.at < len(r.lines); r.at++ {
		if strings.HasPrefix(strings.TrimSpace(r.lines[r.at]), mark) {
			r.at++
			break
		}
	}
	r.add(code, r.lines[from:r.at])
}

func (r *reader) add(k kind, lines []string) {
	text := strings.TrimRight(strings.Join(lines, "\n"), " \n")
	if strings.TrimSpace(text) == "" {
		return
	}
	last := &r.sections[len(r.sections)-1]
	n := len(last.blocks)
	if n > 0 && k == list && last.blocks[n-1].kind == list {
		last.blocks[n-1].text += "\n" + text // items with blank lines between them
		return
	}
	last.blocks = append(last.blocks, block{k, text})
}

// addHeading begins a section. A heading of level 1 replaces the document's name in titles.
func (r *reader) addHeading(level int, text string) {
	anchor := ""
	own := ownAnchor().FindStringSubmatchIndex(text)
	if own != nil {
		anchor = text[own[2]:own[3]]
		text = text[:own[0]]
	}
	text = txt.ClipLine(inlineMarks().ReplaceAllString(text, "$1"), HeadingMax)
	if anchor == "" {
		anchor = Anchor(text)
		n := r.slugs[anchor]
		if n > 0 {
			r.slugs[anchor]++
			anchor = fmt.Sprint(anchor, "-", n)
		}
		r.slugs[anchor]++
	}
	if level == 1 {
		level = 0
	}
	r.open(level, text, anchor)
}

// open begins a section under a heading; level 0 is the document's name.
func (r *reader) open(level int, text, anchor string) {
	r.headings[level] = text
	clear(r.headings[level+1:])
	titles := slices.DeleteFunc(slices.Clone(r.headings[:]), func(h string) bool { return h == "" })
	r.sections = append(r.sections, section{title: strings.Join(titles, Between), anchor: anchor})
}

var inlineMarks = txt.Pattern("[*_`]{1,3}|\\[([^\\]]*)\\]\\([^)]*\\)")

// Anchor returns the anchor that Markdown renderers give a heading.
func Anchor(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case unicode.IsLetter(r), unicode.IsDigit(r), unicode.IsMark(r), r == '-', r == '_':
			return unicode.ToLower(r)
		case unicode.IsSpace(r):
			return '-'
		}
		return -1
	}, strings.TrimSpace(text))
}

// A block of fewer than repeatedMax bytes that a document contains repeatedFrom times is kept once. Headers of pages
// are such blocks.
const (
	repeatedMax  = 200
	repeatedFrom = 3
)

// dropRepeated removes repeated blocks, and those for which drops returns true.
func dropRepeated(sections []section, drops func(string) bool) []section {
	count := make(map[string]int)
	for _, s := range sections {
		for _, b := range s.blocks {
			count[b.text]++
		}
	}
	seen := make(map[string]bool)
	for i, s := range sections {
		var kept []block
		for _, b := range s.blocks {
			often := len(b.text) < repeatedMax && count[b.text] >= repeatedFrom
			if (!often || !seen[b.text]) && (drops == nil || !drops(b.text)) {
				kept = append(kept, b)
			}
			seen[b.text] = true
		}
		sections[i].blocks = kept
	}
	return sections
}

func (s *section) pack() (texts []string) {
	text := ""
	for _, b := range s.blocks {
		for _, part := range b.parts() {
			if text != "" && len(text)+len(part) > Full {
				texts = append(texts, text)
				text = ""
			}
			if text != "" {
				text += "\n\n"
			}
			text += part
		}
	}
	if text != "" {
		texts = append(texts, text)
	}
	return texts
}

// parts splits a block that is too long at lines, sentences or words.
func (b *block) parts() (parts []string) {
	limit := Longest
	if b.kind == code || b.kind == table {
		limit = Whole
	}
	text := b.text
	if len(text) <= limit {
		return []string{text}
	}
	first, _, _ := strings.Cut(text, "\n") // of a table: the names of its columns
	for len(text) > limit {
		end := Full
		for !utf8.RuneStart(text[end]) {
			end--
		}
		for _, border := range []string{"\n", ". ", "? ", "! ", "。", " "} {
			i := strings.LastIndex(text[:end], border)
			if i > end/3 {
				end = i + len(strings.TrimRight(border, " \n"))
				break
			}
		}
		parts = append(parts, strings.TrimSpace(text[:end]))
		text = strings.TrimSpace(text[end:])
		if b.kind == table && len(first) < Full/4 && !strings.HasPrefix(text, first) {
			text = first + "\n" + text
		}
	}
	return append(parts, text)
}
