package offline

import (
	"cmp"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"strings"
	"time"
	"unicode"

	"synthbot/core/engine/offline/phrases"
	"synthbot/core/engine/offline/who"
	"synthbot/core/sorting"
	"synthbot/core/spoken"
	"synthbot/core/txt"
)

// speaker answers one scene in one language.
type speaker struct {
	*scene
	kinds    map[string]kind // by topic
	book     *phrases.Book
	books    []*phrases.Book // the speaker's own language first
	now      time.Time
	standby  bool
	seed     uint32
	pick     func(n int) int // returns a random number below n
	reader   *spoken.Reader  // takes "at 7" for a time in waking hours
	morning  *spoken.Reader  // takes "at 7" for 7:00
	other    string          // the answer to the other requests
	greeting string          // precedes the answer
	strict   bool            // does not answer that a place is unknown
}

func (m *Model) speaker(s *scene) *speaker {
	sp := &speaker{scene: s, now: s.payload.Timestamp, standby: m.Standby, kinds: m.kinds()}
	if sp.now.IsZero() {
		sp.now = m.Clock().In(m.Zone)
	}
	if zone, err := time.LoadLocation(s.zone); s.zone != "" && err == nil {
		sp.now = sp.now.In(zone)
	}
	h := fnv.New32a()
	h.Write([]byte(s.message()))
	said := h.Sum32()
	for _, part := range []string{"", s.payload.Source.ID, s.persona.Name} {
		h.Write([]byte(part))
		h.Write([]byte{0})
	}
	sp.seed, sp.pick = h.Sum32(), rand.IntN
	if m.Seed != 0 {
		sp.seed, sp.pick = 0, rand.New(rand.NewPCG(m.Seed, uint64(said))).IntN
	}
	sp.reader, sp.morning = m.reader.Waking(), m.reader
	sp.orderBooks(m.books())
	return sp
}

// orderBooks puts the book of the message's language first. It decides by the words of the message, then by what the
// user said before, then by recon or the instructions. Unlike recon, it follows a change of language at once.
func (s *speaker) orderBooks(books []*phrases.Book) {
	usual := cmp.Or(who.LanguageCode(s.language), who.Language(s.rules))
	weights := make(map[*phrases.Book]float64)
	for _, b := range books {
		if b.Language == usual {
			weights[b] = 0.1
		}
	}
	n := 0.0
	for _, said := range s.userLines() {
		if n < 3 && weigh(weights, books, said, 0.2/(n+1)) {
			n++
		}
	}
	weigh(weights, books, s.message(), 1)
	s.books = slices.Clone(books)
	sorting.SortStable(s.books, func(a, b *phrases.Book) int { return cmp.Compare(weights[b], weights[a]) })
	s.book = s.books[0]
}

// weigh adds factor to a book's weight for each word of a text that only it knows, and half of it if two books know
// the word. It reports whether it added anything.
func weigh(weights map[*phrases.Book]float64, books []*phrases.Book, text string, factor float64) (any bool) {
	words := phrases.Split(text)
	for _, w := range words[:min(len(words), 60)] {
		if unicode.IsDigit(rune(w.Fold[0])) {
			continue
		}
		var having []*phrases.Book
		for _, b := range books {
			if b.Is("own", w.Fold) { // typical of this language, such as "ciao"
				weights[b] += factor / 2
			}
			if b.Knows(w.Fold) {
				having = append(having, b)
			}
		}
		for _, b := range having {
			if len(having) > 2 {
				break
			}
			weights[b] += factor / float64(len(having))
			any = true
		}
	}
	return any
}

// in returns a copy of the speaker with another book.
func (s *speaker) in(b *phrases.Book) *speaker {
	other := *s
	other.book = b
	return &other
}

