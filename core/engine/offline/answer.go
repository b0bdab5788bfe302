package offline

import (
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
		return plan{Actions: []step{{Type: "IGNORE"}}}
	case "event_reminder": // input.type of what fell due
		return s.speak("", s.say("reminder", map[string]string{"text": echo(s.message())}))
	}
	text := s.message()
	if len(split(text)) == 0 {
		return s.speak("", s.wordless())
	}
	m, greets := understand(text, s.names(), s.books)
	p := s.reply(m)
	if greets && len(s.own(1)) == 0 {
		p.greet(s.say("hello", nil))
	}
	return p
}

// names are the words by which the bot is called.
func (s *speaker) names() []string {
	var names []string
	for _, name := range append([]string{s.persona.name}, s.persona.aliases...) {
		for _, w := range split(name) {
			names = append(names, w.fold)
		}
	}
	return names
}

func (s *speaker) wordless() string {
	p := s.payload
	if len(p.Image) > 2 || len(p.Video) > 2 || len(p.Attachments) > 0 {
		return s.say("attachment", nil)
	}
	return s.say("empty", nil)
}

// reply answers a message that was understood as m.
func (s *speaker) reply(m match) plan {
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
	return s.speak(intentOf(m.topic), s.chat(m))
}

// intentOf is the plan's word for a topic; "" where none fits.
func intentOf(topic string) string {
	switch topic {
	case "greeting", "how":
		return "greeting"
	case "bye":
		return "farewell"
	case "abilities":
		return "help"
	case "time", "date", "who", "yourname", "bot", "likes", "dislikes", "interests", "doyoulike", "myname", "isaid", "yousaid":
		return "query"
	}
	return ""
}

// chat words the answer to a message that wants nothing but words.
func (s *speaker) chat(m match) string {
	switch m.topic {
	case "likes", "dislikes", "interests":
		if text := s.say(m.topic, nil); text != "" {
			return text
		}
		return s.say("nolist", nil)
	case "who":
		if text := s.say(m.topic, nil); text != "" {
			return text
		}
		return s.say("whobare", nil)
	case "bot":
		if s.standby {
			return s.say("botlater", map[string]string{"standby": s.say("standby", nil)})
		}
	case "doyoulike":
		return s.opinion(m.rest)
	case "abilities":
		return s.abilities()
	case "myname":
		return s.nameOfPerson()
	case "introduce":
		return s.introduced(m.rest)
	case "isaid":
		return s.quoteOr(s.lastOf(false), "isaid", "isaidnone")
	case "yousaid":
		return s.quoteOr(s.lastOf(true), "yousaid", "isaidnone")
	}
	return s.say(m.topic, nil)
}

// opinion answers "do you like …?".
func (s *speaker) opinion(thing string) string {
	if hit := mentioned(thing, slices.Concat(s.persona.likes, s.persona.interests), s.books); hit != "" {
		return s.say("yeslike", map[string]string{"thing": hit})
	}
	if hit := mentioned(thing, s.persona.dislikes, s.books); hit != "" {
		return s.say("nolike", map[string]string{"thing": hit})
	}
	return s.say("neutral", nil)
}

// abilities tells the briefs of what may be done here.
func (s *speaker) abilities() string {
	var names []string
	for name := range s.actions {
		if !strings.HasPrefix(name, core.MessagePrefix) && s.actions[name].Brief != "" && strings.ToUpper(name) != name {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	var briefs []string
	for _, name := range names[:min(len(names), 6)] {
		brief := strings.TrimRight(strings.Join(strings.Fields(s.actions[name].Brief), " "), ". ")
		briefs = append(briefs, strings.ToLower(brief[:1])+brief[1:])
	}
	if len(briefs) == 0 {
		return s.say("abilitiesnone", nil)
	}
	return s.say("abilities", map[string]string{"abilities": strings.Join(briefs, "; ")})
}

// nameOfPerson answers "what is my name?": what he said himself counts before
// what the platform calls him.
func (s *speaker) nameOfPerson() string {
	for _, l := range slices.Backward(s.theirs()) {
		if m, _ := understand(l.Text, nil, s.books); m.topic == "introduce" {
			if name := firstName(m.rest); name != "" {
				return s.say("mynametold", map[string]string{"name": name})
			}
		}
	}
	if text := s.say("myname", nil); text != "" {
		return text
	}
	return s.say("mynamenone", nil)
}

func firstName(text string) string {
	words := split(text)
	if len(words) == 0 {
		return ""
	}
	return speakable(text[words[0].start:words[0].end])
}

func (s *speaker) introduced(rest string) string {
	name := firstName(rest)
	if name == "" {
		return s.say("ok", nil)
	}
	return s.say("introduced", map[string]string{"name": capital(name)})
}

// theirs are the lines of the person who speaks.
func (s *speaker) theirs() []line {
	var lines []line
	for _, l := range s.history {
		if !l.Self && (l.From == s.payload.Source.Username || l.From == "") {
			lines = append(lines, l)
		}
	}
	return lines
}

// lastOf is the latest line of the bot, or of the person.
func (s *speaker) lastOf(self bool) string {
	if self {
		if own := s.own(1); len(own) > 0 {
			return own[0]
		}
		return ""
	}
	if lines := s.theirs(); len(lines) > 0 {
		return lines[len(lines)-1].Text
	}
	return ""
}

func (s *speaker) quoteOr(quote, topic, none string) string {
	if quote = quoted(quote); quote == "" {
		return s.say(none, nil)
	}
	return s.say(topic, map[string]string{"quote": quote})
}

// quoted prepares a line for quotation marks.
func quoted(text string) string {
	text = strings.Join(strings.Fields(strings.ToValidUTF8(text, "")), " ")
	return txt.Clip(strings.ReplaceAll(text, `"`, "'"), 240)
}

// puzzled answers what was not understood: a word about the message, then an
// honest one about this engine.
func (s *speaker) puzzled() string {
	text := s.message()
	reaction := s.reaction(text)
	honest := s.wordings("honest", nil)
	if s.standby {
		honest = s.wordings("standby", nil)
	}
	var texts []string
	for i := range honest {
		if s.seed%3 == 0 {
			texts = append(texts, join(reaction, honest[i], s.say("hint", nil)))
			continue
		}
		texts = append(texts, join(reaction, honest[i]))
	}
	return s.fresh(texts)
}

func join(parts ...string) string { return strings.TrimSpace(strings.Join(parts, " ")) }

// reaction is a sentence about the message: what of it the persona likes or
// not, what was said of it before, or the word that stands out.
func (s *speaker) reaction(text string) string {
	if hit := mentioned(text, slices.Concat(s.persona.likes, s.persona.interests), s.books); hit != "" {
		return s.say("reactlike", map[string]string{"thing": hit})
	}
	if hit := mentioned(text, s.persona.dislikes, s.books); hit != "" {
		return s.say("reactdislike", map[string]string{"thing": hit})
	}
	question := strings.Contains(text, "?")
	if question {
		if line := s.remembered(text); line != "" {
			return s.say("quote", map[string]string{"quote": line})
		}
	}
	if topic := topicOf(text, s.books); topic != "" && s.seed%4 != 0 {
		return s.say("reacttopic", map[string]string{"topic": topic})
	}
	if question {
		return s.say("reactquestion", nil)
	}
	return s.say("reactstatement", nil)
}
