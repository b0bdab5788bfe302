package memory

import (
	"cmp"
	"encoding/binary"
	"math"
	"slices"

	"synthbot/core"
)

// Bounds of a search by meaning.
const (
	glanced  = 700 // facts that look near at a glance, whose vectors are compared
	nearBest = 100 // of them that may be hits
	always   = 3   // that are, even where they are as near as others
	crowded  = 30  // facts that it takes to say what is usual
)

// glance is a fact whose sketch is near.
type glance struct {
	fact   uint64
	origin core.Path
	apart  int
}

// usual says how like a text the facts are on the whole: more than half of them,
// in most places, have nothing to do with it.
type usual struct {
	counts [64*sketchWords + 1]int // facts by the bits that their sketches differ in
	least  float64                 // what is less like it may be so by chance
	spread float64
	top    float64
}

// means adds the facts that are near in meaning to the best hits, and says of
// those that words led to how near they are.
func (s *search) means(best []int, origins []core.Path) []int {
	if s.meant == nil {
		return best
	}
	near := s.compare(s.glances(origins))
	if len(near) > 0 {
		s.near.top = near[0].near
	}
	for i, n := range near[:min(len(near), nearBest)] {
		if i >= always && s.near.chance(n.near) {
			break
		}
		if at, ok := s.met(n); ok && !slices.Contains(best, at) {
			best = append(best, at)
		}
	}
	for _, i := range best {
		h := &s.hits[i]
		if h.near == 0 {
			h.near = s.likeness(h.origin, h.id)
		}
	}
	return best
}

// glances finds the facts whose sketches are nearest, and takes note of all.
func (s *search) glances(origins []core.Path) []glance {
	wanted := s.meant.sketch()
	nearest := foremost[glance]{keep: glanced, order: func(a, b glance) int { return cmp.Compare(a.apart, b.apart) }}
	for _, origin := range origins {
		s.sketches(origin, s.meant.model, func(fact uint64, stored []byte) {
			apart := wanted.apart(stored)
			s.near.counts[apart]++
			if s.may(fact) {
				nearest.add(glance{fact, origin, apart})
			}
		})
	}
	s.near.sum()
	return nearest.take()
}

// may reports whether a fact has all that it must have.
func (s *search) may(fact uint64) bool {
	if len(s.must) == 0 {
		return true
	}
	i, ok := s.index[fact]
	return ok && s.hits[i].must == len(s.must)
}

// sum works out what is usual, from the half of the facts that are less like the
// text. What a sketch tells wavers by chance; that much is taken off.
func (u *usual) sum() {
	n := 0
	for _, count := range u.counts {
		n += count
	}
	if n < crowded {
		return
	}
	middle, far := u.at(n/2), u.at(3*n/4)
	const waver = math.Pi * math.Pi / 4 / (64 * sketchWords)
	deviation := (middle - far) / 0.6745
	u.spread = math.Sqrt(max(deviation*deviation-waver, 0.0004))
	u.least = middle + 2*u.spread
}

// at is the likeness that so many facts surpass, as their sketches tell.
func (u *usual) at(rank int) float64 {
	for apart, count := range u.counts {
		rank -= count
		if rank < 0 {
			return math.Cos(math.Pi * float64(apart) / (64 * sketchWords))
		}
	}
	return -1
}

// chance reports whether a fact may be as near as that by chance.
func (u *usual) chance(near float64) bool { return near < u.least }

// part turns a likeness into a number: 0, as near as by chance, to 1.
func (u *usual) part(near float64) float64 {
	return min(max((near-u.least)/max(u.top-u.least, 2*u.spread, 0.1), 0), 1)
}

// compare reads the vectors of what looked near, nearest first.
func (s *search) compare(glances []glance) []hit {
	near := make([]hit, len(glances))
	for i, g := range glances {
		near[i] = hit{id: g.fact, origin: g.origin, near: s.likeness(g.origin, g.fact)}
	}
	slices.SortFunc(near, func(a, b hit) int { return cmp.Or(cmp.Compare(b.near, a.near), cmp.Compare(b.id, a.id)) })
	return near
}

// likeness says how like the text a fact is; 0 where that is not known.
func (s *search) likeness(origin core.Path, fact uint64) float64 {
	v, _ := s.vectorOf(origin, fact)
	if v.model != s.meant.model || len(v.digits) != len(s.meant.digits) {
		return 0
	}
	return v.like(s.meant)
}

// met makes a hit of what is near, or finds the one that it is; ok is false where
// there is no such fact.
func (s *search) met(n hit) (i int, ok bool) {
	if i, ok := s.index[n.id]; ok {
		return i, true
	}
	rank := s.bucket(bucketWords).Get(postingKey(n.origin, termAll, binary.BigEndian.AppendUint64(nil, n.id)))
	if len(rank) != len(n.rank) {
		return 0, false
	}
	copy(n.rank[:], rank)
	s.hits = append(s.hits, n)
	return len(s.hits) - 1, true
}
