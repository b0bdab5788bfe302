package offline

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"synthbot/core/engine/offline/clauses"
	"synthbot/core/engine/offline/phrases"
	"synthbot/core/txt"
)

// noteReplies answers messages about notes and about what the user said.
type noteReplies struct{ *speaker }

// Actions for notes, which may not exist.
const (
	actionSave   = "memory_save"
	actionSearch = "memory_search"
	actionForget = "memory_forget"
)

// isNote accepts what is worth a note. "Don't forget to …" is a reminder.
func (s noteReplies) isNote(h hit) bool {
	words := phrases.Split(h.rest())
	if len(words) == 0 || words[0].Fold == "to" {
		return len(words) == 0
	}
	return len(keywordsOf(h.rest(), s.books)) > 0 || strings.ContainsAny(h.rest(), "0123456789")
}

// hear answers what users tell about themselves, or finds it out if it is a question.
func (s noteReplies) hear(m understood) plan {
	if strings.HasSuffix(strings.TrimSpace(s.message()), "?") {
		return s.recall(understood{hit: hit{"whois", []string{s.message()}}, book: m.book, whole: true})
	}
	return s.speak("", s.answer(m))
}

// remember answers "remember that …". The next round says whether the action succeeded.
func (s noteReplies) remember(m understood) plan {
	text := m.rest()
	words := phrases.Split(text)
	switch {
	case s.isReminder(text):
		return reminderReplies(s).remind(m)
	case len(words) == 2 && s.book.Is("self", words[0].Fold) && s.mentions("mind", s.message()): // "my uncle"
		return s.recall(understood{hit: hit{"whois", m.slots}, book: m.book, whole: true})
	}
	if len(words) > 1 && s.book.Is("articles", words[0].Fold) && s.book.Is("subject", words[1].Fold) {
		text = text[words[1].Start:] // "merk dir das ich …"
	}
	text = s.mainClause(clipForeign(text))
	if !s.has(actionSave) || text == "" {
		return s.speak("", s.say("remembernone"))
	}
	values := map[string]any{"text": text}
	_, some := s.aboutUser(text)
	if some {
		values["about"] = []string{"me"}
	}
	return s.speak("action", s.say("remembered", "text", text), newStep(actionSave, values))
}

// isReminder reports whether "don't forget …" means something to do at a time, rather than a fact.
func (s noteReplies) isReminder(text string) bool {
	_, what, err := orderReader(s).findTime(text)
	isFact := s.book.Has("thats", s.message()) || s.book.Has("states", text)
	return err == nil && what != "" && !isFact && s.mentions("mind", s.message()) && s.has(actionRemind)
}

// mainClause moves the verb of a subordinate clause to where sentences have it.
func (s *speaker) mainClause(text string) string {
	return clauses.Main(text, s.book.Lists["clauseend"], s.book.Lists["determiners"], s.book.Lists["stop"])
}

// aboutUser reports whether all or some words of a text refer to the user.
func (s noteReplies) aboutUser(text string) (all, some bool) {
	t := s.book.Read(text)
	return len(t.Words) > 0 && len(t.After("self").Words) == 0, t.Has("self") || t.Begins("turnverb") > 0
}

// recall answers questions about what users said. It plans a search, whose result the next round answers with.
func (s noteReplies) recall(m understood) plan {
	found := s.fromPrompt(m.rest(), 1)
	if m.topic == "recall" && found != "" {
		return s.speak("query", s.say("recalled", "found", found))
	}
	text := clipForeign(m.rest())
	if m.topic == "whois" && text == "" { // where do I live?
		for _, w := range keywordsOf(s.message(), s.books) {
			text = join(text, w.Fold)
		}
	}
	self, _ := s.aboutUser(text)
	about := self || text == "" && !s.mentions("notewords", s.message())
	ofUser := newStep(actionSearch, map[string]any{"about": []string{"me"}})
	ofText := newStep(actionSearch, map[string]any{"query": text})
	switch {
	case !s.has(actionSearch):
		return s.speak("query", s.answerFrom(m, nil))
	case about:
		return act("query", ofUser)
	case text == "": // all notes
		return act("query", newStep(actionSearch, map[string]any{}))
	case m.topic == "whois": // the note may have other forms of the words
		return act("query", ofText, ofUser)
	}
	return act("query", ofText)
}

