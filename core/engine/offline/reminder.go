package offline

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"synthbot/core"
	"synthbot/core/engine/offline/phrases"
	"synthbot/core/spoken"
	"synthbot/core/txt"
)

// reminderReplies answers messages about reminders.
type reminderReplies struct{ *speaker }

const (
	actionRemind = "reminder_set"
	actionList   = "reminder_list"
	actionCancel = "reminder_cancel"
)

// remind answers "remind me … to …". The next round answers with the action's output.
func (s reminderReplies) remind(text string) plan {
	if !s.has(actionRemind) {
		return s.speak("", s.say("remindnone"))
	}
	when, what, question := s.readReminder(text)
	if question != "" {
		return s.speak("clarification", s.fresh(s.wordings(question, map[string]string{"text": what})))
	}
	return plan{Intent: "action", Actions: []step{s.set(what, when)}}
}

func (s reminderReplies) set(what string, when spoken.When) step {
	layout := time.RFC3339
	if when.Wall {
		layout = "2006-01-02T15:04:05" // in the user's time zone, which the action knows
	}
	values := map[string]any{"text": what, "when": when.At.Format(layout)}
	if when.Repeat != "" {
		values["repeat"] = when.Repeat
	}
	return newStep(actionRemind, values)
}

// wake is remind for "wake me", which needs no text.
func (s reminderReplies) wake(text string) plan {
	text = s.clock(text)
	first, rest, _ := strings.Cut(text, " ")
	hour := s.hour(first)
	if hour != "" { // "6 tomorrow"
		text = hour + " " + rest
	}
	s.reader = s.early
	_, _, question := s.readReminder(text)
	if question == "remindwhat" {
		text += " " + s.say("wake")
	}
	return s.remind(text)
}

// questions returns the topics of questions about a reminder, which the next message may answer.
func questions() []string {
	return []string{"remindwhen", "remindwhat", "remindbad", "remindpast", "remindoften", "remindlimit"}
}

// readReminder reads the time and the text of a reminder. question is the topic of what must be asked first.
func (s reminderReplies) readReminder(text string) (when spoken.When, what, question string) {
	if s.book.Has("rise", text) {
		s.reader = s.early
	}
	text, bad := s.withoutWrongTimes(text)
	when, what, err := s.findTime(text)
	what = clipForeign(s.withoutJoiners(what))
	corrected := s.corrected(text, what)
	switch {
	case corrected != text:
		return s.readReminder(corrected)
	case bad:
		return when, what, "remindbad"
	case s.isOfMonth(text, what, when, err):
		return when, what, "remindlimit"
	case errors.Is(err, spoken.ErrNever):
		return when, what, "remindbad"
	case errors.Is(err, spoken.ErrOften):
		return when, what, "remindoften"
	case errors.Is(err, spoken.ErrPast), err != nil && s.mentions("past", text),
		s.book.Phrase("ago", s.book.Split(text)) > 0:
		return when, what, "remindpast"
	case what == "":
		return when, what, "remindwhat"
	case s.isHalf(what):
		return when, what, "remindlimit"
	case err != nil:
		return when, what, "remindwhen"
	}
	return when, what, ""
}

// isOfMonth reports whether a time is a weekday of the month ("every second Tuesday of the month"), which reminders do
// not support.
func (s reminderReplies) isOfMonth(text, what string, when spoken.When, err error) bool {
	words := s.book.Split(what)
	isPlace := len(words) > 0 && (s.book.Phrase("bounds", words) > 0 || s.book.Is("ordinals", words[0].Fold))
	isUnread := err != nil && !errors.Is(err, spoken.ErrNever) && !errors.Is(err, spoken.ErrOften)
	return s.book.Has("ofmonth", text) && (isUnread || strings.HasPrefix(when.Repeat, "FREQ=WEEKLY") || isPlace)
}

// corrected returns the request with a typing error corrected, if the first word of its text is probably a word
// for a time.
func (s reminderReplies) corrected(text, what string) string {
	words := phrases.Split(what)
	if len(words) == 0 || len(words[0].Fold) <= 3 || s.book.Knows(words[0].Fold) {
		return text
	}
	w := words[0]
	for _, word := range slices.Sorted(maps.Keys(s.book.Lists["timewords"])) {
		if txt.Distance(w.Fold, word) == 1 {
			return strings.Replace(text, what[w.Start:w.End], word, 1)
		}
	}
	return text
}

