package offline

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"synthbot/core/engine/offline/phrases"
	"synthbot/core/spoken"
	"synthbot/core/txt"
)

// contextReader reads messages that only make sense after what the bot said before.
type contextReader struct{ *speaker }

// answerToQuestion reads the message as the answer to a question about a reminder: its time or its text.
func (s contextReader) answerToQuestion(m understood) (h hit, ok bool) {
	request, question := s.openRequest(s.history)
	late := question == "" && len(s.history) > 2
	if late { // they have talked about something else since
		request, question = s.openRequest(s.history[:len(s.history)-2])
	}
	isNew := m.isOrder() && m.whole
	if question == "" || isNew || late && s.justSet() != "" || !s.has(actionRemind) {
		return h, false
	}
	answer := orderReader(s).clock(s.withoutProposal(s.withoutName()))
	if question != "remindwhat" {
		answer = s.fromNow(answer)
	}
	isTime := orderReader(s).isTime(answer, question)
	switch {
	case late && (m.topic != "" || !isTime || question == "remindwhat"):
		return h, false
	case m.topic == "no", m.topic == "forget" && m.rest() == "":
		return hit{topic: "remindnever"}, true
	case !late && question != "remindwhat" && s.isVague(answer):
		return hit{topic: "remindwhen"}, true
	case !isTime && m.whole && m.topic != "" && m.topic != "yes" && m.topic != "ok":
		return h, false // another subject
	case question == "remindwhat" || isTime:
		return hit{"remind", []string{request + " " + answer}}, true
	case m.topic != "" || s.mentions("asks", s.message()): // another subject
	case len(s.botLines(2)) < 2 || !s.saidBefore(s.botLines(2)[1], questions()...):
		return hit{topic: "remindwhen"}, true // ask again once
	}
	return h, false
}

// fromNow returns "in 5 minutes" for "5 minutes", and other answers unchanged. "9 heures" is 9 o'clock.
func (s contextReader) fromNow(answer string) string {
	when, err := s.reader.Read(answer, s.now)
	_, _, isNoTime := s.reader.Find(answer, s.now)
	for _, b := range s.books {
		said := s.in(b).say("fromnow", "text", answer)
		then, rest, wrong := s.reader.Find(said, s.now)
		if err == nil && isNoTime != nil && wrong == nil && rest == "" && then == when {
			return said
		}
	}
	return answer
}

// isVague reports whether an answer is only "later" or the like, in any language.
func (s contextReader) isVague(answer string) bool {
	return slices.ContainsFunc(s.books, func(b *phrases.Book) bool {
		t := b.Read(answer).After(phrases.Filler)
		n := t.Begins("vague")
		return n > 0 && len(t.From(n).After(phrases.Filler).Words) == 0
	})
}

// withoutProposal removes "how about" from the front of an answer.
func (s contextReader) withoutProposal(answer string) string {
	for _, b := range s.books {
		t := b.Read(answer)
		n := t.Begins("proposal")
		if n > 0 && n < len(t.Words) {
			return t.From(n).String()
		}
	}
	return answer
}

// openRequest returns what the user has said about a reminder so far, and the topic of the bot's last question about
// it.
func (s contextReader) openRequest(history []line) (request, question string) {
	end := len(history)
	for end >= 2 && history[end-1].Self && s.isUserLine(history[end-2]) {
		asked := s.topicOfLine(history[end-1].Text, questions()...)
		if asked == "" {
			break
		}
		question = cmp.Or(question, asked)
		said := history[end-2].Text
		u := s.understand(said)
		if u.isOrder() {
			here := contextReader{s.in(u.book)}
			text, _ := orderReader(here).withoutWrongTimes(u.rest())
			text = orderReader(here).withoutJoiners(text)
			return strings.TrimSpace(here.withoutRefused(text, asked) + " " + request), question
		}
		before := history[:end-2]
		wasAskedFor := len(before) > 0 && s.saidBefore(before[len(before)-1].Text, "remindwhat")
		if orderReader(s).hasTime(said) || wasAskedFor {
			request = strings.TrimSpace(s.withoutRefused(said, asked) + " " + request)
		}
		end -= 2
	}
	return "", ""
}

// withoutRefused removes the time for which a request was refused. If the time was not understood, it keeps only what
// follows a word like "to".
func (s contextReader) withoutRefused(text, asked string) string {
	if asked == "remindwhen" || asked == "remindwhat" {
		return text
	}
	_, text, _ = orderReader(s).findTime(text)
	t := s.book.Read(text)
	for i := 1; asked == "remindlimit" && i < len(t.Words); i++ {
		after := t.From(i)
		n := after.Begins("joiners")
		if n > 0 && n < len(after.Words) && !s.book.Is("and", after.First()) {
			return after.From(n).String()
		}
	}
	return text
}

// questions returns the topics of questions about a reminder, which the next message may answer.
func questions() []string {
	return []string{"remindwhen", "remindwhat", "remindbad", "remindpast", "remindoften", "remindlimit"}
}

