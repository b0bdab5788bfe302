package offline

import "strings"

// kind says how the messages of some topics are read and answered. A phrase is certain enough to answer if its slots
// hold what its kind needs.
type kind struct {
	topics  string
	class   class
	intent  string                                // of the plan
	needs   func(s *speaker, h hit) bool          // nil: nothing
	checked bool                                  // needs slots for which says does not return ""
	says    func(s *speaker, m understood) string // the answer in words; nil without does: a wording of the topic
	does    func(s *speaker, m understood) plan   // the answer that may need an action; nil: only words
	rank    int                                   // the place of the topic in the list
}

// class says which other requests a message may hold besides one of a kind.
type class int

const (
	request    class = iota // any
	alone                   // none
	smallTalk               // none; while a language model is missing, groups hear that instead of small talk
	subject                 // any, but otherwise like small talk
	contextual              // any; no phrase has the topic, because it follows from what was said before
)

func (k kind) isSmallTalk() bool { return k.class == smallTalk || k.class == subject }

// acts reports whether a request may need an action.
func (k kind) acts() bool { return k.does != nil && k.says == nil }

// by lets a group of replies answer for a speaker.
func by[Replies ~struct{ *speaker }, In, Out any](answer func(Replies, In) Out) func(*speaker, In) Out {
	return func(s *speaker, in In) Out { return answer(Replies{s}, in) }
}

// kinds returns the kinds by topic. Topics are listed by priority: "hello, what time is it?" is a question about the
// time.
func kinds() map[string]kind {
	all := make(map[string]kind)
	for _, k := range []kind{
		{topics: "crisis", class: alone},
		{topics: "keep"},
		{topics: "remind wake timer", does: by(reminderReplies.remind)},
		{topics: "timeleft remindlist", does: by(reminderReplies.listReminders)},
		{topics: "remindcancel", needs: isShort, does: by(reminderReplies.listReminders)},
		{topics: "nolonger forget", does: by(noteReplies.forget)},
		{topics: "forgetall", does: by(noteReplies.forget), says: (*speaker).wording},
		{topics: "recallme mylikes mydislikes", does: by(noteReplies.recall)},
		{topics: "whois", needs: isShort, does: by(noteReplies.recall)},
		{topics: "recall", does: by(noteReplies.recall)},
		{topics: "remember", needs: by(noteReplies.isNote), does: by(noteReplies.remember)},
		{topics: "choose", says: by(chanceReplies.choose)},
		{topics: "dice", needs: by(chanceReplies.isRoll), does: by(chanceReplies.roll)},
		{topics: "coin", says: by(chanceReplies.coin)},
		{topics: "number", needs: by(chanceReplies.areNumbers), says: by(chanceReplies.number)},
		{topics: "again", class: alone, does: by(followUpReplies.again)},
		{topics: "datethere", says: by(timeReplies.dateIn)},
		{topics: "timethere", says: by(timeReplies.timeIn)},
		{topics: "datein", checked: true, says: by(timeReplies.dateIn)},
		{topics: "dateago", checked: true, says: by(timeReplies.dateAgo)},
		{topics: "date", intent: "query", checked: true, says: by(timeReplies.dateOn)},
		{topics: "between", checked: true, says: by(timeReplies.between)},
		{topics: "until", checked: true, says: by(timeReplies.daysUntil)},
		{topics: "week", says: by(timeReplies.week)},
		{topics: "timeplace", checked: true, says: by(timeReplies.timeIn)},
		{topics: "time", intent: "query", checked: true, says: by(timeReplies.timeIn)},
		{topics: "sum", intent: "query", checked: true, says: by(followUpReplies.sum)},
		{topics: "myname", intent: "query", says: (*speaker).nameOfUser},
		{topics: "isaid", class: alone, intent: "query", says: by(followUpReplies.quoteUser)},
		{topics: "yousaid", class: alone, intent: "query", says: by(followUpReplies.quoteBot)},
		{topics: "dislikes likes interests", class: subject, intent: "query", says: by(selfReplies.tastes)},
		{topics: "doyoulike", class: subject, intent: "query", says: by(selfReplies.opinion)},
		{topics: "notname", needs: isName},
		{topics: "introduce", class: alone, needs: isName, says: (*speaker).greetByName},
		{topics: "lost", class: alone},
		{topics: "model", intent: "help"},
		{topics: "bot", intent: "query", says: by(selfReplies.whetherBot)},
		{topics: "language"},
		{topics: "yourname", intent: "query"},
		{topics: "who", intent: "query", says: by(selfReplies.who)},
		{topics: "age maker where"},
		{topics: "weather", class: subject},
		{topics: "abilities", class: subject, intent: "help", says: by(selfReplies.abilities)},
		{topics: "joke", class: subject},
		{topics: "how", class: smallTalk, intent: "greeting"},
		{topics: "love sick sad tired hungry bored angry afraid happy wish compliment insult", class: smallTalk},
		{topics: "tell", class: smallTalk, does: by(noteReplies.hear), says: by(selfReplies.reaction)},
		{topics: "night", class: smallTalk},
		{topics: "bye", class: smallTalk, intent: "farewell"},
		{topics: "thanks sorry laugh", class: smallTalk},
		{topics: "greeting", class: smallTalk, intent: "greeting"},
		{topics: "morning evening yes no ok", class: smallTalk},

		{topics: "remindmove", class: contextual, does: by(reminderReplies.listReminders)},
		{topics: "remindwhen correcthow", class: contextual, intent: "clarification"},
		{topics: "remindnever", class: contextual},
	} {
		if k.says == nil && k.does == nil {
			k.says = (*speaker).wording
		}
		if k.checked {
			k.needs = func(s *speaker, h hit) bool { return k.says(s, understood{hit: h}) != "" }
		}
		for topic := range strings.FieldsSeq(k.topics) {
			k.rank = len(all)
			all[topic] = k
		}
	}
	return all
}