// hintEnd matches what the prompt adds to a note: "(about Jay, 2026-11-20, id 7)".
var hintEnd = txt.Pattern(`\s*\([^()]*\bid [^()]*\)$`)

// fromPrompt returns the memories in the prompt with at least this number of the subject's keywords; 0: all of them.
func (s noteReplies) fromPrompt(subject string, least int) string {
	keys := keywordsOf(subject, s.books)
	least = max(1, cmp.Or(least, len(keys)))
	var found []string
	for _, raw := range s.memories {
		for _, text := range textsIn(raw, 4) {
			text = hintEnd().ReplaceAllString(text, "")
			if keys.in(text) >= least && !slices.Contains(found, text) {
				found = append(found, text)
			}
		}
	}
	return joinFound(found)
}

type note struct {
	ID   string `json:"id"`
	Text string `json:"text"`
}

func readNotes(raw json.RawMessage) []note {
	var found struct{ Memories []note }
	if json.Unmarshal(raw, &found) == nil {
		return found.Memories
	}
	var notes []note
	for _, text := range textsIn(raw, 6) {
		notes = append(notes, note{Text: text})
	}
	return notes
}

// found answers with the notes that a search found, or forgets one of them.
func (s noteReplies) found(m understood, outputs []output) plan {
	var notes []note
	for _, o := range outputs {
		if o.Action == actionSearch {
			notes = append(notes, readNotes(o.Output)...)
		}
	}
	switch m.topic {
	case "nolonger":
		notes = slices.DeleteFunc(notes, func(n note) bool { return !s.isAboutUser(n.Text) })
		return s.forgetOne(m, notes, outputs[len(outputs)-1])
	case "forget":
		return s.forgetOne(m, notes, outputs[len(outputs)-1])
	case "remember": // "don't forget my uncle"
		m.topic = "whois"
	}
	var texts []string
	for _, n := range notes {
		if !slices.Contains(texts, n.Text) {
			texts = append(texts, n.Text)
		}
	}
	return s.speak("query", s.answerFrom(m, texts))
}

// forgetOne forgets the note that the user means, or a reminder if the last output lists those.
func (s noteReplies) forgetOne(m understood, notes []note, last output) plan {
	if m.rest() == "" && s.listed(notes) > 1 {
		return s.speak("clarification", s.say("forgetwhat"))
	}
	text := s.toForget(m)
	p, ok := s.forgetBest(text, notes)
	switch {
	case ok:
		return p
	case m.topic == "nolonger", slices.ContainsFunc(s.statements(false), keywordsOf(text, s.books).areIn):
		return s.speak("", s.say("forgotsaid"))
	case last.Action == actionList:
		return reminderReplies(s).listed(m, last.Output)
	}
	return p
}

// answerFrom answers a question with notes, or with what the user said in this conversation.
func (s noteReplies) answerFrom(m understood, notes []string) string {
	rest := m.rest()
	notes = slices.DeleteFunc(notes, func(text string) bool { return !s.answers(m, text) })
	all := m.topic == "mylikes" || m.topic == "mydislikes"
	if m.topic != "recallme" && (all || len(notes) == 0 || m.topic == "whois") {
		for _, said := range s.statements(m.topic == "whois") {
			isAnswer := s.answers(m, said) && s.toSecondPerson(said) != ""
			if isAnswer && !all { // the latest statement wins
				notes = []string{said}
				break
			}
			if isAnswer && !slices.Contains(notes, said) {
				notes = append(notes, said)
			}
		}
	}
	if len(notes) == 0 {
		if m.topic == "recall" && rest != "" {
			return s.say("recallnone", "text", clipForeign(rest))
		}
		return s.say("notold")
	}
	if m.topic == "whois" {
		notes = notes[:1]
	}
	var turned []string
	for _, n := range notes[:min(len(notes), 5)] {
		t := s.toSecondPerson(n)
		if t != "" {
			turned = append(turned, strings.TrimRight(phrases.Capital(t), ".!")+".")
		}
	}
	if len(turned) == len(notes) && m.topic != "recall" && m.topic != "recallme" {
		return join(turned...)
	}
	return s.say("recalled", "found", joinFound(notes))
}