// correction reads the message as a new time for the reminder that was just set: "no, at 8", "make it 30".
func (s contextReader) correction(understood) (h hit, ok bool) {
	if !s.has(actionCancel) || s.justSet() == "" {
		return h, false
	}
	answer := ""
	for _, b := range s.books {
		t := b.Read(s.withoutName())
		after := t.After("correction").WithoutEnd("correction", "polite")
		if answer == "" && t.Begins("correction") > 0 {
			answer = after.String()
		}
	}
	_, isNumber := number(s.book, txt.Fold(answer))
	if isNumber {
		answer = s.timeOfNumber(answer)
		if answer == "" {
			return hit{topic: "correcthow"}, true
		}
	} else if _, ok = s.newTime(answer, s.now); !ok {
		return h, false
	}
	return hit{"remindmove", []string{answer}}, true
}

// timeOfNumber returns the time that a number means after the last request: after "in 20 minutes", 30 means minutes;
// after "at 8", 9 is an hour. It returns "" if neither is certain.
func (s contextReader) timeOfNumber(digits string) string {
	text, when, ok := s.latestTime()
	switch {
	case !ok:
		return ""
	case when.Wall:
		return orderReader(s).hour(digits)
	}
	return s.otherNumber(text, digits, when)
}

// latestTime finds the time that the user asked for last, and the text that contains it.
func (s contextReader) latestTime() (text string, when spoken.When, ok bool) {
	said := s.userLines()
	for _, text := range said[:min(len(said), 4)] {
		u := s.understand(text)
		if u.isOrder() {
			text = u.rest()
		}
		when, _, err := orderReader(s).findTime(text)
		if err == nil {
			return text, when, true
		}
	}
	return "", when, false
}

// newTime reads an answer that is only a time. "in" may be missing: "9 heures" means in 9 hours if the last request was
// such a time, or else 9 o'clock.
func (s contextReader) newTime(answer string, now time.Time) (when spoken.When, ok bool) {
	when, rest, err := s.reader.Find(answer, now)
	all, wrong := s.reader.Read(answer, now)
	if err != nil || rest != "" {
		return all, wrong == nil
	}
	if wrong == nil && when.Wall && !all.Wall {
		_, latest, known := s.latestTime()
		if known && !latest.Wall {
			return all, true
		}
	}
	return when, true
}

// otherNumber returns the time in a text ("in 20 minutes") with another number, or "" if it has more than a number and
// a unit.
func (s contextReader) otherNumber(text, digits string, whole spoken.When) string {
	words := s.book.Split(text)
	for i, w := range words {
		if _, ok := number(s.book, w.Fold); !ok {
			continue
		}
		for _, from := range []int{max(i-1, 0), i} {
			for _, last := range words[i+1 : min(i+3, len(words))] {
				when, ok := s.newTime(text[words[from].Start:last.End], s.now)
				if ok && when == whole {
					return text[words[from].Start:w.Start] + digits + text[w.End:last.End]
				}
			}
		}
	}
	return ""
}

// justSet returns what the bot said about the reminder that it set just before, or "". Messages that it has not
// understood since do not count.
func (s contextReader) justSet() string {
	if s.lastAnswer() == "" {
		return ""
	}
	for _, said := range s.botLines(4) {
		switch {
		case s.saidBefore(said, "reminded", "remindedagain"):
			return said
		case !s.saidBefore(said, "honest", "hint", "correcthow"):
			return ""
		}
	}
	return ""
}

// choice reads the message as a request to cancel the reminder that was just set ("never mind"), or some of those that
// were listed just before ("the second one").
func (s contextReader) choice(m understood) (h hit, ok bool) {
	switch m.topic {
	case "remindcancel", "forget", "forgetall", "timeleft", "remindlist", "recall", "whois":
		return h, false
	case "no":
		if s.has(actionCancel) && s.saidBefore(s.lastAnswer(), "reminded", "remindedagain") {
			return hit{topic: "remindcancel"}, true
		}
	}
	text := s.withoutName()
	_, isPlace := reminderReplies(s).position(text)
	isChoice := isPlace || s.book.Has("all", text) || m.topic == "" && len(phrases.Split(text)) <= 5
	return hit{"remindcancel", []string{text}}, isChoice && s.saidBefore(s.lastAnswer(), "cancelwhich", "cancelnone")
}

// refusal reads a request to cancel that ends with "not": "lösch die Erinnerung nicht".
func (s contextReader) refusal(m understood) (h hit, ok bool) {
	words := s.book.Split(strings.TrimRight(s.message(), " .!"))
	isCancel := m.topic == "remindcancel" || m.topic == "forget"
	return hit{topic: "keep"}, isCancel && s.book.Is("not", words[len(words)-1].Fold)
}

// topicOfLine returns the first of the topics of which a line of the bot is a wording, in any language, or "".
func (s contextReader) topicOfLine(line string, topics ...string) string {
	for _, topic := range topics {
		isOne := func(wording string) bool {
			before, _, _ := strings.Cut(wording, "{")
			return before != "" && strings.HasPrefix(line, strings.TrimSpace(before))
		}
		isSaid := func(b *phrases.Book) bool { return slices.ContainsFunc(b.Says[topic], isOne) }
		if slices.ContainsFunc(s.books, isSaid) {
			return topic
		}
	}
	return ""
}

func (s *speaker) saidBefore(line string, topics ...string) bool {
	return contextReader{s}.topicOfLine(line, topics...) != ""
}