// facts returns the values that every wording may use. Unknown ones are "".
func (s *speaker) facts() map[string]string {
	p := s.persona
	return map[string]string{
		"me":        p.Name,
		"you":       who.Speakable(s.payload.Source.Username),
		"aliases":   s.list(p.Aliases),
		"profile":   s.inLanguage(p.Profile),
		"like":      s.oneOf(p.Likes),
		"likes":     s.list(p.Likes),
		"dislike":   s.oneOf(p.Dislikes),
		"dislikes":  s.list(p.Dislikes),
		"interests": s.list(p.Interests),
		"time":      s.now.Format("15:04"),
		"date":      s.date(s.now),
	}
}

// inLanguage returns a text, or "" if it is in another language than the answer.
func (s *speaker) inLanguage(text string) string {
	weights := make(map[*phrases.Book]float64)
	weigh(weights, s.books, text, 1)
	for _, weight := range weights {
		if weight > 2*weights[s.book] && weight > 1 {
			return ""
		}
	}
	return text
}

func (s *speaker) oneOf(items []string) string {
	if len(items) == 0 {
		return ""
	}
	return items[int(s.seed>>8)%len(items)]
}

func (s *speaker) list(items []string) string {
	items = items[:min(len(items), 5)]
	last := len(items) - 1
	if last < 1 {
		return strings.Join(items, "")
	}
	return strings.Join(items[:last], ", ") + " " + s.book.Says["and"][0] + " " + items[last]
}

// names returns the names of the weekdays, from Sunday on, or of the months.
func (s *speaker) names(topic string) []string { return strings.Split(s.book.Says[topic][0], ", ") }

// month returns the index of a month by its folded name, or -1.
func (s *speaker) month(fold string) int {
	return slices.IndexFunc(s.names("months"), func(name string) bool { return txt.Fold(name) == fold })
}

func (s *speaker) date(t time.Time) string {
	return strings.NewReplacer(
		"{weekday}", s.names("weekdays")[t.Weekday()], "{month}", s.names("months")[t.Month()-1],
		"{day}", t.Format("2"), "{year}", t.Format("2006"),
	).Replace(s.book.Says["datepattern"][0])
}

// say picks a wording of a topic that the bot has not used lately. further holds the names of values that it needs
// besides the usual ones, each followed by the value. say returns "" if every wording has an unknown value.
func (s *speaker) say(topic string, further ...string) string {
	values := s.facts()
	for pair := range slices.Chunk(further, 2) {
		values[pair[0]] = pair[1]
	}
	lines := s.book.Says[topic]
	var known []string
	for i := range lines {
		isKnown := true
		line := named().ReplaceAllStringFunc(lines[(i+int(s.seed>>3))%len(lines)], func(name string) string {
			value := values[strings.Trim(name, "{}")]
			isKnown = isKnown && value != ""
			return value
		})
		if isKnown {
			known = append(known, line)
		}
	}
	return s.fresh(known)
}

// named matches the name of a value in a wording.
var named = txt.Pattern(`\{.*?\}`)

// fresh returns the first of the texts that the bot has not said in its last 3 lines, or
// else in the last 2, or else in the last one.
func (s *speaker) fresh(texts []string) string {
	for n := 3; n > 0; n-- {
		said := s.botLines(n)
		for _, t := range texts {
			t = tidy(t)
			if !slices.ContainsFunc(said, func(old string) bool { return tidy(old) == t }) {
				return t
			}
		}
	}
	return tidy(strings.Join(texts[:min(len(texts), 1)], ""))
}

// tidy makes a text one line with a capital at its start, and removes a doubled full stop at its end.
func tidy(text string) string {
	text = phrases.Capital(strings.Join(strings.Fields(text), " "))
	for _, pair := range []struct{ from, to string }{{"..", "."}, {"?.", "?"}, {"!.", "!"}, {"….", "…"}} {
		if strings.HasSuffix(text, pair.from) && !strings.HasSuffix(text, "...") {
			text = strings.TrimSuffix(text, pair.from) + pair.to
		}
	}
	return txt.Clip(text, 700)
}

// clipForeign shortens a text of the user to quote it in a sentence: one line without punctuation at its end.
func clipForeign(text string) string {
	text = strings.Join(strings.Fields(strings.ToValidUTF8(text, "")), " ")
	return txt.Clip(strings.TrimRight(text, " .!?,;:"), 160)
}
