package memory

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
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
	maxRefined  = 200  // hits whose common words are looked up
	halfLife    = 30 * 24 * time.Hour
)

func tagTerm(tag string) string { return termTag + shortHash(lower(strings.TrimSpace(tag))) }

// shortHash is a hash for use in a key.
func shortHash(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:12])
}

func aboutTerm(p core.Path) string { return termAbout + shortHash(p.String()) }

func abouts(f *core.Fact) string {
	var all []string
	for _, p := range f.About {
		all = append(all, p.String())
	}
	slices.Sort(all)
	return strings.Join(all, "\n")
}

func topicTerm(f core.Fact) string {
	return termTopic + shortHash(lower(strings.TrimSpace(f.Topic))+"\n"+abouts(&f))
}

// sameTerm is equal for facts that say the same in the same words, in any order or form.
func sameTerm(f core.Fact) string {
	said := terms(f.Text, f.Language)
	slices.Sort(said)
	return termSame + shortHash(strings.Join(said, " ")+"\n"+abouts(&f))
}

// factTerms are all terms by which a fact is found.
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

// postingKey is origin, term, 0, fact: a search sees the facts of one origin only.
func postingKey(origin core.Path, term string, fact []byte) []byte {
	k := append(placeKey(origin), term...)
	return append(append(k, ending), fact...)
}

// factsWith lists the facts of a term, oldest first.
func (t factTx) factsWith(origin core.Path, term string) (ids []uint64) {
	prefix := postingKey(origin, term, nil)
	for k := range t.bucket(bucketWords).prefixed(prefix) {
		if len(k) == len(prefix)+8 {
			ids = append(ids, binary.BigEndian.Uint64(k[len(prefix):]))
		}
	}
	return ids
}

// newestWith calls use for the newest facts of a term, at most max.
func (v *view) newestWith(origin core.Path, term string, max int, use func(id uint64, rank []byte)) (n int) {
	prefix := postingKey(origin, term, nil)
	for k, rank := range v.backward(bucketWords, prefix, after(prefix)) {
		if len(k) != len(prefix)+8 {
			continue
		}
		if n == max {
			break
		}
		use(binary.BigEndian.Uint64(k[len(prefix):]), rank)
		n++
	}
	return n
}

// Recall returns the facts that match best, best first. Rare words count more; meaning
// counts as much as words, if there is an Embedder that answers in time; importance and
// recency decide among equals.
func (db *DB) Recall(ctx context.Context, q core.FactQuery) (found []core.FactMatch, err error) {
	meant, known := db.embeds.query(ctx, q.Text, db.pruning.config.Load().Recall)
	err = db.look(ctx, func(v *view) {
		s := &search{view: v, q: q}
		if known {
			s.vector = &meant
		}
		found = s.run()
	})
	return found, err
}

// search is one Recall.
type search struct {
	*view
	q         core.FactQuery
	vector    *vector   // of the text; nil: not known
	words     []string  // of the text, in all forms
	wordOf    []int     // which word of the text each is a form of
	weights   []float64 // of each
	maxWeight float64   // of all words of the text together
	required  []string  // terms that a fact must have
	hits      []hit
	index     map[uint64]int // into hits, by fact
	baseline  *baseline      // with a vector
}

// hit is a fact that was found.
type hit struct {
	id         uint64
	origin     core.Path
	words      uint64 // that it has, a bit for each
	required   int    // how many of the required terms it has
	rank       [7]byte
	distance   int     // of the sketches
	similarity float64 // to the text; 0: none, or not known
	score      float64
}

// run searches each visible origin. Of a frequent word only the newest facts are found; in
// the end, it is looked up for the best of the others.
func (s *search) run() []core.FactMatch {
	s.index = make(map[uint64]int)
	if s.vector != nil {
		s.baseline = new(baseline)
	}
	for _, tag := range s.q.Tags {
		s.required = append(s.required, tagTerm(tag))
	}
	for _, p := range s.q.About {
		s.required = append(s.required, aboutTerm(p))
	}
	none := func(uint64, []byte) {}
	origins := slices.DeleteFunc(s.origins(), func(p core.Path) bool { return s.newestWith(p, termAll, 1, none) == 0 })
	if len(origins) == 0 {
		return nil
	}
	s.queryWords()
	counts := make([]int, len(s.words))
	for _, origin := range origins {
		s.addHits(origin, counts)
	}
	s.weigh(counts)
	best := s.best()
	best = s.addSimilar(best, origins)
	s.refine(best, counts)
	return s.found(best)
}

