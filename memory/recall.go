package memory

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math"
	"math/bits"
	"slices"
	"strings"
	"time"

	"synthbot/core"
)

// Kinds of term; the first byte of each.
const (
	termWord  = "w"
	termTag   = "t"
	termAbout = "a"
	termTopic = "k"
	termSame  = "s" // the hash of what is said about whom
	termAll   = "*" // every fact
)

// Limits of one search.
const (
	maxPostings = 1000 // that are looked at of one term in one place, newest first
	maxQuery    = 64   // words
	refined     = 200  // hits whose common words are looked up
	halfLife    = 30 * 24 * time.Hour
)

func tagTerm(tag string) string { return termTag + short(lower(strings.TrimSpace(tag))) }

// short shortens a text for use in a key.
func short(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:12])
}

func aboutTerm(p core.Path) string { return termAbout + short(p.String()) }

func abouts(f *core.Fact) string {
	var all []string
	for _, p := range f.About {
		all = append(all, p.String())
	}
	slices.Sort(all)
	return strings.Join(all, "\n")
}

func topicTerm(f core.Fact) string {
	return termTopic + short(lower(strings.TrimSpace(f.Topic))+"\n"+abouts(&f))
}

// sameTerm is the same of facts that say the same in the same words, in any
// order or form.
func sameTerm(f core.Fact) string {
	said := terms(f.Text, f.Language)
	slices.Sort(said)
	return termSame + short(strings.Join(said, " ")+"\n"+abouts(&f))
}

