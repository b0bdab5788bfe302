package offline

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"synthbot/core"
	"synthbot/core/engine/offline/phrases"
	"synthbot/core/engine/offline/sums"
	"synthbot/core/engine/offline/who"
	"synthbot/core/txt"
)

func (s *speaker) plan() plan {
	if s.notice != nil {
		return s.answerNotice()
	}
	switch s.kind {
	case string(core.KindBeat):
		return plan{Actions: []step{{Type: "NONE"}}}
	case "event_reminder": // input.type of what fell due
		return s.speak("", s.sayWith("reminder", "text", clipForeign(s.message())))
	}
	text := s.message()
	if len(phrases.Split(text)) == 0 {
		topic := "empty"
		if len(s.payload.Image) > 2 || len(s.payload.Video) > 2 || len(s.payload.Attachments) > 0 {
			topic = "attachment"
		}
		return s.speak("", s.say(topic))
	}
	m := s.understand(text)
	s.useBook(m.book)
	if p, ok := (reminderReplies{s}).answerToQuestion(m); ok {
		return p
	}
	answer, ok := reminderReplies{s}.correction()
	switch {
	case ok && answer == "":
		return s.speak("clarification", s.say("correcthow"))
	case ok && s.has(actionList):
		return reminderReplies{s}.listReminders()
	}
	choice, ok := reminderReplies{s}.cancelling(m)
	if ok && choice.topic != m.topic {
		return reminderReplies{s}.listReminders()
	}
	s.other = s.answerOthers(m)
	if m.greets && m.topic != "" && len(s.botLines(1)) == 0 {
		s.greeting = s.say("hello")
	}
	return s.reply(m)
}

// answerOthers answers the other requests of a message, or says that they were not carried out.
func (s *speaker) answerOthers(m understood) string {
	said := ""
	for other := m.other; other != nil; other = other.other {
		if other.acts() {
			said = join(said, s.sayWith("undone", "text", clipForeign(other.text)))
			continue
		}
		said = join(said, s.in(other.book).chat(*other))
	}
	return said
}

// namesOf returns the words of the bot's names.
func namesOf(p who.Persona) (names []string) {
	for _, name := range append([]string{p.Name}, p.Aliases...) {
		for _, w := range phrases.Split(name) {
			names = append(names, w.Fold)
		}
	}
	return names
}

// withoutName returns the message without the bot's name in front ("Aria, at 9") and the punctuation at its ends.
func (s *scene) withoutName() string {
	text := strings.Trim(s.message(), " .!?¿¡")
	for words := phrases.Split(text); len(words) > 1; words = phrases.Split(text) {
		isName := slices.Contains(namesOf(s.persona), words[0].Fold)
		if !isName || !strings.ContainsAny(text[words[0].End:][:1], " ,:;!.") {
			break
		}
		text = text[words[1].Start:]
	}
	return text
}

// accepts reports whether the slots of a phrase hold what its topic needs. If lenient, it also accepts unknown
// places; the answer then says that they are unknown.
func (s *speaker) accepts(b *phrases.Book, h hit, lenient bool) bool {
	text := strings.Join(h.slots, " ")
	switch h.topic {
	case "sum":
		_, ok := followUpReplies{s}.compute(text, b)
		return ok
	case "time":
		return !b.Is("tongues", txt.Fold(text)) && !b.Is("units", txt.Fold(text)) && // "and in French?"
			(lenient || timeReplies{s}.knowsPlaces(text, b) || timeReplies{s.in(b)}.isSpan(text))
	case "dice":
		_, ok := sums.Dice(text, sumsOf(b))
		return ok
	case "datein", "timeplace":
		return timeReplies{s}.knowsPlaces(text, b)
	case "dateago":
		_, ok := timeReplies{s.in(b)}.dayAgo(text)
		return ok
	case "date", "until":
		_, ok := timeReplies{s}.dayOf(text, b)
		return ok && !strings.Contains(text, "%")
	case "between":
		_, _, ok := timeReplies{s}.daysBetween(h.slots, b)
		return ok
	case "number":
		isNone := func(text string) bool { return sums.ReadWord(txt.Fold(text), sumsOf(b)) == nil }
		return !slices.ContainsFunc(h.slots, isNone)
	case "introduce", "notname":
		words := b.Split(text)
		isNone := len(words) == 0 || len(words) > 3 || b.Is("not", words[0].Fold) || b.Is("asks", words[0].Fold)
		return !isNone && firstName(text) != ""
	case "remember":
		words := phrases.Split(text)
		if len(words) == 0 || words[0].Fold == "to" { // "don't forget to …" is a reminder
			return len(words) == 0
		}
		return len(keywords(text, s.books)) > 0 || strings.ContainsAny(text, "0123456789")
	case "remindcancel", "whois":
		return len(phrases.Split(text)) <= 8
	}
	return true
}

