package offline

import (
	"cmp"
	"hash/fnv"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"synthbot/core/txt"
)

// speaker answers one scene in one language.
type speaker struct {
	*scene
	book    *phrasebook
	books   []*phrasebook // the speaker's own language first
	now     time.Time
	standby bool
	seed    uint32
	values  map[string]string // what may be put into {…}
}

func (m *Model) speaker(s *scene) *speaker {
	sp := &speaker{scene: s, now: s.payload.Timestamp, standby: m.Standby}
	if sp.now.IsZero() {
		sp.now = m.Clock().In(m.Zone)
	}
	h := fnv.New32a()
	for _, part := range []string{s.message(), s.payload.Source.ID, s.persona.name} {
		h.Write([]byte(part))
		h.Write([]byte{0})
	}
	sp.seed = h.Sum32()
	sp.settle(m.books())
	sp.values = sp.facts()
	return sp
}

// settle picks the language: what recon found, else what the instructions ask
// for, else that of the message itself.
func (s *speaker) settle(books []*phrasebook) {
	language := cmp.Or(languageCode(s.language), languageOf(s.rules))
	if language == "" {
		m, _ := understand(s.message(), nil, books)
		if m.book != nil {
			language = m.book.language
		}
	}
	i := max(0, slices.IndexFunc(books, func(b *phrasebook) bool { return b.language == language }))
	s.book = books[i]
	s.books = slices.Concat(books[i:i+1], books[:i], books[i+1:])
}

// languageCode reads a code ("it-IT") or a name ("Italian").
func languageCode(s string) string {
	s = txt.Fold(strings.TrimSpace(s))
	code, _, _ := strings.Cut(strings.ReplaceAll(s, "_", "-"), "-")
	names := map[string]string{
		"english": "en", "german": "de", "deutsch": "de", "italian": "it", "italiano": "it",
		"spanish": "es", "espanol": "es", "french": "fr", "francais": "fr",
	}
	return cmp.Or(names[s], code)
}

var (
	namedCode     = txt.Pattern(`\blanguage:? ?["']?(en|de|it|es|fr)(?:-[a-z]+)?["'.;, ]`)
	namedLanguage = txt.Pattern(`\b(?:answer|reply|respond|write|speak|language)[^.]{0,20}? ` +
		`(english|german|deutsch|italian|italiano|spanish|espanol|french|francais)[^a-z]`)
)

// languageOf finds "answer in Italian", "language: it" and their like in the
// instructions.
func languageOf(rules string) string {
	rules = txt.Fold(rules) + " "
	m := namedCode().FindStringSubmatch(rules)
	if m == nil {
		m = namedLanguage().FindStringSubmatch(rules)
	}
	if m == nil {
		return ""
	}
	return languageCode(m[1])
}

// facts are the values that every wording may use; what is not known is "".
func (s *speaker) facts() map[string]string {
	p := s.persona
	return map[string]string{
		"me":        p.name,
		"you":       speakable(s.payload.Source.Username),
		"aliases":   s.list(p.aliases),
		"profile":   p.profile,
		"like":      s.one(p.likes),
		"likes":     s.list(p.likes),
		"dislike":   s.one(p.dislikes),
		"dislikes":  s.list(p.dislikes),
		"interests": s.list(p.interests),
		"time":      s.now.Format("15:04"),
		"date":      s.date(s.now),
	}
}

func (s *speaker) one(items []string) string {
	if len(items) == 0 {
		return ""
	}
	return items[int(s.seed>>8)%len(items)]
}

// list joins at most five items.
func (s *speaker) list(items []string) string {
	items = items[:min(len(items), 5)]
	switch len(items) {
	case 0:
		return ""
	case 1:
		return items[0]
	}
	last := len(items) - 1
	return strings.Join(items[:last], ", ") + " " + s.book.says["and"][0] + " " + items[last]
}

func (s *speaker) date(t time.Time) string {
	pick := func(topic string, n int) string {
		names := strings.Split(s.book.says[topic][0], ", ")
		return names[n%len(names)]
	}
	return strings.NewReplacer(
		"{weekday}", pick("weekdays", int(t.Weekday())), "{month}", pick("months", int(t.Month())-1),
		"{day}", t.Format("2"), "{year}", t.Format("2006"),
	).Replace(s.book.says["datepattern"][0])
}

// wordings are the sayings of a topic whose values are all known, in the order
// in which this message picks them.
func (s *speaker) wordings(topic string, more map[string]string) []string {
	lines := s.book.says[topic]
	var known []string
	for i := range lines {
		line := lines[(i+int(s.seed>>3))%len(lines)]
		if filled, ok := s.fill(line, more); ok {
			known = append(known, filled)
		}
	}
	return known
}

// fill puts the values in; ok is false where one is not known.
func (s *speaker) fill(line string, more map[string]string) (filled string, ok bool) {
	var b strings.Builder
	for {
		before, rest, found := strings.Cut(line, "{")
		b.WriteString(before)
		if !found {
			return b.String(), true
		}
		name, after, _ := strings.Cut(rest, "}")
		value := cmp.Or(more[name], s.values[name])
		if value == "" {
			return "", false
		}
		b.WriteString(value)
		line = after
	}
}

// say picks a wording of a topic that is none of the bot's last lines.
func (s *speaker) say(topic string) string { return s.fresh(s.wordings(topic, nil)) }

// with is say with one more value; "" without the value.
func (s *speaker) with(topic, name, value string) string {
	if value == "" {
		return ""
	}
	return s.fresh(s.wordings(topic, map[string]string{name: value}))
}

// fresh returns the first of the texts that the bot did not say lately; where it
// said them all, one that is not its very last line.
func (s *speaker) fresh(texts []string) string {
	for n := 3; n > 0; n-- {
		said := s.own(n)
		for _, t := range texts {
			t = tidy(t)
			if !slices.ContainsFunc(said, func(old string) bool { return tidy(old) == t }) {
				return t
			}
		}
	}
	return tidy(strings.Join(texts[:min(len(texts), 1)], ""))
}

// tidy makes one line of a text that begins like a sentence, and takes doubled
// full stops out of it.
func tidy(text string) string {
	text = capital(strings.Join(strings.Fields(text), " "))
	for _, pair := range []struct{ from, to string }{{"..", "."}, {"?.", "?"}, {"!.", "!"}, {"….", "…"}} {
		if strings.HasSuffix(text, pair.from) && !strings.HasSuffix(text, "...") {
			text = strings.TrimSuffix(text, pair.from) + pair.to
		}
	}
	return txt.Clip(text, 700)
}

// capital writes the first letter large.
func capital(s string) string {
	first, size := utf8.DecodeRuneInString(s)
	if first == utf8.RuneError {
		return s
	}
	return string(unicode.ToUpper(first)) + s[size:]
}

// clipForeign prepares a piece of foreign text for a sentence of ours.
func clipForeign(text string) string {
	text = strings.Join(strings.Fields(strings.ToValidUTF8(text, "")), " ")
	return txt.Clip(strings.TrimRight(text, " .!?,;:"), 160)
}