// terms are all that a fact can be found by.
func factTerms(f *core.Fact) []string {
	all := []string{termAll, sameTerm(*f)}
	if f.Topic != "" {
		all = append(all, topicTerm(*f))
	}
	for _, tag := range f.Tags {
		all = append(all, tagTerm(tag))
		for _, word := range terms(tag, f.Language) {
			all = append(all, termWord+word)
		}
	}
	for _, p := range f.About {
		all = append(all, aboutTerm(p))
	}
	for _, word := range terms(f.Text, f.Language) {
		all = append(all, termWord+word)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// postingKey is origin, term, 0, fact: what was said elsewhere is never met.
func postingKey(origin core.Path, term string, fact []byte) []byte {
	k := append(placeKey(origin), term...)
	return append(append(k, ending), fact...)
}

// having lists the facts of a term, oldest first. It goes forward, as a cursor must in
// a transaction that may have deleted: few facts share one of the terms that it is
// asked for.
func (t *tx) having(origin core.Path, term string) (ids []uint64) {
	prefix := postingKey(origin, term, nil)
	c := t.bucket(bucketWords).Cursor()
	for k, _ := c.Seek(prefix); bytes.HasPrefix(k, prefix); k, _ = c.Next() {
		if len(k) == len(prefix)+8 {
			ids = append(ids, binary.BigEndian.Uint64(k[len(prefix):]))
		}
	}
	return ids
}

// ranked calls use for the newest facts of a term, at most max.
func (v *view) ranked(origin core.Path, term string, max int, use func(id uint64, rank []byte)) (n int) {
	prefix := postingKey(origin, term, nil)
	c := v.bucket(bucketWords).Cursor()
	back := c.Prev
	k, _ := c.Seek(after(prefix))
	if k == nil {
		back = c.Last
	}
	for k, v := back(); n < max && bytes.HasPrefix(k, prefix); k, v = c.Prev() {
		if len(k) != len(prefix)+8 {
			continue
		}
		use(binary.BigEndian.Uint64(k[len(prefix):]), v)
		n++
	}
	return n
}

// Recall returns the facts that answer best, best first. Words count the more
// the rarer they are; what a fact means counts as much, where there is an
// Embedder that answers in time; importance and recency decide among equals.
func (db *DB) Recall(ctx context.Context, q core.FactQuery) (found []core.FactMatch, err error) {
	meant, known := db.meaning.query(ctx, q.Text, db.config().Recall)
	err = db.view(ctx, func(v *view) error {
		return v.read(core.Path{}, func(place) error {
			s := &search{view: v, q: q}
			if known {
				s.meant = &meant
			}
			found = s.run()
			return nil
		})
	})
	return found, err
}

// search is one Recall on its way.
type search struct {
	*view
	q     core.FactQuery
	meant *vector   // what the text means; nil: that is not known
	words []string  // in all forms
	asked []int     // which word of the text each is a form of
	worth []float64 // of each
	most  float64   // that all words of the text together are worth
	must  []string  // terms that a fact must have
	hits  []hit
	index map[uint64]int // into hits, by fact
	near  usual
}

// hit is a fact that something led to.
type hit struct {
	id     uint64
	origin core.Path
	words  uint64 // which of the words it has, a bit for each
	must   int    // how many of the terms that it must have
	rank   [7]byte
	near   float64 // how like the text it is; 0: not known, or not at all
	score  float64
}

// run looks at each origin that can be seen. Of a common word only the newest
// facts are met; whether the best of those that something else led to have it
// too is looked up in the end.
func (s *search) run() []core.FactMatch {
	s.must, s.index = s.conditions(), make(map[uint64]int)
	s.queryWords()
	origins := s.origins()
	counts := make([]int, len(s.words))
	for _, origin := range origins {
		s.meet(origin, counts)
	}
	s.weigh(counts)
	best := s.best()
	best = s.means(best, origins)
	s.refine(best, counts)
	return s.found(best)
}

// meet makes hits of the facts of one origin that words and conditions lead to.
func (s *search) meet(origin core.Path, counts []int) {
	for _, term := range s.must {
		s.ranked(origin, term, math.MaxInt, func(id uint64, rank []byte) { s.hit(id, origin, rank).must++ })
	}
	for i, word := range s.words {
		counts[i] += s.ranked(origin, termWord+word, maxPostings, func(id uint64, rank []byte) {
			s.hit(id, origin, rank).words |= 1 << i
		})
	}
	if len(s.words)+len(s.must) == 0 {
		s.ranked(origin, termAll, maxPostings, func(id uint64, rank []byte) { s.hit(id, origin, rank) })
	}
}

// weigh says what each word is worth: the rarer, the more.
func (s *search) weigh(counts []int) {
	s.worth = make([]float64, len(s.words))
	total := s.bucket(bucketFacts).Sequence()
	least := make(map[int]float64) // of the words of the text, what their most frequent form is worth
	for i, n := range counts {
		s.worth[i] = math.Log1p(float64(total+1) / float64(n+1))
		if worth, ok := least[s.asked[i]]; !ok || s.worth[i] < worth {
			least[s.asked[i]] = s.worth[i]
		}
	}
	for word := range len(least) {
		s.most += least[word]
	}
}

func (s *search) hit(id uint64, origin core.Path, rank []byte) *hit {
	i, ok := s.index[id]
	if !ok {
		i = len(s.hits)
		s.index[id] = i
		s.hits = append(s.hits, hit{id: id, origin: origin})
		copy(s.hits[i].rank[:], rank)
	}
	return &s.hits[i]
}

// answers reports whether a hit has all that it must have, and some of the words
// where nothing else led to it.
func (s *search) answers(h *hit) bool {
	return h.must == len(s.must) && (h.words != 0 || len(s.words) == 0 || len(s.must) > 0)
}

// best chooses the hits that are worth a closer look, as indices.
func (s *search) best() []int {
	b := foremost[int]{keep: max(refined, s.q.N), order: s.order}
	for i := range s.hits {
		h := &s.hits[i]
		if s.answers(h) {
			h.score = s.score(h)
			b.add(i)
		}
	}
	return b.take()
}

// order puts the best first; of two that are as good, the newer.
func (s *search) order(a, b int) int {
	return cmp.Or(cmp.Compare(s.hits[b].score, s.hits[a].score), cmp.Compare(s.hits[b].id, s.hits[a].id))
}

// refine looks up which of the best have the common words too, and puts them in
// their order.
func (s *search) refine(best []int, counts []int) {
	words := s.bucket(bucketWords)
	for i, n := range counts {
		if n < maxPostings {
			continue
		}
		for _, k := range best {
			h := &s.hits[k]
			key := postingKey(h.origin, termWord+s.words[i], binary.BigEndian.AppendUint64(nil, h.id))
			if h.words&(1<<i) == 0 && words.Get(key) != nil {
				h.words |= 1 << i
			}
		}
	}
	for _, k := range best {
		s.hits[k].score = s.score(&s.hits[k])
	}
	slices.SortFunc(best, s.order)
}

// origins are the places that can be seen, and all above them.
func (s *search) origins() []core.Path {
	var all []core.Path
	for _, see := range s.q.See {
		for see = s.resolve(see).path; ; see = see.Parent() {
			if !slices.Contains(all, see) {
				all = append(all, see)
			}
			if see.IsZero() {
				break
			}
		}
	}
	return all
}

// conditions are the terms that a fact must have.
func (s *search) conditions() []string {
	var all []string
	for _, tag := range s.q.Tags {
		all = append(all, tagTerm(tag))
	}
	for _, p := range s.q.About {
		all = append(all, aboutTerm(p))
	}
	return all
}

// queryWords lists the words of the text, stemmed, in every language where its
// own is not known.
func (s *search) queryWords() {
	languages := []string{s.q.Language, ""}
	if stemmer(s.q.Language) == nil {
		languages = []string{"", "en", "de", "fr", "it", "es", "pt", "nl", "ru", "sv", "da", "no", "fi"}
	}
	asked := make(map[string]int)
	for _, language := range languages {
		stem := stemmer(language)
		words(s.q.Text, func(word string) bool {
			if _, ok := asked[word]; !ok {
				asked[word] = len(asked)
			}
			stemmed := stemmed(word, stem)
			if !slices.Contains(s.words, stemmed) {
				s.words, s.asked = append(s.words, stemmed), append(s.asked, asked[word])
			}
			return len(s.words) < maxQuery
		})
	}
}

// score weighs what was found: the words by how rare they are, what is meant,
// then importance and recency. Squares let much of either count more than a
// little of both; ranks, fused, found less.
func (s *search) score(h *hit) float64 {
	words := 0.0
	for bit := h.words; bit != 0; bit &= bit - 1 {
		words += s.worth[bits.TrailingZeros64(bit)]
	}
	length := float64(binary.BigEndian.Uint16(h.rank[5:]))
	words /= 1 + length/200
	said := time.Unix(int64(binary.BigEndian.Uint32(h.rank[:]))*3600, 0)
	recency := math.Exp2(-float64(max(s.now.Sub(said), 0)) / float64(halfLife))
	also := float64(h.rank[4])/10 + recency
	if s.meant == nil {
		return words + also
	}
	words = min(words/max(s.most, 1), 1)
	near := s.near.part(h.near)
	return words*words + near*near + h.near/20 + also/20
}

// found reads the facts.
func (s *search) found(best []int) (found []core.FactMatch) {
	for _, i := range best {
		if len(found) >= s.q.N {
			break
		}
		h := &s.hits[i]
		f, ok, err := s.fact(factID(h.id))
		if err != nil {
			s.db.odd(fmt.Errorf("memory %s: %w", factID(h.id), err))
		}
		if err == nil && ok {
			found = append(found, core.FactMatch{Fact: f, Score: h.score})
		}
	}
	return found
}

// foremost keeps the first few of many, in the order that order tells.
type foremost[T any] struct {
	keep  int
	order func(a, b T) int
	all   []T
	full  bool // the last of all is the worst that may stay
}

func (f *foremost[T]) add(x T) {
	if f.full && f.order(x, f.all[f.keep-1]) >= 0 {
		return
	}
	f.all = append(f.all, x)
	if len(f.all) >= 2*f.keep {
		f.take()
		f.full = true
	}
}

func (f *foremost[T]) take() []T {
	slices.SortFunc(f.all, f.order)
	f.all = f.all[:min(len(f.all), f.keep)]
	return f.all
}
