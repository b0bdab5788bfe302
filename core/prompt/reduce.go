package prompt

import (
	"fmt"
	"strconv"

	"synthbot/core/llm"
)

// Bounds of reduction.
const (
	textFloor  = 100 // characters below which no text of the input is cut
	newestMin  = 200 // characters below which the newest entry is dropped
	longEntry  = 400 // characters below which no entry is over-long
	longShare  = 8   // an entry of more than this part of the limit is over-long
	bulkShare  = 3   // the part of the limit that files and outputs may take
	windowStep = 8   // entries by which a reduced window's beginning moves
)

// Indexes of the sections of a context. Injections come after these, then recon and recon_instructions.
const (
	currentChat = iota
	recentElsewhere
	participants
	memories
	state
	injected
)

// total returns the size of the whole prompt. before is the number at its end; 0: the total itself.
func (p *Prompt) total(before int) int {
	n, keys := p.fixed+len(`{}`), 0
	for i := range p.context {
		cost := p.context[i].cost()
		if cost > 0 {
			n += cost
			keys++
		}
	}
	n += max(keys-1, 0)
	if before > 0 {
		return n + len(strconv.Itoa(before))
	}
	digits := 1
	for len(strconv.Itoa(n+digits)) != digits {
		digits++
	}
	return n + digits
}

// message writes the user message again from the remaining parts; with the place's own history if history is set.
func (p *Prompt) message(history bool) string {
	var w writer
	w.Grow(min(len(p.text), p.total(0)))
	w.open('{')
	w.object("context")
	for i := range p.context {
		if history || i != currentChat {
			p.context[i].write(&w)
		}
	}
	w.close('}')
	w.raw("input", p.input.raw)
	w.close('}')
	return w.String()
}

// chars returns the number of characters of the JSON.
func (p *Prompt) chars() int { return p.total(p.before) }

// over returns by how many characters the prompt is too long.
func (p *Prompt) over() int { return p.chars() - p.limit }

// reduce shortens and drops, as the package comment says, until reserve characters of the limit are free.
func (p *Prompt) reduce(reserve int) error {
	p.limit = p.limits.Chars - reserve
	if p.limits.Chars <= 0 || p.over() <= 0 {
		return nil
	}
	p.shorten(max(p.limit/bulkShare, textFloor), func(s *slot) bool { return s.bulk })
	c, recon := p.context, len(p.context)-2
	p.shortenLong(&c[recentElsewhere])
	p.dropOldest(&c[recentElsewhere], 0)
	p.shortenLong(&c[currentChat])
	if p.dropOldest(&c[currentChat], 1) {
		c[currentChat].align()
	}
	p.dropLast(&c[memories])
	for i := injected; i < recon; i++ {
		p.dropLast(&c[i])
	}
	for _, i := range []int{participants, state, recon + 1, recon} {
		p.dropLast(&c[i])
	}
	p.shortenNewest()
	p.shortenTexts()
	if p.over() <= 0 {
		p.text = p.message(true)
		return nil
	}
	return p.tooLong()
}

// tooLong returns the error of a prompt that cannot be reduced to its limit.
func (p *Prompt) tooLong() error {
	err := fmt.Errorf("prompt of %d characters, %d are allowed: instructions %d, instructions_verbose %d, actions %d, "+
		"input %d, outputs %d", p.chars(), p.limits.Chars, textSize(p.instructions), textSize(p.verbose),
		p.actions.size, p.input.size, p.system.size)
	return &llm.Error{Kind: llm.ErrorTooLong, Engine: p.limits.Engine, Err: err}
}

// shortenTexts shortens the texts of the input and of the system_message.
func (p *Prompt) shortenTexts() {
	sum := 0
	for _, size := range append(p.input.sizes(), p.system.sizes()...) {
		sum += size
	}
	p.shorten(sum-p.over(), func(*slot) bool { return true })
}

// shorten cuts the texts that are meant to room characters in all: the longest first, and none below textFloor.
func (p *Prompt) shorten(room int, meant func(*slot) bool) {
	var sizes []int
	for _, t := range []*part{&p.input, &p.system} {
		for i := range t.slots {
			if meant(&t.slots[i]) {
				sizes = append(sizes, int(t.slots[i].size))
			}
		}
	}
	most := max(level(sizes, room), textFloor)
	for _, t := range []*part{&p.input, &p.system} {
		for i := range t.slots {
			if meant(&t.slots[i]) {
				old := t.size
				t.shorten(i, most)
				p.fixed += t.size - old
			}
		}
	}
}

// shortenLong shortens over-long entries, the oldest first.
func (p *Prompt) shortenLong(s *section) {
	most := max(longEntry, p.limit/longShare)
	for i := range s.items {
		if p.over() <= 0 {
			return
		}
		s.shorten(i, most)
	}
}

// dropOldest drops entries, the oldest first, but not the last keep ones.
func (p *Prompt) dropOldest(s *section, keep int) (dropped bool) {
	for len(s.items) > keep && p.over() > 0 {
		s.dropFirst(1)
		dropped = true
	}
	return dropped
}

// align drops at most half of the entries, so that a reduced history begins at the same one for some turns.
func (s *section) align() {
	for i := 1; i <= len(s.lines)/2; i++ {
		if s.lines[i].Message.Seq/windowStep != s.lines[i-1].Message.Seq/windowStep {
			s.dropFirst(i)
			return
		}
	}
}

// dropLast drops items, the last first.
func (p *Prompt) dropLast(s *section) {
	for n := len(s.items) - 1; n >= 0 && p.over() > 0; n-- {
		s.sum -= s.items[n].size
		s.items = s.items[:n]
	}
}

// shortenNewest shortens the remaining entry of the history, or drops it.
func (p *Prompt) shortenNewest() {
	s, room := &p.context[currentChat], -p.over()
	if room >= 0 || len(s.items) != 1 {
		return
	}
	for _, size := range s.items[0].sizes() {
		room += size
	}
	if room < newestMin {
		s.dropFirst(1)
		return
	}
	s.shorten(0, room)
}
