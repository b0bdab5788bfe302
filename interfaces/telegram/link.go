package telegram

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"synthbot/core/markdown"
)

// The text of a link or button may hide where it leads. This file writes the address
// beside it.

const maxAddress = 2048 // bytes

// linked is a text with the address behind each link that does not show it:
// "words (https://…)".
func linked(text string, entities []entity) string {
	if len(entities) == 0 {
		return text
	}
	at := unitsOf(text)
	links := slices.DeleteFunc(slices.Clone(entities), func(e entity) bool {
		return e.Type != "text_link" || shows(at.span(e.Offset, e.Length), e.URL)
	})
	slices.SortStableFunc(links, byEnd)
	var out strings.Builder
	from := 0
	for _, e := range links {
		to := at.at[min(max(end(e), 0), len(at.at)-1)]
		out.WriteString(text[from:to] + beside(e.URL))
		from = to
	}
	return out.String() + text[from:]
}

func end(e entity) int { return e.Offset + e.Length }

func byEnd(a, b entity) int { return cmp.Compare(end(a), end(b)) }

// shows reports whether a text is the address itself, as people write it; an
// empty address needs no telling.
func shows(text, address string) bool {
	return address == "" || bare(text) == bare(address)
}

// bare is an address without what clients leave out or add.
func bare(address string) string {
	address = strings.TrimSpace(address)
	if _, rest, ok := strings.Cut(address, "://"); ok && strings.HasPrefix(strings.ToLower(address), "http") {
		address = rest
	}
	return strings.TrimSuffix(address, "/")
}

func beside(address string) string { return " (" + oneAddress(address) + ")" }

// oneAddress keeps a foreign address from passing for more than it is.
func oneAddress(s string) string { return cut(strings.Join(strings.Fields(s), ""), maxAddress) }

// keys are the buttons below a message.
func (m *message) keys() []keyboardButton {
	if m.Markup == nil {
		return nil
	}
	return slices.Concat(m.Markup.Rows...)
}

// part is a piece of the message that was quoted from it, with where the links
// in it lead. The platform leaves the links out of quotes. It gives the position of the
// piece, since the same words may lead elsewhere in another place.
func (m *message) part(quoted string, position int) string {
	text, entities := m.content()
	at := -1
	bytes := unitsOf(text).at
	if position >= 0 && position < len(bytes) {
		at = bytes[position]
	}
	if at < 0 || !strings.HasPrefix(text[at:], quoted) {
		at = strings.Index(text, quoted)
	}
	if at < 0 {
		return quoted
	}
	begin := markdown.UTF16(text[:at])
	return linked(quoted, within(entities, begin, begin+markdown.UTF16(quoted)))
}

// within lists the entities between two units of a text, as those of that part.
func within(entities []entity, from, to int) (list []entity) {
	for _, e := range entities {
		if e.Offset < to && end(e) > from {
			e.Offset, e.Length = max(e.Offset-from, 0), end(e)-max(e.Offset, from)
			list = append(list, e)
		}
	}
	return list
}

// unquoted separates what an author wrote from what they quote, with where the links lead.
func unquoted(text string, entities []entity) (own, quoted string) {
	at := unitsOf(text)
	part := func(from, to int) string { return linked(at.span(from, to-from), within(entities, from, to)) }
	from := 0
	for _, q := range slices.SortedStableFunc(slices.Values(entities), byEnd) {
		if isQuote(q) {
			own, quoted = lines(own, part(from, q.Offset)), lines(quoted, part(q.Offset, end(q)))
			from = max(from, end(q))
		}
	}
	return lines(own, part(from, math.MaxInt)), quoted
}
