package memory

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"synthbot/core"
)

// Query asks for facts.
type Query struct {
	// See are the places that the asker stands in: only what was said there or
	// above is looked at. Places that share what they know are named together.
	See      []core.Path
	Text     string // words; "": by importance and time alone
	Language string // of Text; "": words are tried in all languages
	Tags     []string
	About    []core.Path // all of these
	N        int         // how many at most
}

// Found is a fact and how well it answers.
type Found struct {
	Fact
	Score float64
}

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
	maxPostings = 3000 // that are looked at of one term in one place, newest first
	halfLife    = 30 * 24 * time.Hour
)

func tagTerm(tag string) string { return termTag + short(strings.ToLower(strings.TrimSpace(tag))) }

// short keeps what stands in keys short.
func short(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:12])
}

func aboutTerm(p core.Path) string { return termAbout + short(p.String()) }

func (f *Fact) abouts() string {
	var all []string
	for _, p := range f.About {
		all = append(all, p.String())
	}
	slices.Sort(all)
	return strings.Join(all, "\n")
}

func topicTerm(f Fact) string {
	return termTopic + short(strings.ToLower(strings.TrimSpace(f.Topic))+"\n"+f.abouts())
}

// sameTerm is the same of facts that say the same in the same words, in any
// order or form.
func sameTerm(f Fact) string {
	said := terms(f.Text, f.Language)
	slices.Sort(said)
	return termSame + short(strings.Join(said, " ")+"\n"+f.abouts())
}

// terms are all that a fact can be found by.
func (f *Fact) terms() []string {
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
	k, v := c.Seek(after(prefix))
	if k == nil {
		k, v = c.Last()
	} else {
		k, v = c.Prev()
	}
	for ; n < max && bytes.HasPrefix(k, prefix); k, v = c.Prev() {
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
		s := &search{tx: &v.tx, q: q, hits: make(map[uint64]*hit)}
		s.run()
		found, err = s.best()
		return err
	})
	return found, err
}

type search struct {
	*tx
	q    Query
	hits map[uint64]*hit
}

type hit struct {
	words float64 // what the words are worth
	rank  []byte
	must  int // how many of the conditions it fulfils
}

// run looks at each origin that can be seen.
func (s *search) run() {
	for _, origin := range s.origins() {
		total := s.bucket(bucketFacts).Sequence()
		for _, term := range s.conditions() {
			s.ranked(origin, term, math.MaxInt, func(id uint64, rank []byte) { s.hit(id, rank).must++ })
		}
		for _, word := range s.words() {
			var ids []uint64
			n := s.ranked(origin, termWord+word, maxPostings, func(id uint64, rank []byte) {
				ids = append(ids, id)
				s.hit(id, rank)
			})
			worth := math.Log1p(float64(total+1) / float64(n+1))
			for _, id := range ids {
				s.hits[id].words += worth
			}
		}
		if s.q.Text == "" && len(s.conditions()) == 0 {
			s.ranked(origin, termAll, maxPostings, func(id uint64, rank []byte) { s.hit(id, rank) })
		}
	}
}

func (s *search) hit(id uint64, rank []byte) *hit {
	h := s.hits[id]
	if h == nil {
		h = &hit{rank: rank}
		s.hits[id] = h
	}
	return h
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

// words are those of the text, in every language where its own is not known.
func (s *search) words() []string {
	languages := []string{s.q.Language, ""}
	if stemmer(s.q.Language) == nil {
		languages = []string{"", "en", "de", "fr", "it", "es", "pt", "nl", "ru", "sv", "da", "no", "fi"}
	}
	var all []string
	for _, language := range languages {
		for _, word := range terms(s.q.Text, language) {
			if !slices.Contains(all, word) {
				all = append(all, word)
			}
		}
	}
	return all[:min(len(all), maxWords/8)]
}

// score weighs what was found.
func (s *search) score(h *hit) float64 {
	if len(h.rank) != 7 {
		return h.words
	}
	said := time.Unix(int64(binary.BigEndian.Uint32(h.rank))*3600, 0)
	age := max(s.now.Sub(said), 0)
	recency := math.Exp2(-float64(age) / float64(halfLife))
	length := float64(binary.BigEndian.Uint16(h.rank[5:]))
	return h.words/(1+length/200) + float64(h.rank[4])/10 + recency
}

// best reads the facts with the highest scores.
func (s *search) best() ([]Found, error) {
	type ranked struct {
		id    uint64
		score float64
	}
	var all []ranked
	must := len(s.conditions())
	for id, h := range s.hits {
		if h.must < must || s.q.Text != "" && must == 0 && h.words == 0 {
			continue
		}
		all = append(all, ranked{id, s.score(h)})
	}
	slices.SortFunc(all, func(a, b ranked) int {
		return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(b.id, a.id))
	})
	var found []Found
	for _, r := range all[:min(len(all), max(s.q.N, 0))] {
		f, ok, err := s.fact(strconv.FormatUint(r.id, 36))
		if err != nil {
			return nil, err
		}
		if ok {
			found = append(found, Found{f, r.score})
		}
	}
	return found, nil
}