// reply answers a message by its meaning m.
func (s *speaker) reply(m understood) plan {
	if s.standby && s.group && (m.topic == "" || isSmallTalk(m.topic)) {
		return s.speak("", s.say("standby"))
	}
	words := s.book.Split(strings.TrimRight(s.message(), " .!"))
	if (m.topic == "remindcancel" || m.topic == "forget") && s.book.Is("not", words[len(words)-1].Fold) {
		return s.speak("", s.say("keep")) // lösch die Erinnerung nicht
	}
	switch m.topic {
	case "":
		return s.speak("", s.notUnderstood(m))
	case "remind":
		return reminderReplies{s}.remind(m.rest())
	case "wake":
		return reminderReplies{s}.wake(m.rest())
	case "timer":
		return reminderReplies{s}.remind(s.say("timer") + " " + m.rest())
	case "timeleft", "remindlist", "remindcancel":
		return reminderReplies{s}.listReminders()
	case "remember":
		words := phrases.Split(m.rest())
		switch {
		case (noteReplies{s}).isReminder(m.rest()):
			return reminderReplies{s}.remind(m.rest())
		case len(words) == 2 && s.book.Is("self", words[0].Fold) && s.mentions("mind", s.message()): // "my uncle"
			return noteReplies{s}.recall(understood{hit: hit{"whois", m.slots}, book: m.book, whole: true})
		}
		return noteReplies{s}.remember(m.rest())
	case "recall", "recallme", "mylikes", "mydislikes", "whois":
		return noteReplies{s}.recall(m)
	case "forget", "forgetall", "nolonger":
		return noteReplies{s}.forget(m)
	case "dice":
		return s.dice(m.rest())
	case "again":
		return followUpReplies{s}.again()
	case "tell":
		if strings.HasSuffix(strings.TrimSpace(s.message()), "?") { // a question, not a statement
			asked := hit{"whois", []string{s.message()}}
			return noteReplies{s}.recall(understood{hit: asked, book: m.book, whole: true})
		}
	}
	return s.speak(intents()[m.topic], s.chat(m))
}

// intents returns the plan's intents by topic.
func intents() map[string]string {
	return map[string]string{
		"greeting": "greeting", "how": "greeting", "bye": "farewell", "abilities": "help", "model": "help",
		"time": "query", "date": "query", "who": "query", "yourname": "query", "bot": "query", "likes": "query",
		"dislikes": "query", "interests": "query", "doyoulike": "query", "myname": "query", "isaid": "query",
		"yousaid": "query", "sum": "query",
	}
}

