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
	"synthbot/core/sorting"
)

// Kinds of term; the first byte of each.
const (
	termWord  = "w"
	termTag   = "t"
	termAbout = "a"
	termTopic = "k"
	termSame  = "s" // the hash of a fact's words and of whom it is about
	termAll   = "*" // every fact
)

// Limits of one search.
const (
	maxQuery   = 64  // words
	maxRefined = 200 // hits whose common words are looked up
	halfLife   = 30 * 24 * time.Hour
)

func tagTerm(tag string) string { return termTag + shortHash(lower(strings.TrimSpace(tag))) }

func shortHash(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:12])
}

func aboutTerm(p core.Path) string { return termAbout + shortHash(p.String()) }

// aboutPaths returns the people whom a fact is about as one text.
func aboutPaths(f *core.Fact) string {
	var all []string
	for _, p := range f.About {
		all = append(all, p.String())
	}
	slices.Sort(all)
	return strings.Join(all, "\n")
}

func topicTerm(f core.Fact) string {
	return termTopic + shortHash(lower(strings.TrimSpace(f.Topic))+"\n"+aboutPaths(&f))
}

// sameTerm is equal for facts that say the same in the same words, in any order or form.
func sameTerm(f core.Fact) string {
	said := terms(f.Text, f.Language)
	slices.Sort(said)
	return termSame + shortHash(strings.Join(said, " ")+"\n"+aboutPaths(&f))
}

