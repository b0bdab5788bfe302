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

// draft is a prompt whose parts are measured and can still be reduced.
type draft struct {
	preamble
	context       []section
	input, system part
	text          string // of the user message
	verbose       string
	fixed         int // characters without the context's value and the number at the end
	before        int // characters before reduction
	limit         int // of characters
}

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
func (d *draft) total(before int) int {
	n, keys := d.fixed+len(`{}`), 0
	for i := range d.context {
		cost := d.context[i].cost()
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
func (d *draft) message(history bool) string {
	var w writer
	w.Grow(min(len(d.text), d.total(0)))
	w.open('{')
	w.object("context")
	for i := range d.context {
		if history || i != currentChat {
			d.context[i].write(&w)
		}
	}
	w.close('}')
	w.raw("input", d.input.raw)
	w.close('}')
	return w.String()
}

// over returns by how many characters the prompt is too long.
func (d *draft) over() int { return d.total(d.before) - d.limit }

// reduce shortens and drops, as the package comment says, until reserve characters of the limit are free.
func (d *draft) reduce(reserve int, l llm.Limits) error {
	d.limit = l.Chars - reserve
	if l.Chars <= 0 || d.over() <= 0 {
		return nil
	}
	d.shorten(max(d.limit/bulkShare, textFloor), func(s *slot) bool { return s.bulk })
	c, recon := d.context, len(d.context)-2
	d.shortenLong(&c[recentElsewhere])
	d.dropOldest(&c[recentElsewhere], 0)
	d.shortenLong(&c[currentChat])
	if d.dropOldest(&c[currentChat], 1) {
		c[currentChat].align()
	}
	d.dropLast(&c[memories])
	for i := injected; i < recon; i++ {
		d.dropLast(&c[i])
	}
	for _, i := range []int{participants, state, recon + 1, recon} {
		d.dropLast(&c[i])
	}
	d.shortenNewest()
	d.shortenTexts()
	if d.over() <= 0 {
		d.text = d.message(true)
		return nil
	}
	return &llm.Error{Kind: llm.ErrorTooLong, Engine: l.Engine, Err: fmt.Errorf("prompt of %d characters, %d are "+
		"allowed: instructions %d, instructions_verbose %d, actions %d, input %d, outputs %d", d.total(d.before),
		l.Chars, textSize(d.instructions), textSize(d.verbose), d.actions.size, d.input.size, d.system.size)}
}

// shortenTexts shortens the texts of the input and of the system_message.
func (d *draft) shortenTexts() {
	sum := 0
	for _, size := range append(d.input.sizes(), d.system.sizes()...) {
		sum += size
	}
	d.shorten(sum-d.over(), func(*slot) bool { return true })
}

// shorten cuts the texts that are meant to room characters in all: the longest first, and none below textFloor.
func (d *draft) shorten(room int, meant func(*slot) bool) {
	var sizes []int
	for _, p := range []*part{&d.input, &d.system} {
		for i := range p.slots {
			if meant(&p.slots[i]) {
				sizes = append(sizes, int(p.slots[i].size))
			}
		}
	}
	most := max(level(sizes, room), textFloor)
	for _, p := range []*part{&d.input, &d.system} {
		for i := range p.slots {
			if meant(&p.slots[i]) {
				old := p.size
				p.shorten(i, most)
				d.fixed += p.size - old
			}
		}
	}
}

// shortenLong shortens over-long entries, the oldest first.
func (d *draft) shortenLong(s *section) {
	most := max(longEntry, d.limit/longShare)
	for i := range s.items {
		if d.over() <= 0 {
			return
		}
		s.shorten(i, most)
	}
}

// dropOldest drops entries, the oldest first, but not the last keep ones.
func (d *draft) dropOldest(s *section, keep int) (dropped bool) {
	for len(s.items) > keep && d.over() > 0 {
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
func (d *draft) dropLast(s *section) {
	for n := len(s.items) - 1; n >= 0 && d.over() > 0; n-- {
		s.sum -= s.items[n].size
		s.items = s.items[:n]
	}
}

// shortenNewest shortens the remaining entry of the history, or drops it.
func (d *draft) shortenNewest() {
	s, room := &d.context[currentChat], -d.over()
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