// chat returns the answer to a message that needs no action.
func (s *speaker) chat(m understood) string {
	switch m.topic {
	case "likes", "dislikes", "interests":
		return cmp.Or(s.say(m.topic), s.say("nolist"))
	case "who":
		s.values["likes"] = s.inLanguage(s.values["likes"])
		return cmp.Or(s.say(m.topic), s.say("whobare"))
	case "bot":
		if s.standby {
			return s.sayWith("botlater", "standby", s.say("standby"))
		}
	case "doyoulike":
		return cmp.Or(s.opinion(m.rest(), "yeslike", "nolike"), s.say("neutral"))
	case "tell":
		return cmp.Or(s.opinion(m.rest(), "reactlike", "reactdislike"), s.say("tell"))
	case "abilities":
		return s.abilities()
	case "myname":
		return s.nameOfUser()
	case "introduce":
		return cmp.Or(s.sayWith("introduced", "name", phrases.Capital(firstName(m.rest()))), s.say("ok"))
	case "isaid":
		return s.quote("isaid", s.userLines())
	case "yousaid":
		return s.quote("yousaid", followUpReplies{s}.unquoted())
	case "time", "timeplace":
		return timeReplies{s}.timeIn(m.rest())
	case "week":
		_, week := s.now.ISOWeek()
		return s.sayWith("week", "n", strconv.Itoa(week))
	case "dateago":
		day, _ := timeReplies{s}.dayAgo(m.rest())
		return s.sayWith("dateon", "day", s.date(day))
	case "timethere":
		return timeReplies{s}.timeIn(followUpReplies{s}.lastPlace())
	case "datethere":
		return timeReplies{s}.dateIn(followUpReplies{s}.lastPlace())
	case "date":
		return timeReplies{s}.dateOn(m.rest())
	case "datein":
		return timeReplies{s}.dateIn(m.rest())
	case "until":
		return timeReplies{s}.daysUntil(m.rest())
	case "between":
		return timeReplies{s}.between(m.slots)
	case "sum":
		answer, _ := followUpReplies{s}.compute(m.rest(), s.book)
		return s.result(answer)
	case "coin", "number", "choose":
		return s.chance(m)
	}
	return s.say(m.topic)
}

// opinion answers a text that mentions one of the persona's likes by the topic like, and one that mentions a
// dislike by the topic dislike. It returns "" for other texts.
func (s *speaker) opinion(text, like, dislike string) string {
	liked := mentioned(text, slices.Concat(s.persona.Likes, s.persona.Interests), s.books)
	if liked != "" {
		return s.sayWith(like, "thing", liked)
	}
	return s.sayWith(dislike, "thing", mentioned(text, s.persona.Dislikes, s.books))
}

// abilities lists what users can ask for here, with an example each.
func (s *speaker) abilities() string {
	parts := []string{s.say("abilities")}
	if s.has(actionSave) {
		parts = append(parts, s.say("abilitiesnotes"))
	}
	if s.has(actionRemind) {
		parts = append(parts, s.say("abilitiesreminders"))
	}
	if s.standby {
		return join(append(parts, s.say("standby"))...)
	}
	return join(append(parts, s.say("abilitiesmore"))...)
}

// nameOfUser answers "what is my name?". A name that the user gave wins over the one of the platform.
func (s *speaker) nameOfUser() string {
	wrong := ""
	for _, text := range s.userLines() {
		m := s.understand(text)
		name := firstName(m.rest())
		switch {
		case m.topic == "notname":
			wrong = txt.Fold(name)
		case m.topic == "introduce" && name != "" && txt.Fold(name) != wrong:
			return s.sayWith("mynametold", "name", phrases.Capital(name))
		}
	}
	return cmp.Or(s.say("myname"), s.say("mynamenone"))
}

func firstName(text string) string {
	words := phrases.Split(text)
	if len(words) == 0 {
		return ""
	}
	return who.Speakable(text[words[0].Start:words[0].End])
}

func (s *speaker) quote(topic string, lines []string) string {
	first := strings.Join(lines[:min(len(lines), 1)], "")
	quoted := txt.Clip(strings.ReplaceAll(txt.Line(first), `"`, "'"), 240)
	return cmp.Or(s.sayWith(topic, "quote", quoted), s.say("isaidnone"))
}

// notUnderstood answers a message that was not understood: a question by memories with all its words if there
// are any, else with one line that says so. In a private chat that line is a hint.
func (s *speaker) notUnderstood(m understood) string {
	found := noteReplies{s}.fromPrompt(s.message(), 0)
	switch {
	case found != "" && s.mentions("asks", s.message()):
		return s.sayWith("recalled", "found", found)
	case s.standby:
		return s.say("standby")
	case s.group:
		return s.say("honest")
	case !m.greets || len(s.botLines(1)) > 0:
		return s.say("hint")
	}
	return join(s.say("hello"), s.say("hint"))
}

func join(parts ...string) string {
	return strings.Join(slices.DeleteFunc(parts, func(p string) bool { return p == "" }), " ")
}