// addHits adds the facts of one origin that have the words and the required terms.
func (s *search) addHits(origin core.Path, counts []int) {
	for _, term := range s.required {
		s.newestWith(origin, term, math.MaxInt, func(id uint64, rank []byte) { s.hit(id, origin, rank).required++ })
	}
	for i, word := range s.words {
		counts[i] += s.newestWith(origin, termWord+word, maxPostings, func(id uint64, rank []byte) {
			s.hit(id, origin, rank).words |= 1 << i
		})
	}
	if len(s.words)+len(s.required) == 0 {
		s.newestWith(origin, termAll, maxPostings, func(id uint64, rank []byte) { s.hit(id, origin, rank) })
	}
}

// weigh sets the weight of each word: rare words weigh more.
func (s *search) weigh(counts []int) {
	s.weights = make([]float64, len(s.words))
	total := s.bucket(bucketFacts).Sequence()
	least := make(map[int]float64) // the weight of the most frequent form of each word of the text
	for i, n := range counts {
		s.weights[i] = math.Log1p(float64(total+1) / float64(n+1))
		if worth, ok := least[s.wordOf[i]]; !ok || s.weights[i] < worth {
			least[s.wordOf[i]] = s.weights[i]
		}
	}
	for word := range len(least) { // in order, so that the sum is always the same
		s.maxWeight += least[word]
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

// best chooses the hits with the best scores, as indices. They have all required terms.
func (s *search) best() []int {
	b := topN[int]{keep: max(maxRefined, s.q.N), order: s.order}
	for i := range s.hits {
		h := &s.hits[i]
		if h.required == len(s.required) {
			h.score = s.score(h)
			b.add(i)
		}
	}
	return b.take()
}

// order sorts by score, then newest first.
func (s *search) order(a, b int) int {
	return cmp.Or(cmp.Compare(s.hits[b].score, s.hits[a].score), cmp.Compare(s.hits[b].id, s.hits[a].id))
}

// refine looks up which of the best have the frequent words, and sorts them.
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

// origins are the visible places, and all above them.
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

// queryWords lists the words of the text, stemmed, in every language if its own is not
// known.
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
				s.words, s.wordOf = append(s.words, stemmed), append(s.wordOf, asked[word])
			}
			return len(s.words) < maxQuery
		})
	}
}

// score weighs words by how rare they are, similarity of meaning, then importance and
// recency. Both words and meaning are squared, so that much of one counts more than a little
// of both; fusing ranks found less.
func (s *search) score(h *hit) float64 {
	words := 0.0
	for bit := h.words; bit != 0; bit &= bit - 1 {
		words += s.weights[bits.TrailingZeros64(bit)]
	}
	length := float64(binary.BigEndian.Uint16(h.rank[5:]))
	words /= 1 + length/200
	said := time.Unix(int64(binary.BigEndian.Uint32(h.rank[:]))*3600, 0)
	recency := math.Exp2(-float64(max(s.now.Sub(said), 0)) / float64(halfLife))
	also := float64(h.rank[4])/10 + recency
	if s.vector == nil {
		return words + also
	}
	words = min(words/max(s.maxWeight, 1), 1)
	near := s.baseline.scaled(h.similarity)
	return words*words + near*near + h.similarity/20 + also/20
}

// found reads the facts.
func (s *search) found(best []int) (found []core.FactMatch) {
	for _, i := range best {
		if len(found) >= s.q.N {
			break
		}
		h := &s.hits[i]
		f, ok := s.facts().fact(h.id)
		if ok {
			found = append(found, core.FactMatch{Fact: f, Score: h.score})
		}
	}
	return found
}

// topN keeps the first few of many, in order.
type topN[T any] struct {
	keep  int
	order func(a, b T) int
	all   []T
	full  bool // all[keep-1] is the worst that may stay
}

func (f *topN[T]) add(x T) {
	if f.full && f.order(x, f.all[f.keep-1]) >= 0 {
		return
	}
	f.all = append(f.all, x)
	if len(f.all) >= 2*f.keep {
		f.take()
		f.full = true
	}
}

func (f *topN[T]) take() []T {
	slices.SortFunc(f.all, f.order)
	f.all = f.all[:min(len(f.all), f.keep)]
	return f.all
}