// isHalf reports whether the text of a reminder begins or ends with a part of its time that was not understood: "and
// 7pm to …", "except sundays to …", "60 to …", "4 weeks to …".
func (s reminderReplies) isHalf(what string) bool {
	words := s.book.Split(what)
	for len(words) > 1 && (s.book.Is("and", words[0].Fold) || s.book.Phrase("vague", words) > 0) {
		words = words[1:]
	}
	if len(words) == 0 {
		return false
	}
	last := len(words) - 1
	for i := max(0, last-2); i <= last; i++ {
		isLimit := s.book.Phrase("limits", words[i:]) == last+1-i || s.book.Phrase("bounds", words[i:]) == last+1-i
		if isLimit && i > 0 {
			return true
		}
	}
	n := s.book.Phrase("bounds", words)
	if s.book.Phrase("limits", words) > 0 || n > 0 && n <= last && s.isMoment(what[words[n].Start:]) ||
		s.reader.Begins(what[words[0].Start:]) {
		return true
	}
	for len(words) > 1 && s.book.Is("articles", words[0].Fold) {
		words = words[1:]
	}
	digits := strings.TrimRight(words[0].Fold, "abcdefghijklmnopqrstuvwxyzº.")
	_, isNumber := number(s.book, digits)
	return isNumber && len(words) > 1 && (s.book.Phrase("joiners", words[1:]) > 0 || s.reader.Begins("in "+what) ||
		s.book.Is("units", words[1].Fold) && len(words) > 2)
}

// isMoment reports whether a text begins with a time, a number, a month or a named day.
func (s reminderReplies) isMoment(text string) bool {
	words := s.book.Split(text)
	_, isNumber := number(s.book, words[0].Fold)
	months := strings.Split(txt.Fold(s.book.Says["months"][0]), ", ")
	return isNumber || s.reader.Begins(text) || s.book.Phrase("holidays", words) > 0 ||
		slices.Contains(months, words[0].Fold)
}

// findTime finds a time at the start or the end of a text, or else within it.
func (s reminderReplies) findTime(text string) (spoken.When, string, error) {
	when, rest, err := s.reader.Find(text, s.now)
	if err == nil || !errors.Is(err, spoken.ErrUnclear) {
		return when, rest, err
	}
	words := phrases.Split(text)
	for i := min(len(words), 30) - 2; i > 0; i-- {
		within, before, wrong := s.reader.Find(text[:words[i].End], s.now)
		if wrong == nil && before != "" {
			return within, before + " " + strings.TrimSpace(text[words[i].End:]), nil
		}
	}
	return when, rest, err
}

// wrongTime matches what may be an impossible time: 25:00, 9:75, 13 pm; or, after a word like "at", 27.
var wrongTime = txt.Pattern(`(?i)(^|\s)(?:(\S+)\s)?(\d{1,3})(?:([:.h])(\d{2}))?(\s?[ap]\.?m\b\.?)?` +
	`(?:\s?(?:h|uhr|heures?|horas|ore|o'clock))?(?:$|[\s,;!?])`)

// withoutWrongTimes removes impossible times. bad reports whether there were any.
func (s reminderReplies) withoutWrongTimes(text string) (rest string, bad bool) {
	for _, m := range wrongTime().FindAllStringSubmatch(text, -1) {
		hour, _ := strconv.Atoi(m[3])
		minute, _ := strconv.Atoi(m[5])
		led := s.book.Is("at", txt.Fold(m[2]))
		wrong := hour > 24 || minute > 59 || m[6] != "" && hour > 12 || hour == 24 && minute > 0
		if wrong && (led || m[4] == ":" || m[6] != "") {
			cut := strings.TrimSpace(strings.TrimPrefix(m[0], m[1]))
			if !led {
				cut = strings.TrimSpace(strings.TrimPrefix(cut, m[2]))
			}
			text, bad = strings.Replace(text, cut, "", 1), true
		}
	}
	return strings.Join(strings.Fields(text), " "), bad
}

