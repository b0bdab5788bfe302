package offline

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"synthbot/core/engine/offline/clauses"
	"synthbot/core/engine/offline/phrases"
	"synthbot/core/engine/offline/slips"
)

// hit is the topic of a phrase that was found, and the texts in its slots.
type hit struct {
	topic string
	slots []string
}

func (h hit) rest() string { return strings.Join(h.slots, " ") }

// matcher splits a sentence into phrases of one book.
type matcher struct {
	book    *phrases.Book
	names   []string // words of the bot's names
	text    string
	words   []phrases.Word
	failed  map[int]bool // words from which the rest of the sentence cannot be split
	accepts func(h hit) bool
}

// from splits the whole sentence from the i-th word on. It tries the longest phrases first.
func (m *matcher) from(i int) (hits []hit, ok bool) {
	if i == len(m.words) || m.failed[i] {
		return nil, i == len(m.words)
	}
	if slices.Contains(m.names, m.words[i].Fold) {
		hits, ok = m.from(i + 1)
		if ok {
			return hits, true
		}
	}
	for _, f := range m.book.At(m.words, i) {
		h := hit{topic: f.Topic}
		form := f.Form
		for i, s := range f.Slots {
			h.slots = append(h.slots, m.between(s[0], s[1]))
			form = strings.Replace(form, fmt.Sprintf("{%d}", i+1), h.slots[i], 1)
		}
		if form != "" {
			h.slots = []string{form}
		}
		isEmpty := slices.Contains(h.slots, "") // half of a short form
		if h.topic != phrases.Filler && (isEmpty || !m.accepts(h)) {
			continue
		}
		hits, ok = m.from(f.End)
		if ok && h.topic != phrases.Filler {
			hits = append([]hit{h}, hits...)
		}
		if ok {
			return hits, true
		}
	}
	m.failed[i] = true
	return nil, false
}

// between returns the text of some words, with what is written around them but punctuation.
func (m *matcher) between(from, to int) string {
	start, end := 0, len(m.text)
	if from > 0 {
		start = m.words[from-1].End
	}
	if to < len(m.words) {
		end = m.words[to].Start
	}
	start = min(start, end) // both may be parts of one short form
	return strings.Trim(m.text[start:end], " \t\r\n,;:.!?¿¡…\"“”„«»'’")
}

type understood struct {
	hit
	book   *phrases.Book // the book of the phrase; nil: not understood at all
	greets bool          // the message also greets
	whole  bool          // the whole message was understood
	others []understood  // the other requests of the message
	text   string        // the text of this request, if there are several
}

// understand reads a message with one request, or several with a conjunction or punctuation between them.
func (s *speaker) understand(text string) understood {
	all := s.splitRequests(text)
	if all == nil {
		return s.understandAll(text)
	}
	if !s.acts(all[0]) && s.acts(all[1]) { // what needs an action comes first
		all[0], all[1] = all[1], all[0]
	}
	all[0].others = all[1:]
	return all[0]
}

func (s *speaker) acts(u understood) bool { return s.kinds[u.topic].acts() }

// splitRequests cuts a text into its requests. It returns nil if there are not several.
func (s *speaker) splitRequests(text string) []understood {
	for _, b := range s.books[:min(len(s.books), 2)] {
		t := b.Read(text)
		words := t.Words
		for i := 1; i < len(words) && len(words) <= 40; i++ {
			n := t.From(i).Begins("conjunctions")
			between := text[min(words[i-1].End, words[i].Start):words[i].Start]
			if n == 0 && !strings.ContainsAny(between, ",.?!;\n") || i+n == len(words) {
				continue
			}
			first, ok := s.readTask(b, text[:words[i-1].End])
			if !ok && (!first.whole || first.topic != "tell") {
				continue
			}
			second, ok := s.readSecond(b, first, text, words[i+n].Start)
			if !ok {
				continue
			}
			more := s.splitRequests(second.text)
			if more == nil {
				more = []understood{second}
			}
			return append([]understood{first}, more...)
		}
	}
	return nil
}

// readTask reads a text that is completely one request, and not small talk.
func (s *speaker) readTask(b *phrases.Book, text string) (u understood, ok bool) {
	u = s.readWith(b, text, false)
	u.text = strings.TrimSpace(text)
	class := s.kinds[u.topic].class
	return u, u.whole && u.topic != "" && (class == request || class == subject)
}