func (s noteReplies) answers(m understood, text string) bool {
	dislikes := s.mentions("dislikewords", text)
	switch m.topic {
	case "mylikes":
		return s.likes(text) && (!dislikes || s.mentions("but", text))
	case "mydislikes":
		return dislikes
	case "whois":
		keys := keywordsOf(cmp.Or(m.rest(), s.message()), s.books) // where do I live?
		return keys.areIn(text) && (m.rest() != "" || s.isAboutUser(text))
	}
	return true
}

// statements returns what users said about themselves in this conversation, newest first, without what they took back
// later. If noted, it includes what they asked the bot to remember.
func (s noteReplies) statements(noted bool) (list []string) {
	var gone []keywords
	lines := s.userLines()
	for i, said := range lines[:min(len(lines), 12)] {
		u := s.understand(said)
		isGone := slices.ContainsFunc(gone, func(k keywords) bool { return k.areIn(said) })
		switch {
		case u.topic == "nolonger" || u.topic == "forget" && u.rest() != "":
			gone = append(gone, keywordsOf(u.rest(), s.books))
		case u.topic == "forget" && i+1 < len(lines):
			before := s.understand(lines[i+1])
			about := lines[i+1]
			if before.topic != "tell" {
				about = before.rest()
			}
			gone = append(gone, keywordsOf(about, s.books))
		case noted && u.topic == "remember" && len(phrases.Split(u.rest())) > 2 && !isGone:
			list = append(list, s.mainClause(clipForeign(u.rest())))
		case u.topic == "tell" && !strings.Contains(said, "?") && !isGone:
			list = append(list, cmp.Or(s.book.Read(said).After("correction").String(), said)) // "no, …"
		}
	}
	return list
}

// isAboutUser reports whether the user is the subject of a text.
func (s noteReplies) isAboutUser(text string) bool {
	t := s.book.Read(text)
	return t.Has("subject", "turnverb") || t.Before(min(2, len(t.Words))).Has("oblique") // me gusta
}

// likes reports whether a text says that the user likes something.
func (s noteReplies) likes(text string) bool {
	return slices.ContainsFunc(s.books, func(b *phrases.Book) bool {
		words := b.Split(text)
		for i, w := range words {
			isSelf := func(w phrases.Word) bool { return b.Is("self", w.Fold) }
			near := words[max(0, i-3):min(len(words), i+2)]
			if i > 0 && b.Is("third", words[i-1].Fold) { // "and she likes wine"
				continue
			}
			if b.Is("likewords", w.Fold) && (b.Is("turnverb", w.Fold) || slices.ContainsFunc(near, isSelf)) {
				return true
			}
		}
		return false
	})
}

// mentions reports whether a text has a word of a list, in any language.
func (s *speaker) mentions(list, text string) bool {
	return slices.ContainsFunc(s.books, func(b *phrases.Book) bool { return b.Has(list, text) })
}

// toSecondPerson turns a statement of the user around: "my sister is Anna" becomes "your sister is Anna". It returns ""
// if that would need more of the language's grammar.
func (s noteReplies) toSecondPerson(text string) string {
	var b strings.Builder
	words := phrases.Split(text)
	end, changed, verb := 0, false, true
	for i, w := range words {
		to, ok := s.book.Lists["turn"][w.Fold]
		if i > 0 && w.End-w.Start > 1 && phrases.Capital(text[w.Start:w.End]) == text[w.Start:w.End] { // a name
			ok = false
		}
		if !ok && verb {
			to, ok = s.book.Lists["turnverb"][w.Fold]
		}
		subject := s.book.Is("subject", w.Fold)
		if subject && s.book.Language != "en" && (i+1 == len(words) || !s.book.Is("turnverb", words[i+1].Fold)) {
			return ""
		}
		between := text[end:w.Start]
		if i > 0 && phrases.IsApostrophe(between) && strings.HasSuffix(b.String(), " ") {
			between = "" // j'aime, tu aimes
		}
		b.WriteString(between)
		if !ok {
			to = text[w.Start:w.End]
		}
		b.WriteString(to)
		changed = changed || ok
		end, verb = w.End, subject
	}
	if !changed || s.book.Is("clauseend", words[len(words)-1].Fold) {
		return ""
	}
	return clipForeign(b.String())
}

