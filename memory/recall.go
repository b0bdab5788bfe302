package memory

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"math"
	"math/bits"
	"slices"
	"strconv"
	"strings"
	"time"

	"synthbot/core"
)

// Query and Found are core's.
type (
	Query = core.FactQuery
	Found = core.Found
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

func tagTerm(tag string) string { return termTag + short(strings.ToLower(strings.TrimSpace(tag))) }

// short keeps what stands in keys short.
func short(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:12])
}

func aboutTerm(p core.Path) string { return termAbout + short(p.String()) }

func abouts(f *Fact) string {
	var all []string
	for _, p := range f.About {
		all = append(all, p.String())
	}
	slices.Sort(all)
	return strings.Join(all, "\n")
}

func topicTerm(f Fact) string {
	return termTopic + short(strings.ToLower(strings.TrimSpace(f.Topic))+"\n"+abouts(&f))
}

// sameTerm is the same of facts that say the same in the same words, in any
// order or form.
func sameTerm(f Fact) string {
	said := terms(f.Text, f.Language)
	slices.Sort(said)
	return termSame + short(strings.Join(said, " ")+"\n"+abouts(&f))
}

// terms are all that a fact can be found by.
func factTerms(f *Fact) []string {
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

// postings calls use for the newest facts of a term, at most max.
func (t *tx) postings(origin core.Path, term string, max int, use func(id uint64)) {
	t.ranked(origin, term, max, func(id uint64, _ []byte) { use(id) })
}

func (t *tx) ranked(origin core.Path, term string, max int, use func(id uint64, rank []byte)) (n int) {
	prefix := postingKey(origin, term, nil)
	c := t.bucket(bucketWords).Cursor()
	back := c.Prev
	if k, _ := c.Seek(after(prefix)); k == nil {
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
// the rarer they are; importance and recency decide among equals.
func (db *DB) Recall(ctx context.Context, q Query) (found []Found, err error) {
	err = db.view(ctx, func(v *view) error {
		found, err = v.Recall(q)
		return err
	})
	return found, err
}

// Recall is DB.Recall within a view, for those who ask the View for it.
func (v *view) Recall(q Query) (found []Found, err error) {
	err = v.read(core.Path{}, func(place) error {
		s := &search{tx: &v.tx, q: q}
		s.run()
		found, err = s.best()
		return err
	})
	return found, err
}

// search is one Recall on its way.
type search struct {
	*tx
	q     Query
	words []string
	worth []float64 // of each word
	must  []string  // terms that a fact must have
	hits  []hit
	index map[uint64]int // into hits, by fact
}

// hit is a fact that something led to.
type hit struct {
	id     uint64
	origin core.Path
	words  uint64 // which of the words it has, a bit for each
	must   int    // how many of the terms that it must have
	rank   [7]byte
	score  float64
}

// run looks at each origin that can be seen. Of a common word only the newest
// facts are met; whether the best of those that other words led to have it too
// is looked up in the end.
func (s *search) run() {
	s.words, s.must, s.index = s.queryWords(), s.conditions(), make(map[uint64]int)
	s.worth = make([]float64, len(s.words))
	counts := make([]int, len(s.words))
	for _, origin := range s.origins() {
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
	total := s.bucket(bucketFacts).Sequence()
	for i, n := range counts {
		s.worth[i] = math.Log1p(float64(total+1) / float64(n+1))
	}
	s.refine(counts)
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

// refine drops what fulfils too little, sorts, and looks the common words of the
// best up.
func (s *search) refine(counts []int) {
	s.hits = slices.DeleteFunc(s.hits, func(h hit) bool {
		return h.must < len(s.must) || len(s.words) > 0 && len(s.must) == 0 && h.words == 0
	})
	s.sort()
	best := s.hits[:min(len(s.hits), max(refined, s.q.N))]
	words := s.bucket(bucketWords)
	for i, n := range counts {
		if n < maxPostings {
			continue
		}
		for k := range best {
			h := &best[k]
			key := postingKey(h.origin, termWord+s.words[i], binary.BigEndian.AppendUint64(nil, h.id))
			if h.words&(1<<i) == 0 && words.Get(key) != nil {
				h.words |= 1 << i
			}
		}
	}
	s.sort()
}

// sort puts the best first; of two that are as good, the newer.
func (s *search) sort() {
	for i := range s.hits {
		s.hits[i].score = s.score(&s.hits[i])
	}
	slices.SortFunc(s.hits, func(a, b hit) int {
		return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(b.id, a.id))
	})
}

// origins are the places that can be seen, and all above them.
func (s *search) origins() []core.Path {
	var all []core.Path
	for _, see := range s.q.See {
		if p, err := s.resolve(see); err == nil {
			see = p.path
		}
		for {
			if !slices.Contains(all, see) {
				all = append(all, see)
			}
			if see.IsZero() {
				break
			}
			see = see.Parent()
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

// queryWords are those of the text, in every language where its own is not
// known.
func (s *search) queryWords() []string {
	languages := []string{s.q.Language, ""}
	if stemmer(s.q.Language) == nil {
		languages = []string{"", "en", "de", "fr", "it", "es", "pt", "nl", "ru", "sv", "da", "no", "fi"}
	}
	var all []string
	for _, language := range languages {
		for _, word := range terms(s.q.Text, language) {
			if !slices.Contains(all, word) && len(all) < maxQuery {
				all = append(all, word)
			}
		}
	}
	return all
}

// score weighs what was found: the words by how rare they are, then importance
// and recency.
func (s *search) score(h *hit) float64 {
	score := 0.0
	for words := h.words; words != 0; words &= words - 1 {
		score += s.worth[bits.TrailingZeros64(words)]
	}
	said := time.Unix(int64(binary.BigEndian.Uint32(h.rank[:]))*3600, 0)
	recency := math.Exp2(-float64(max(s.now.Sub(said), 0)) / float64(halfLife))
	length := float64(binary.BigEndian.Uint16(h.rank[5:]))
	return score/(1+length/200) + float64(h.rank[4])/10 + recency
}

// best reads the facts with the highest scores.
func (s *search) best() ([]Found, error) {
	var found []Found
	for _, h := range s.hits[:min(len(s.hits), max(s.q.N, 0))] {
		f, ok, err := s.fact(strconv.FormatUint(h.id, 36))
		if err != nil {
			return nil, err
		}
		if ok {
			found = append(found, Found{Fact: f, Score: h.score})
		}
	}
	return found, nil
}
