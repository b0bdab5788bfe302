package memory

import (
	"cmp"
	"math"
	"slices"

	"synthbot/core"
	"synthbot/core/sorting"
)

// Bounds of a search by meaning.
const (
	maxCandidates  = 700 // facts with the nearest sketches, whose vectors are compared
	maxSimilar     = 100 // of them that become hits at most
	minSimilar     = 3   // that become hits at least
	minForBaseline = 30  // facts that a baseline needs
)

// baseline is how similar most facts are to a text: in most places, more than half of them have nothing to do with it.
type baseline struct {
	counts    [64*sketchWords + 1]int // of facts, by the distance of their sketches
	threshold float64                 // below it, similarity may be chance
	spread    float64
	top       float64
}

// addSimilar adds the most similar facts to the best hits, and sets the similarity of the others.
func (s *search) addSimilar(best []int, origins []core.Path) []int {
	if s.vector == nil {
		return best
	}
	near := s.candidates(origins)
	if len(near) > 0 {
		s.baseline.top = near[0].similarity
	}
	for i, n := range near[:min(len(near), maxSimilar)] {
		if i >= minSimilar && n.similarity < s.baseline.threshold {
			break
		}
		at, known := s.index[n.id]
		if !known {
			p, _ := s.from.posting(n.origin, termAll, n.id)
			copy(n.rank[:], p.rank)
			at, s.hits = len(s.hits), append(s.hits, n)
		}
		if !slices.Contains(best, at) {
			best = append(best, at)
		}
	}
	for _, i := range best {
		h := &s.hits[i]
		if h.similarity == 0 {
			h.similarity = s.similarity(h.origin, h.id)
		}
	}
	return best
}

// candidates finds the facts with the nearest sketches, most similar first, and counts the distances of all.
func (s *search) candidates(origins []core.Path) []hit {
	wanted := s.vector.sketch()
	byDistance := func(a, b hit) int { return cmp.Compare(a.distance, b.distance) }
	nearest := topN[hit]{keep: maxCandidates, order: byDistance}
	for _, origin := range origins {
		s.facts().sketches(origin, 0, s.vector.model, func(fact uint64, stored []byte) {
			distance := wanted.distance(stored)
			s.baseline.counts[distance]++
			i, known := s.index[fact]
			if len(s.required) == 0 || known && s.hits[i].required == len(s.required) {
				nearest.add(hit{id: fact, origin: origin, distance: distance})
			}
		})
	}
	s.baseline.compute()
	near := nearest.take()
	for i := range near {
		near[i].similarity = s.similarity(near[i].origin, near[i].id)
	}
	sorting.Sort(near, func(a, b hit) int {
		return cmp.Or(cmp.Compare(b.similarity, a.similarity), cmp.Compare(b.id, a.id))
	})
	return near
}

// compute uses the less similar half of the facts, and subtracts the spread that sketches have by chance.
func (u *baseline) compute() {
	n := 0
	for _, count := range u.counts {
		n += count
	}
	if n < minForBaseline {
		return
	}
	middle, far := u.similarityAt(n/2), u.similarityAt(3*n/4)
	const chance = math.Pi * math.Pi / 4 / (64 * sketchWords)
	deviation := (middle - far) / 0.6745
	u.spread = math.Sqrt(max(deviation*deviation-chance, 0.0004))
	u.threshold = middle + 2*u.spread
}

// similarityAt estimates from the sketches which similarity so many facts exceed.
func (u *baseline) similarityAt(rank int) float64 {
	for distance, count := range u.counts {
		rank -= count
		if rank < 0 {
			return math.Cos(math.Pi * float64(distance) / (64 * sketchWords))
		}
	}
	return -1
}

// scaled maps a similarity to 0 (chance) … 1.
func (u *baseline) scaled(near float64) float64 {
	return min(max((near-u.threshold)/max(u.top-u.threshold, 2*u.spread, 0.1), 0), 1)
}

func (s *search) similarity(origin core.Path, fact uint64) float64 {
	v, _ := s.facts().vectorOf(origin, fact)
	if v.model != s.vector.model || len(v.components) != len(s.vector.components) {
		return 0
	}
	return v.cosine(s.vector)
}