// toForget returns the text of the note to forget: what the user names, or spoke of just before.
func (s noteReplies) toForget(m understood) string {
	if m.rest() != "" {
		return clipForeign(m.rest())
	}
	said := s.userLines()
	if len(said) == 0 {
		return ""
	}
	switch u := s.understand(said[0]); u.topic {
	case "remember", "recall", "whois":
		return clipForeign(u.rest())
	case "tell":
		return clipForeign(said[0])
	case "recallme", "mylikes", "mydislikes":
		return clipForeign(s.lastAnswer())
	}
	return ""
}

// forget answers "forget that". It plans a search for the note, which the next round forgets.
func (s noteReplies) forget(m understood) plan {
	text := s.toForget(m)
	switch {
	case s.has(actionList) && s.isOfReminders(m):
		return reminderReplies(s).listReminders(m)
	case m.topic == "forgetall":
		return s.speak("", s.say("forgetall"))
	case !s.has(actionForget) || !s.has(actionSearch):
		return s.speak("", s.say("remembernone"))
	case text == "":
		return s.speak("clarification", s.say("forgetwhat"))
	}
	steps := []step{newStep(actionSearch, map[string]any{"query": text})}
	isNote := m.topic == "nolonger" || s.mentions("notewords", s.message()) || s.mentions("unlearn", s.message())
	if s.has(actionList) && !isNote {
		steps = append(steps, newStep(actionList, map[string]any{})) // it may be a reminder
	}
	return act("action", steps...)
}

// isOfReminders reports whether a request to delete something is about reminders: the bot spoke of them just before, or
// it names a position in a list, a time, or an exception. Requests about notes have none of these.
func (s noteReplies) isOfReminders(m understood) bool {
	isSet := s.saidBefore(s.lastAnswer(), "reminded", "remindedagain")
	isListed := s.saidBefore(s.lastAnswer(), "remindlist", "cancelwhich")
	switch {
	case m.topic == "nolonger":
		return false
	case isListed, m.topic == "forgetall":
		return isListed
	case isSet && m.rest() == "":
		return true
	}
	_, isPlace := reminderReplies(s).position(m.rest())
	_, err := s.reader.Read(m.rest(), s.now)
	return !s.mentions("notewords", s.message()) && (isPlace || s.book.Has("except", m.rest()) || err == nil)
}

// listed counts the notes in the bot's last answer.
func (s noteReplies) listed(notes []note) (n int) {
	answer := txt.Fold(s.lastAnswer())
	for _, each := range notes {
		text := clipForeign(each.Text)
		if strings.Contains(answer, txt.Fold(text)) || strings.Contains(answer, txt.Fold(s.toSecondPerson(text))) {
			n++
		}
	}
	return n
}

// forgetBest plans to forget the note with the most keywords of a text. ok is false if no note has enough of them.
func (s noteReplies) forgetBest(text string, notes []note) (p plan, ok bool) {
	keys := keywordsOf(text, s.books)
	best, most := note{}, 0
	for _, n := range notes {
		hits := keys.in(n.Text)
		if hits > most {
			best, most = n, hits
		}
	}
	isAnd := func(w phrases.Word) bool { // "e", but not "è"
		return s.book.Is("conjunctions", w.Fold) && strings.EqualFold(best.Text[w.Start:w.End], w.Fold)
	}
	switch {
	case best.ID == "" || 2*most < len(keys):
		return s.speak("", s.say("forgetnone")), false
	case most < len(keywordsOf(best.Text, s.books)) && slices.ContainsFunc(phrases.Split(best.Text), isAnd):
		return s.speak("clarification", s.say("forgetwhole", "text", clipForeign(best.Text))), true
	}
	step := newStep(actionForget, map[string]any{"id": best.ID})
	return s.speak("action", s.say("forgotten", "text", clipForeign(best.Text)), step), true
}

func joinFound(found []string) string {
	var parts []string
	for _, f := range found[:min(len(found), 5)] {
		f = clipForeign(f)
		if f != "" {
			parts = append(parts, f)
		}
	}
	return strings.Join(parts, "; ")
}