// withoutJoiners removes words like "to", "later" and "that I have to" from the front, and words that introduced a
// time from the end.
func (s reminderReplies) withoutJoiners(text string) string {
	words := s.book.Split(text)
	for n := 1; n > 0; words = words[n:] {
		n = max(s.book.Phrase("vague", words), s.book.Phrase("joiners", words))
		if n > 0 && s.book.Is("subject", words[0].Fold) {
			words = s.withoutDuty(words)
			break
		}
	}
	for _, w := range slices.Backward(words) {
		isIn := func(list string) bool { return s.book.Is(list, w.Fold) }
		if !slices.ContainsFunc([]string{"at", "and", "polite", "vague"}, isIn) {
			break
		}
		words = words[:len(words)-1]
	}
	if len(words) == 0 {
		return ""
	}
	return s.mainClause(text[words[0].Start:words[len(words)-1].End])
}

// withoutDuty removes "I have to" from the front of a clause, or "ich" and "muss" from around it. Other clauses keep
// their subject.
func (s reminderReplies) withoutDuty(words []phrases.Word) []phrases.Word {
	n, last := s.book.Phrase("duty", words[1:]), len(words)-1
	switch {
	case n > 0:
		return words[1+n:]
	case last > 1 && s.book.Is("dutyend", words[last].Fold):
		return words[1:last]
	}
	return words
}

// answerToQuestion reads the message as the answer to a question about a reminder: its time or its text.
func (s reminderReplies) answerToQuestion(m understood) (p plan, ok bool) {
	request, question := s.openRequest(s.history)
	late := question == "" && len(s.history) > 2
	if late { // they have talked about something else since
		request, question = s.openRequest(s.history[:len(s.history)-2])
	}
	isNew := (m.topic == "remind" || m.topic == "wake") && m.whole
	if question == "" || isNew || late && s.justSet() != "" || !s.has(actionRemind) {
		return plan{}, false
	}
	answer := s.clock(s.withoutProposal(s.withoutName()))
	isTime := s.isTime(answer, question)
	switch {
	case late && (m.topic != "" || !isTime || question == "remindwhat"):
		return plan{}, false
	case m.topic == "no", m.topic == "forget" && m.rest() == "":
		return s.speak("", s.say("remindnever")), true
	case !late && question != "remindwhat" && s.isVague(answer):
		return s.speak("clarification", s.say("remindwhen")), true
	case !isTime && m.whole && m.topic != "" && m.topic != "yes" && m.topic != "ok":
		return plan{}, false // another subject
	case question == "remindwhat" || isTime:
		return s.remind(request + " " + answer), true
	case m.topic != "" || s.mentions("asks", s.message()): // another subject
	case s.topicOfLine(strings.Join(s.botLines(2)[min(1, len(s.botLines(2))):], ""), questions()...) == "":
		return s.speak("clarification", s.say("remindwhen")), true // ask again once
	}
	return plan{}, false
}