func factTerms(f *core.Fact) []string {
	all := []string{termAll, sameTerm(*f)}
	if f.Topic != "" {
		all = append(all, topicTerm(*f), tagTerm(f.Topic))
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
	return append(append(k, terminator), fact...)
}

// factsWith lists the facts of a term, oldest first.
func (t factTx) factsWith(origin core.Path, term string) (ids []uint64) {
	for id := range t.numbers(bucketWords, postingKey(origin, term, nil), 0) {
		ids = append(ids, id)
	}
	return ids
}

// collection is what a search looks through: facts, or passages of documents.
type collection interface {
	// newestWith calls use for the newest items with a term in an origin, at most max. It returns
	// how many there are, as far as it knows without reading more.
	newestWith(origin core.Path, term string, max int, use func(posting)) (n int)
	// posting returns the posting of a term for one item, if the item has the term.
	posting(origin core.Path, term string, id uint64) (posting, bool)
}

// posting says that an item has a term.
type posting struct {
	id     uint64
	rank   []byte // see rankFact
	strong bool   // it has the term more than once, or in its title
}

type factIndex struct{ *view }

func (v factIndex) newestWith(origin core.Path, term string, max int, use func(posting)) (n int) {
	prefix := postingKey(origin, term, nil)
	for k, rank := range v.backward(bucketWords, prefix, prefixEnd(prefix)) {
		if len(k) != len(prefix)+8 {
			continue
		}
		if n == max {
			break
		}
		use(posting{id: binary.BigEndian.Uint64(k[len(prefix):]), rank: rank})
		n++
	}
	return n
}

func (v factIndex) posting(origin core.Path, term string, id uint64) (posting, bool) {
	rank := v.bucket(bucketWords).Get(postingKey(origin, term, numberKey(id)))
	return posting{id: id, rank: rank}, rank != nil
}

// Recall returns the facts that match best, best first. Rare words count more; meaning counts as much as words, if
// there is an Embedder that answers in time; importance and recency decide among equals.
func (db *DB) Recall(ctx context.Context, q core.FactQuery) (found []core.Fact, err error) {
	meant := db.embeds.query(ctx, q.Text, db.pruning.config.Load().Recall)
	err = db.read(ctx, func(v *view) { found = v.recall(q, meant) })
	return found, err
}

func (v *view) recall(q core.FactQuery, meant *vector) (found []core.Fact) {
	hits := v.hits(q, meant)
	prefetch(&v.tx, func(r *reads) {
		for _, h := range hits[:min(len(hits), q.N)] {
			r.pair(bucketFacts, numberKey(h.id))
		}
	})
	for _, h := range hits {
		if len(found) == q.N {
			break
		}
		if f, ok := v.facts().fact(h.id); ok {
			found = append(found, f)
		}
	}
	return found
}

func (v *view) hits(q core.FactQuery, meant *vector) []hit {
	s := &search{view: v, from: factIndex{v}, maxPostings: 1000, text: q.Text, n: q.N, vector: meant}
	for _, tag := range q.Tags {
		s.required = append(s.required, tagTerm(tag))
	}
	for _, p := range q.About {
		s.required = append(s.required, aboutTerm(p))
	}
	origins := v.origins(q.See)
	prefetch(&v.tx, func(r *reads) { s.reads(origins, r) })
	s.total = v.bucket(bucketFacts).Sequence()
	return s.run(origins)
}

// languages lists the languages in which the words of a query are stemmed; "": not stemmed.
func languages() []string {
	return []string{"", "en", "de", "fr", "it", "es", "pt", "nl", "ru", "sv", "da", "no", "fi"}
}

type search struct {
	*view
	from        collection
	maxPostings int // postings of one term in one origin that are read, newest first
	text        string
	languages   []string // in which the text is stemmed; nil: see the function languages
	n           int      // how many hits are wanted
	meaningOnly bool     // only meaning counts
	vector      *vector  // of the text; nil: not known
	words       []string // of the text, in all forms
	wordOf      []int    // which word of the text each of words is a form of
	weighting
	required []string // terms that a hit must have
	hits     []hit
	index    map[uint64]int // into hits, by number
	baseline *baseline      // with a vector
}

type weighting struct {
	total       uint64          // items of the collection, including deleted ones
	weights     []float64       // of each of search.words
	wordWeights map[int]float64 // of each word: that of its most frequent form
	maxWeight   float64         // of all words together
}

// hit is a fact, or a passage, that was found.
type hit struct {
	id         uint64
	origin     core.Path
	words      uint64 // that it has, a bit for each
	strong     uint64 // those that count more
	required   int    // how many of the required terms it has
	rank       [7]byte
	distance   int     // of the sketches
	similarity float64 // to the text; 0: none, or not known
	score      float64
}

// run searches each origin, and returns the best hits, best first. For a frequent word only the
// newest items are read; refine looks it up for the best hits.
func (s *search) run(origins []core.Path) (found []hit) {
	none := func(posting) {}
	origins = slices.DeleteFunc(origins, func(p core.Path) bool { return s.from.newestWith(p, termAll, 1, none) == 0 })
	if len(origins) == 0 {
		return nil
	}
	s.index = make(map[uint64]int)
	if s.vector != nil {
		s.baseline = new(baseline)
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
	for _, i := range best {
		found = append(found, s.hits[i])
	}
	return found
}

func (s *search) addHits(origin core.Path, counts []int) {
	for _, term := range s.required {
		s.from.newestWith(origin, term, math.MaxInt, func(p posting) { s.hitFor(origin, p).required++ })
	}
	for i, word := range s.words {
		counts[i] += s.from.newestWith(origin, termWord+word, s.maxPostings, func(p posting) {
			s.hitFor(origin, p).addWord(i, p)
		})
	}
	if len(s.words)+len(s.required) == 0 && !s.meaningOnly {
		s.from.newestWith(origin, termAll, s.maxPostings, func(p posting) { s.hitFor(origin, p) })
	}
}

func (h *hit) addWord(i int, p posting) {
	h.words |= 1 << i
	if p.strong {
		h.strong |= 1 << i
	}
}

func (s *search) weigh(counts []int) {
	s.weights = make([]float64, len(s.words))
	s.wordWeights = make(map[int]float64)
	for i, n := range counts {
		s.weights[i] = math.Log1p(float64(s.total+1) / float64(n+1))
		if worth, ok := s.wordWeights[s.wordOf[i]]; !ok || s.weights[i] < worth {
			s.wordWeights[s.wordOf[i]] = s.weights[i]
		}
	}
	for word := range len(s.wordWeights) { // in order, so that the sum is always the same
		s.maxWeight += s.wordWeights[word]
	}
}

// hitFor returns the hit of a posting, which it adds if it is new.
func (s *search) hitFor(origin core.Path, p posting) *hit {
	i, ok := s.index[p.id]
	if !ok {
		i = len(s.hits)
		s.index[p.id] = i
		if i == cap(s.hits) {
			s.hits = slices.Grow(s.hits, i+64) // twice as many: common words have thousands
		}
		s.hits = append(s.hits, hit{id: p.id, origin: origin})
		copy(s.hits[i].rank[:], p.rank)
	}
	return &s.hits[i]
}

// best returns the indices of the best hits that have all required terms.
func (s *search) best() []int {
	b := topN[int]{keep: max(maxRefined, s.n), order: s.order}
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

func (s *search) refine(best []int, counts []int) {
	for i, n := range counts {
		if n < s.maxPostings {
			continue
		}
		for _, k := range best {
			h := &s.hits[k]
			if h.words&(1<<i) != 0 {
				continue
			}
			if p, ok := s.from.posting(h.origin, termWord+s.words[i], h.id); ok {
				h.addWord(i, p)
			}
		}
	}
	for _, k := range best {
		s.hits[k].score = s.score(&s.hits[k])
	}
	sorting.Sort(best, s.order)
}

// origins returns the visible places, and all above them.
func (v *view) origins(places []core.Path) []core.Path {
	all := make([]core.Path, 0, 4)
	prefetch(&v.tx, func(r *reads) {
		for _, see := range places {
			r.path(see)
		}
	})
	for _, see := range places {
		for see = v.resolve(see).path; ; see = see.Parent() {
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

// queryWords sets the words of the text, stemmed in each of the languages.
func (s *search) queryWords() {
	if s.meaningOnly || s.words != nil {
		return
	}
	asked := make(map[string]int)
	if s.languages == nil { // made late: a search without facts needs none
		s.languages = languages()
	}
	for _, language := range s.languages {
		stem := stemmer(language)
		words(s.text, func(word string) bool {
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

// score weighs words by how rare they are, similarity of meaning, then importance and recency. Both words and meaning
// are squared, so that much of one counts more than a little of both; fusing ranks found less.
func (s *search) score(h *hit) float64 {
	words := s.sum(h.words) + s.sum(h.strong)/2
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

func (s *search) sum(words uint64) (sum float64) {
	for rest := words; rest != 0; rest &= rest - 1 {
		sum += s.weights[bits.TrailingZeros64(rest)]
	}
	return sum
}

// topN keeps the first few of many, in order.
type topN[T any] struct {
	keep  int
	order func(a, b T) int
	all   []T
	full  bool // all[keep-1] is the worst that can stay
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
	sorting.Sort(f.all, f.order)
	f.all = f.all[:min(len(f.all), f.keep)]
	return f.all
}
