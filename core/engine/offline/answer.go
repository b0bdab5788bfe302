package offline

import (
	"cmp"
	"slices"
	"strings"

	"synthbot/core"
	"synthbot/core/engine/offline/phrases"
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
		return s.speak("", s.say("reminder", "text", clipForeign(s.message())))
	}
	text := s.message()
	if len(phrases.Split(text)) == 0 {
		topic := "empty"
		if len(s.payload.Image) > 2 || len(s.payload.Video) > 2 || len(s.payload.Attachments) > 0 {
			topic = "attachment"
		}
		return s.speak("", s.say(topic))
	}
	m := s.meaning()
	if m.greets && m.topic != "" && len(s.botLines(1)) == 0 {
		s.greeting = s.say("hello")
	}
	return s.reply(m)
}

// meaning returns what the message means after what the bot said before, or else by itself. It also answers the other
// requests of the message, or says that they were not carried out.
func (s *speaker) meaning() understood {
	m := s.understand(s.message())
	s.book = cmp.Or(m.book, s.book)
	here := contextReader{s}
	for _, read := range []func(understood) (hit, bool){
		here.answerToQuestion, here.correction, here.refusal, here.choice,
	} {
		h, ok := read(m)
		if ok {
			m.hit = h
			break
		}
	}
	for _, other := range m.others {
		answer := ""
		if s.acts(other) {
			answer = s.say("undone", "text", clipForeign(other.text))
		} else {
			answer = s.in(other.book).answer(other)
		}
		s.other = join(s.other, answer)
	}
	return m
}

func (s *speaker) reply(m understood) plan {
	k := s.kinds[m.topic]
	switch {
	case s.standby && s.group && (m.topic == "" || k.isSmallTalk()):
		return s.speak("", s.say("standby"))
	case m.topic == "":
		return s.speak("", s.notUnderstood(m))
	case k.does != nil:
		return k.does(s, m)
	}
	return s.speak(k.intent, s.answer(m))
}

func (s *speaker) answer(m understood) string { return s.kinds[m.topic].says(s, m) }

func (s *speaker) wording(m understood) string { return s.say(m.topic) }

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

// isShort accepts up to eight words.
func isShort(_ *speaker, h hit) bool { return len(phrases.Split(h.rest())) <= 8 }

// isName accepts up to three words that may be the name of a user.
func isName(s *speaker, h hit) bool {
	words := s.book.Split(h.rest())
	return len(words) > 0 && len(words) <= 3 && !s.book.Is("not", words[0].Fold) && !s.book.Is("asks", words[0].Fold) &&
		firstName(h.rest()) != ""
}

func (s *speaker) greetByName(m understood) string {
	return cmp.Or(s.say("introduced", "name", phrases.Capital(firstName(m.rest()))), s.say("ok"))
}

// nameOfUser answers "what is my name?". A name that the user gave wins over the one of the platform.
func (s *speaker) nameOfUser(understood) string {
	wrong := ""
	for _, text := range s.userLines() {
		m := s.understand(text)
		name := firstName(m.rest())
		switch {
		case m.topic == "notname":
			wrong = txt.Fold(name)
		case m.topic == "introduce" && name != "" && txt.Fold(name) != wrong:
			return s.say("mynametold", "name", phrases.Capital(name))
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

// notUnderstood answers a message that was not understood: a question by memories with all its words if there
// are any, else with one line that says so. In a private chat that line is a hint.
func (s *speaker) notUnderstood(m understood) string {
	found := noteReplies{s}.fromPrompt(s.message(), 0)
	switch {
	case found != "" && s.mentions("asks", s.message()):
		return s.say("recalled", "found", found)
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

type selfReplies struct{ *speaker }

func (s selfReplies) tastes(m understood) string { return cmp.Or(s.say(m.topic), s.say("nolist")) }

func (s selfReplies) who(m understood) string {
	likes := s.inLanguage(s.list(s.persona.Likes))
	return cmp.Or(s.say(m.topic, "likes", likes), s.say("whobare", "likes", likes))
}

func (s selfReplies) whetherBot(m understood) string {
	if s.standby {
		return s.say("botlater", "standby", s.say("standby"))
	}
	return s.say(m.topic)
}

func (s selfReplies) opinion(m understood) string {
	return cmp.Or(s.onTastes(m.rest(), "yeslike", "nolike"), s.say("neutral"))
}

// reaction answers what users tell about themselves.
func (s selfReplies) reaction(m understood) string {
	return cmp.Or(s.onTastes(m.rest(), "reactlike", "reactdislike"), s.say("tell"))
}

// onTastes answers a text that mentions one of the persona's likes by the topic like, and one that mentions a
// dislike by the topic dislike. It returns "" for other texts.
func (s selfReplies) onTastes(text, like, dislike string) string {
	liked := mentioned(text, slices.Concat(s.persona.Likes, s.persona.Interests), s.books)
	if liked != "" {
		return s.say(like, "thing", liked)
	}
	return s.say(dislike, "thing", mentioned(text, s.persona.Dislikes, s.books))
}

// abilities lists what users can ask for here, with an example each.
func (s selfReplies) abilities(understood) string {
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