// justSet returns what the bot said about the reminder that it set just before, or "". Messages that it has not
// understood since do not count.
func (s reminderReplies) justSet() string {
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

// correction returns the new time for the reminder that was just set: "no, at 8", "make it 30". It returns "" and true
// if a number may mean several times.
func (s reminderReplies) correction() (answer string, ok bool) {
	if !s.has(actionCancel) || s.justSet() == "" {
		return "", false
	}
	said := s.withoutName()
	for _, b := range s.books {
		words := b.Split(said)
		for n := b.Phrase("correction", words); n > 0 && n < len(words); n = b.Phrase("correction", words) {
			words = words[n:]
			last := len(words) - 1
			if last > 0 && (b.Phrase("correction", words[last:]) > 0 || b.Is("polite", words[last].Fold)) {
				words = words[:last]
			}
			answer = said[words[0].Start:words[len(words)-1].End]
		}
		if answer != "" {
			break
		}
	}
	_, isNumber := number(s.book, txt.Fold(answer))
	if isNumber {
		return s.timeOfNumber(answer), true
	}
	_, ok = s.newTime(answer, s.now)
	return answer, ok
}

// timeOfNumber returns the time that a number means after the last request: after "in 20 minutes", 30 means minutes;
// after "at 8", 9 is an hour. It returns "" if neither is certain.
func (s reminderReplies) timeOfNumber(digits string) string {
	text, when, ok := s.latestTime()
	switch {
	case !ok:
		return ""
	case when.Wall:
		return s.hour(digits)
	}
	return s.otherNumber(text, digits, when)
}

// latestTime finds the time that the user asked for last, and the text that contains it.
func (s reminderReplies) latestTime() (text string, when spoken.When, ok bool) {
	said := s.userLines()
	for _, text := range said[:min(len(said), 4)] {
		u := s.understand(text)
		switch u.topic {
		case "remind", "wake":
			text = u.rest()
		case "timer":
			text = s.say("timer") + " " + u.rest()
		}
		when, _, err := s.findTime(text)
		if err == nil {
			return text, when, true
		}
	}
	return "", when, false
}

// otherNumber returns the time in a text ("in 20 minutes") with another number, or "" if it has more than a number and
// a unit.
func (s reminderReplies) otherNumber(text, digits string, whole spoken.When) string {
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

// newTime reads an answer that is only a time. "in" may be missing: "9 heures" means in 9 hours if the last request was
// such a time, or else 9 o'clock.
func (s reminderReplies) newTime(answer string, now time.Time) (when spoken.When, ok bool) {
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

// correct moves the reminder that was just set to another time, on the same day unless the answer names one.
func (s reminderReplies) correct(answer string, all []reminder) plan {
	var old reminder
	for _, r := range all {
		if strings.Contains(s.justSet(), clipForeign(r.Text)) && len(r.Text) > len(old.Text) {
			old = r
		}
	}
	isWake := func(b *phrases.Book) bool { return clipForeign(b.Says["wake"][0]) == clipForeign(old.Text) }
	if slices.ContainsFunc(s.books, isWake) {
		s.reader = s.early
	}
	when, _ := s.newTime(answer, s.now)
	due := old.at()
	midnight := time.Date(due.Year(), due.Month(), due.Day(), 0, 0, 0, 0, s.now.Location())
	if when.Wall && !when.Dated && midnight.After(s.now) {
		when, _ = s.newTime(answer, midnight.Add(-time.Second)) // so that midnight itself counts
	}
	if old.ID == "" {
		return s.speak("clarification", s.say("cancelwhich")+s.rows(all, 0))
	}
	when.Repeat = cmp.Or(when.Repeat, old.Repeat)
	cancel := newStep(actionCancel, map[string]any{"id": old.ID})
	cancel.Conditions = []core.Condition{{Field: "results." + actionRemind + ".id", Operator: "exists"}}
	return plan{Intent: "action", Actions: []step{s.set(old.Text, when), cancel}}
}

// isTime reports whether an answer has a time, possible or not. If the question was for a time, the answer may have
// only a few other words.
func (s reminderReplies) isTime(answer, question string) bool {
	_, _, open := s.readReminder("x " + answer)
	_, rest, _ := s.findTime(answer)
	short := len(phrases.Split(rest)) < 4 && !s.mentions("asks", answer)
	return open != "remindwhen" && (question == "remindwhat" || short)
}

// withoutProposal removes "how about" from the front of an answer.
func (s reminderReplies) withoutProposal(answer string) string {
	for _, b := range s.books {
		words := b.Split(answer)
		n := b.Phrase("proposal", words)
		if n > 0 && n < len(words) {
			return answer[words[n].Start:]
		}
	}
	return answer
}

// isVague reports whether an answer is only "later" or the like, in any language.
func (s reminderReplies) isVague(answer string) bool {
	return slices.ContainsFunc(s.books, func(b *phrases.Book) bool {
		words := b.Split(answer)
		for len(words) > 0 && b.Is(phrases.Filler, words[0].Fold) {
			words = words[1:]
		}
		n := b.Phrase("vague", words)
		says := func(w phrases.Word) bool { return !b.Is(phrases.Filler, w.Fold) }
		return n > 0 && !slices.ContainsFunc(words[n:], says)
	})
}

// clock returns the time of a text that is only an hour, and other texts unchanged.
func (s reminderReplies) clock(text string) string { return cmp.Or(s.hour(text), text) }

// hour returns the time of a text that is only an hour, or "".
func (s reminderReplies) hour(text string) string {
	n, ok := number(s.book, txt.Fold(text))
	if ok && n >= 0 && n < 24 {
		return fmt.Sprintf("%d:00", n)
	}
	return ""
}

// openRequest returns what the user has said about a reminder so far, and the topic of the bot's last question about
// it.
func (s reminderReplies) openRequest(history []line) (request, question string) {
	end := len(history)
	for end >= 2 && history[end-1].Self && s.isUserLine(history[end-2]) {
		asked := s.topicOfLine(history[end-1].Text, questions()...)
		if asked == "" {
			break
		}
		if question == "" {
			question = asked
		}
		said := history[end-2].Text
		u := s.understand(said)
		if u.topic == "remind" || u.topic == "wake" {
			here := reminderReplies{s.in(u.book)}
			text, _ := here.withoutWrongTimes(u.rest())
			text = here.withoutJoiners(text)
			return strings.TrimSpace(here.withoutRefused(text, asked) + " " + request), question
		}
		before := history[:end-2]
		_, _, open := s.readReminder("x " + said)
		wasAskedFor := len(before) > 0 && s.saidBefore(before[len(before)-1].Text, "remindwhat")
		if open != "remindwhen" || wasAskedFor {
			request = strings.TrimSpace(s.withoutRefused(said, asked) + " " + request)
		}
		end -= 2
	}
	return "", ""
}

// withoutRefused removes the time for which a request was refused. If the time was not understood, it keeps only what
// follows a word like "to".
func (s reminderReplies) withoutRefused(text, asked string) string {
	if asked == "remindwhen" || asked == "remindwhat" {
		return text
	}
	_, text, _ = s.findTime(text)
	words := s.book.Split(text)
	for i := 1; asked == "remindlimit" && i < len(words); i++ {
		n := s.book.Phrase("joiners", words[i:])
		if n > 0 && i+n < len(words) && !s.book.Is("and", words[i].Fold) {
			return text[words[i+n].Start:]
		}
	}
	return text
}

// topicOfLine returns the first of the topics of which a line of the bot is a wording, in any language, or "".
func (s reminderReplies) topicOfLine(line string, topics ...string) string {
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
	return reminderReplies{s}.topicOfLine(line, topics...) != ""
}

// reminder is a reminder in the output of actions.
type reminder struct {
	ID     string `json:"id"`
	Text   string `json:"text"`
	Due    string `json:"due"`
	Repeat string `json:"repeat"`
	Zone   string `json:"zone"` // of Due; "" if it may not be shown
}

// at returns when the reminder is due, in the user's time zone.
func (r reminder) at() time.Time {
	at, err := time.Parse(time.RFC3339, r.Due)
	if err != nil {
		at, _ = time.Parse("2006-01-02T15:04", r.Due)
	}
	return at
}

func (s reminderReplies) reminded(raw json.RawMessage) string {
	var r reminder
	if json.Unmarshal(raw, &r) != nil || r.at().IsZero() {
		return s.say("donenothing")
	}
	more := map[string]string{"text": clipForeign(r.Text), "at": s.moment(r.at()), "every": s.every(r.Repeat)}
	if r.Repeat != "" {
		return s.fresh(s.wordings("remindedagain", more))
	}
	return s.fresh(s.wordings("reminded", more))
}

// moment writes a time, with the date unless it is today.
func (s *speaker) moment(at time.Time) string {
	clock := at.Format("15:04")
	d := at.Sub(s.now)
	if d > 0 && d < 2*time.Minute {
		clock = at.Format("15:04:05")
	}
	if at.YearDay() == s.now.YearDay() && at.Year() == s.now.Year() {
		return clock
	}
	return s.date(at) + ", " + clock
}

func (s reminderReplies) every(rule string) string {
	parts := make(map[string]string)
	for part := range strings.SplitSeq(rule, ";") {
		name, value, _ := strings.Cut(part, "=")
		parts[name] = value
	}
	key := strings.ToLower(parts["FREQ"])
	n, _ := strconv.Atoi(parts["INTERVAL"])
	if n > 1 {
		key += "n"
	}
	var days []string
	if parts["BYDAY"] != "" {
		key += "byday"
		names := strings.Split(s.book.Says["weekdays"][0], ", ")
		for day := range strings.SplitSeq(parts["BYDAY"], ",") {
			days = append(days, names[max(0, slices.Index([]string{"SU", "MO", "TU", "WE", "TH", "FR", "SA"}, day))])
		}
	}
	words := s.book.Lists["every"][key]
	return strings.NewReplacer("{n}", parts["INTERVAL"], "{days}", s.list(days)).Replace(words)
}
