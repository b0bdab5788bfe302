package offline

import (
	"cmp"
	"slices"
)

// selfReplies answers questions about the bot.
type selfReplies struct{ *speaker }

func (s selfReplies) tastes(m understood) string { return cmp.Or(s.say(m.topic), s.say("nolist")) }

func (s selfReplies) who(m understood) string {
	s.values["likes"] = s.inLanguage(s.values["likes"])
	return cmp.Or(s.say(m.topic), s.say("whobare"))
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
