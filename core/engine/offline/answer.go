package offline

import (
	"cmp"
	"slices"
	"strings"

	"synthbot/core"
	"synthbot/core/txt"
)

// plan answers the scene.
func (s *speaker) plan() plan {
	if s.notice != nil {
		return s.notified()
	}
	switch s.kind {
	case string(core.KindBeat):
		return plan{Actions: []step{{Type: "NONE"}}}
	case "event_reminder": // input.type of what fell due
		return s.speak("", s.with("reminder", "text", clipForeign(s.message())))
	}
	text := s.message()
	if len(split(text)) == 0 {
		topic := "empty"
		if len(s.payload.Image) > 2 || len(s.payload.Video) > 2 || len(s.payload.Attachments) > 0 {
			topic = "attachment"
		}
		return s.speak("", s.say(topic))
	}
	m, greets := understand(text, s.names(), s.books)
	p := s.reply(m)
	if greets && len(s.own(1)) == 0 {
		p.greet(s.say("hello"))
	}
	return p
}

// names are the words by which the bot is called.
func (s *speaker) names() (names []string) {
	for _, name := range append([]string{s.persona.name}, s.persona.aliases...) {
		for _, w := range split(name) {
			names = append(names, w.fold)
		}
	}
	return names
}

// reply answers a message that was understood as m.
func (s *speaker) reply(m understood) plan {
	switch m.topic {
	case "":
		return s.speak("", s.puzzled())
	case "remind":
		return s.remind(m)
	case "remember":
		return s.remember(m)
	case "recall":
		return s.recall(m)
	}
	return s.speak(intents[m.topic], s.chat(m))
}

// intents are the plan's words for topics.
var intents = map[string]string{
	"greeting": "greeting", "how": "greeting", "bye": "farewell", "abilities": "help", "time": "query", "date": "query",
	"who": "query", "yourname": "query", "bot": "query", "likes": "query", "dislikes": "query", "interests": "query",
	"doyoulike": "query", "myname": "query", "isaid": "query", "yousaid": "query",
}

// chat words the answer to a message that wants nothing but words.
func (s *speaker) chat(m understood) string {
	switch m.topic {
	case "likes", "dislikes", "interests":
		return cmp.Or(s.say(m.topic), s.say("nolist"))
	case "who":
		return cmp.Or(s.say(m.topic), s.say("whobare"))
	case "bot":
		if s.standby {
			return s.with("botlater", "standby", s.say("standby"))
		}
	case "doyoulike":
		return cmp.Or(s.ofTaste(m.rest, "yeslike", "nolike"), s.say("neutral"))
	case "abilities":
		return s.abilities()
	case "myname":
		return s.nameOfUser()
	case "introduce":
		return cmp.Or(s.with("introduced", "name", capital(firstName(m.rest))), s.say("ok"))
	case "isaid":
		return s.quote("isaid", s.theirs())
	case "yousaid":
		return s.quote("yousaid", s.own(1))
	}
	return s.say(m.topic)
}

// ofTaste is a saying about what the text mentions of the persona's likes, or of its
// dislikes; "" if it mentions none.
func (s *speaker) ofTaste(text, like, dislike string) string {
	liked := mentioned(text, slices.Concat(s.persona.likes, s.persona.interests), s.books)
	if liked != "" {
		return s.with(like, "thing", liked)
	}
	return s.with(dislike, "thing", mentioned(text, s.persona.dislikes, s.books))
}

// abilities lists the briefs of up to six actions.
func (s *speaker) abilities() string {
	var names []string
	for name := range s.actions {
		builtIn := strings.ToUpper(name) == name
		if !strings.HasPrefix(name, core.MessagePrefix) && s.actions[name].Brief != "" && !builtIn {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	var briefs []string
	for _, name := range names[:min(len(names), 6)] {
		brief := strings.TrimRight(strings.Join(strings.Fields(s.actions[name].Brief), " "), ". ")
		briefs = append(briefs, strings.ToLower(brief[:1])+brief[1:])
	}
	return cmp.Or(s.with("abilities", "abilities", strings.Join(briefs, "; ")), s.say("abilitiesnone"))
}

// nameOfUser answers "what is my name?": what users said of themselves counts before
// what the platform calls them.
func (s *speaker) nameOfUser() string {
	for _, text := range s.theirs() {
		m, _ := understand(text, nil, s.books)
		name := firstName(m.rest)
		if m.topic == "introduce" && name != "" {
			return s.with("mynametold", "name", name)
		}
	}
	return cmp.Or(s.say("myname"), s.say("mynamenone"))
}

func firstName(text string) string {
	words := split(text)
	if len(words) == 0 {
		return ""
	}
	return speakable(text[words[0].start:words[0].end])
}

// quote quotes the first of the lines.
func (s *speaker) quote(topic string, lines []string) string {
	first := strings.Join(lines[:min(len(lines), 1)], "")
	return cmp.Or(s.with(topic, "quote", quoted(first)), s.say("isaidnone"))
}

// quoted prepares a line for quotation marks.
func quoted(text string) string {
	text = strings.Join(strings.Fields(strings.ToValidUTF8(text, "")), " ")
	return txt.Clip(strings.ReplaceAll(text, `"`, "'"), 240)
}

// puzzled answers what was not understood: a word about the message, then an
// honest one about this engine.
func (s *speaker) puzzled() string {
	reaction := s.reaction(s.message())
	topic := "honest"
	if s.standby {
		topic = "standby"
	}
	var texts []string
	for _, honest := range s.wordings(topic, nil) {
		text := join(reaction, honest)
		if s.seed%3 == 0 {
			text = join(text, s.say("hint"))
		}
		texts = append(texts, text)
	}
	return s.fresh(texts)
}

func join(parts ...string) string { return strings.TrimSpace(strings.Join(parts, " ")) }

// reaction is a sentence about the message: what of it the persona likes or
// not, what was said of it before, or its most telling word.
func (s *speaker) reaction(text string) string {
	taste := s.ofTaste(text, "reactlike", "reactdislike")
	if taste != "" {
		return taste
	}
	question := strings.Contains(text, "?")
	if question {
		said := s.with("quote", "quote", s.remembered(text))
		if said != "" {
			return said
		}
	}
	topic := topicOf(text, s.books)
	switch {
	case topic != "" && s.seed%4 != 0:
		return s.with("reacttopic", "topic", topic)
	case question:
		return s.say("reactquestion")
	}
	return s.say("reactstatement")
}