// readSecond reads the text from an offset on as a second request: a task, or the time and text of another reminder.
// After a reminder, "cancel …" and the like are not a request, because they may be part of its text.
func (s *speaker) readSecond(b *phrases.Book, first understood, text string, from int) (u understood, ok bool) {
	right := text[from:]
	if first.topic != "remind" {
		return s.readTask(b, right)
	}
	here := orderReader{s.in(b)}
	open := here.readText(first.rest()).open
	if open != "" && open != "remindwhen" {
		return u, false
	}
	words := b.Split(right)
	isTime := open == "" && (b.Is("at", words[0].Fold) || s.reader.Begins(right))
	begins := right[words[0].Start:words[0].End]
	if isTime && here.readText(right).open == "" && strings.Contains(here.readText(text).what, begins) {
		return understood{hit: hit{topic: "remind", slots: []string{right}}, book: b, whole: true, text: right}, true
	}
	u, ok = s.readTask(b, right)
	return u, ok && u.topic != "remindcancel" && u.topic != "forget" && u.topic != "sum"
}

// understandAll reads a message with each book in turn, then again with typing errors corrected. The first reading
// that covers the whole message wins, or else the first that finds a task in it.
func (s *speaker) understandAll(text string) (best understood) {
	for i := range len(s.books) + 1 {
		correct := i == len(s.books) // only in the user's own language, which is the first one
		u := s.readWith(s.books[i%len(s.books)], text, correct)
		switch {
		case u.whole && u.topic != "":
			return u
		case best.book == nil && u.topic != "" && !s.kinds[u.topic].isSmallTalk():
			best = u
		case best.book == nil:
			best.greets = best.greets || u.greets
		}
	}
	return best
}

func (s *speaker) readWith(b *phrases.Book, text string, correct bool) understood {
	u := understood{book: b, whole: true}
	here := s.in(b)
	here.strict = !correct
	for _, sentence := range clauses.Sentences(text[:min(len(text), phrases.MaxRead)]) {
		m := matcher{book: b, names: namesOf(s.persona), text: sentence, words: b.Split(sentence)}
		m.failed = make(map[int]bool)
		if correct {
			m.words = b.Corrected(m.words)
		}
		m.accepts = func(h hit) bool {
			needs := s.kinds[h.topic].needs
			return needs == nil || needs(here, h)
		}
		hits, ok := m.from(0)
		if !ok && (u.topic == "remember" || u.topic == "remind") { // a note may have several sentences
			u.slots = append(u.slots, strings.TrimSpace(sentence))
			continue
		}
		u.whole = u.whole && ok
		for _, h := range hits {
			u.greets = u.greets || h.topic == "greeting"
			if u.topic == "" || s.kinds[h.topic].rank < s.kinds[u.topic].rank {
				u.hit = h
			}
		}
	}
	u.greets = u.greets && u.topic != "greeting"
	return u
}

// keywords are the words of a text that carry meaning.
type keywords []phrases.Word

func keywordsOf(text string, books []*phrases.Book) keywords {
	return slices.DeleteFunc(phrases.Split(text), func(w phrases.Word) bool {
		isStop := func(b *phrases.Book) bool { return b.Is("stop", w.Fold) }
		return utf8.RuneCountInString(w.Fold) < 3 || w.Fold[0] <= '9' || slices.ContainsFunc(books, isStop)
	})
}

// in counts the keywords of which the text has some form.
func (k keywords) in(text string) (hits int) {
	words := phrases.Split(text)
	for _, key := range k {
		if slices.ContainsFunc(words, func(w phrases.Word) bool { return slips.SameWord(w.Fold, key.Fold) }) {
			hits++
		}
	}
	return hits
}

// areIn reports whether there are keywords, and the text has all of them.
func (k keywords) areIn(text string) bool { return len(k) > 0 && k.in(text) == len(k) }

// mentioned returns the first item that the text mentions, or "".
func mentioned(text string, items []string, books []*phrases.Book) string {
	for _, item := range items {
		keys := keywordsOf(item, books)
		words := phrases.Split(item)
		if len(keys) == 0 && len(words) > 0 {
			keys = words[len(words)-1:] // no keyword: the last word has to do
		}
		if keys.in(text) > 0 {
			return item
		}
	}
	return ""
}
