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

type reminding struct{ *speaker }

const (
	actionRemind = "reminder_set"
	actionList   = "reminder_list"
	actionCancel = "reminder_cancel"
)

// remind answers "remind me … to …". What the action made of it is said in the next round.
func (s reminding) remind(text string) plan {
	if !s.has(actionRemind) {
		return s.speak("", s.say("remindnone"))
	}
	when, what, question := s.readReminder(text)
	if question != "" {
		return s.speak("clarification", s.fresh(s.wordings(question, map[string]string{"text": what})))
	}
	return plan{Intent: "action", Actions: []step{s.set(what, when)}}
}

func (s reminding) set(what string, when spoken.When) step {
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

// wake is remind for a request that may leave out what for.
func (s reminding) wake(text string) plan {
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

// questions are the topics of what is asked back about a reminder. The next message may answer them.
func questions() []string {
	return []string{"remindwhen", "remindwhat", "remindbad", "remindpast", "remindoften", "remindlimit"}
}

// readReminder reads when and of what to remind; question is the topic of what must be asked first.
func (s reminding) readReminder(text string) (when spoken.When, what, question string) {
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

// isOfMonth reports whether a time is a day of the week within a month, which cannot be set: "every second Tuesday of
// the month".
func (s reminding) isOfMonth(text, what string, when spoken.When, err error) bool {
	words := s.book.Split(what)
	isPlace := len(words) > 0 && (s.book.Phrase("bounds", words) > 0 || s.book.Is("ordinals", words[0].Fold))
	isUnread := err != nil && !errors.Is(err, spoken.ErrNever) && !errors.Is(err, spoken.ErrOften)
	return s.book.Has("ofmonth", text) && (isUnread || strings.HasPrefix(when.Repeat, "FREQ=WEEKLY") || isPlace)
}

// corrected corrects the first word of what was left of a request, if it is a slip of a word for a time.
func (s reminding) corrected(text, what string) string {
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

// isHalf reports whether the text of a reminder begins or ends with more about its time, which was not understood:
// "and 7pm to …", "except sundays to …", "60 to …", "4 weeks to …".
func (s reminding) isHalf(what string) bool {
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

// isMoment reports whether a text begins with a time, a number, a month or a day that has a name.
func (s reminding) isMoment(text string) bool {
	words := s.book.Split(text)
	_, isNumber := number(s.book, words[0].Fold)
	months := strings.Split(txt.Fold(s.book.Says["months"][0]), ", ")
	return isNumber || s.reader.Begins(text) || s.book.Phrase("holidays", words) > 0 ||
		slices.Contains(months, words[0].Fold)
}

// findTime finds a time at the beginning or the end of a text, else within it.
func (s reminding) findTime(text string) (spoken.When, string, error) {
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

// wrongTime is what looks like a time: 25:00, 9:75, 13 pm; or, behind a word like "at", 27.
var wrongTime = txt.Pattern(`(?i)(^|\s)(?:(\S+)\s)?(\d{1,3})(?:([:.h])(\d{2}))?(\s?[ap]\.?m\b\.?)?` +
	`(?:\s?(?:h|uhr|heures?|horas|ore|o'clock))?(?:$|[\s,;!?])`)

// withoutWrongTimes takes out times that no clock shows.
func (s reminding) withoutWrongTimes(text string) (rest string, bad bool) {
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

// withoutJoiners takes words like "to", "later" and "that I have to" from the front, and from the end words
// that led to a time.
func (s reminding) withoutJoiners(text string) string {
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

// withoutDuty takes "I have to" from the front of a clause, or "ich" and "muss" from around it. Other clauses keep
// their subject.
func (s reminding) withoutDuty(words []phrases.Word) []phrases.Word {
	n, last := s.book.Phrase("duty", words[1:]), len(words)-1
	switch {
	case n > 0:
		return words[1+n:]
	case last > 1 && s.book.Is("dutyend", words[last].Fold):
		return words[1:last]
	}
	return words
}

// answerToQuestion takes the message as what was asked for a reminder: its time, or what it is of.
func (s reminding) answerToQuestion(m understood) (p plan, ok bool) {
	request, question := s.openRequest(s.history)
	late := question == "" && len(s.history) > 2
	if late { // they talked of something else since
		request, question = s.openRequest(s.history[:len(s.history)-2])
	}
	isNew := (m.topic == "remind" || m.topic == "wake") && m.whole
	if question == "" || isNew || late && s.justSet() != "" || !s.has(actionRemind) {
		return plan{}, false
	}
	answer := s.clock(s.withoutProposal(s.bare()))
	isTime := s.isTime(answer, question)
	switch {
	case late && (m.topic != "" || !isTime || question == "remindwhat"):
		return plan{}, false
	case m.topic == "no", m.topic == "forget" && m.rest() == "":
		return s.speak("", s.say("remindnever")), true
	case !late && question != "remindwhat" && s.isVague(answer):
		return s.speak("clarification", s.say("remindwhen")), true
	case !isTime && m.whole && m.topic != "" && m.topic != "yes" && m.topic != "ok":
		return plan{}, false // they talk of something else
	case question == "remindwhat" || isTime:
		return s.remind(request + " " + answer), true
	case m.topic != "" || s.mentions("asks", s.message()): // they talk of something else
	case s.saidTopic(strings.Join(s.own(2)[min(1, len(s.own(2))):], ""), questions()...) == "":
		return s.speak("clarification", s.say("remindwhen")), true // once
	}
	return plan{}, false
}

// justSet is what the bot said about the reminder that was set just before; "" if none was. That it did not
// understand something since does not count.
func (s reminding) justSet() string {
	if s.lastAnswer() == "" {
		return ""
	}
	for _, said := range s.own(4) {
		switch {
		case s.saidBefore(said, "reminded", "remindedagain"):
			return said
		case !s.saidBefore(said, "honest", "hint", "correcthow"):
			return ""
		}
	}
	return ""
}

// correction is the time that a reminder should have which was just set: "no, at 8", "make it 30". It is "" if
// a number may mean several times.
func (s reminding) correction() (answer string, ok bool) {
	if !s.has(actionCancel) || s.justSet() == "" {
		return "", false
	}
	said := s.bare()
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
		return s.ofNumber(answer), true
	}
	_, ok = s.newTime(answer, s.now)
	return answer, ok
}

// ofNumber is the time that a number means after the latest request: with "in 20 minutes", 30 are minutes; with "at
// 8", 9 is an hour. It is "" if neither is certain.
func (s reminding) ofNumber(digits string) string {
	text, when, ok := s.latestTime()
	switch {
	case !ok:
		return ""
	case when.Wall:
		return s.hour(digits)
	}
	return s.otherNumber(text, digits, when)
}

// latestTime finds the time that users asked for last, and the text with it.
func (s reminding) latestTime() (text string, when spoken.When, ok bool) {
	said := s.theirs()
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

// otherNumber is the stretch of a text ("in 20 minutes") with another number; "" if it has not one alone.
func (s reminding) otherNumber(text, digits string, whole spoken.When) string {
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

// newTime reads what is nothing but a time, with "in" in front of a stretch or without. "9 hours" are a stretch if
// the latest request had one, else "9 heures" are a time of the day.
func (s reminding) newTime(answer string, now time.Time) (when spoken.When, ok bool) {
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

// correct gives the reminder that was just set another time, on its day unless another one was said.
func (s reminding) correct(answer string, all []reminder) plan {
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
	midnight := s.wall(old.at())
	if when.Wall && !when.Dated && midnight.After(s.now) {
		when, _ = s.newTime(answer, midnight.Add(-time.Second)) // also at midnight
	}
	if old.ID == "" {
		return s.speak("clarification", s.say("cancelwhich")+s.rows(all, 0))
	}
	when.Repeat = cmp.Or(when.Repeat, old.Repeat)
	cancel := newStep(actionCancel, map[string]any{"id": old.ID})
	cancel.Conditions = []core.Condition{{Field: "results." + actionRemind + ".id", Operator: "exists"}}
	return plan{Intent: "action", Actions: []step{s.set(old.Text, when), cancel}}
}

// wall is the beginning of the day that a reminder's time shows, on the clock of the user.
func (s reminding) wall(at time.Time) time.Time {
	return time.Date(at.Year(), at.Month(), at.Day(), 0, 0, 0, 0, s.now.Location())
}

// isTime reports whether an answer has a time, impossible or not. One that is wanted may have few other words.
func (s reminding) isTime(answer, question string) bool {
	_, _, open := s.readReminder("x " + answer)
	_, rest, _ := s.findTime(answer)
	short := len(phrases.Split(rest)) < 4 && !s.mentions("asks", answer)
	return open != "remindwhen" && (question == "remindwhat" || short)
}

// withoutProposal takes "how about" from the front of an answer.
func (s reminding) withoutProposal(answer string) string {
	for _, b := range s.books {
		words := b.Split(answer)
		n := b.Phrase("proposal", words)
		if n > 0 && n < len(words) {
			return answer[words[n].Start:]
		}
	}
	return answer
}

// isVague reports whether an answer says nothing but "later", in any language.
func (s reminding) isVague(answer string) bool {
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

// clock returns the time that an hour alone means; other texts stay as they are.
func (s reminding) clock(text string) string { return cmp.Or(s.hour(text), text) }

// hour returns the time that an hour alone means; "" for other texts.
func (s reminding) hour(text string) string {
	n, ok := number(s.book, txt.Fold(text))
	if ok && n >= 0 && n < 24 {
		return fmt.Sprintf("%d:00", n)
	}
	return ""
}

// openRequest is what users said for a reminder until the bot asked back, and its latest question.
func (s reminding) openRequest(history []line) (request, question string) {
	end := len(history)
	for end >= 2 && history[end-1].Self && s.isTheirs(history[end-2]) {
		asked := s.saidTopic(history[end-1].Text, questions()...)
		if asked == "" {
			break
		}
		if question == "" {
			question = asked
		}
		said := history[end-2].Text
		u := s.understand(said)
		if u.topic == "remind" || u.topic == "wake" {
			here := reminding{s.in(u.book)}
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

// withoutRefused takes a time out of a request that was refused for it. Of one that was not understood, what is behind
// a word like "to" is left.
func (s reminding) withoutRefused(text, asked string) string {
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

// saidTopic is the one of some topics of which a line of the bot is a wording, in any language; "" if there is none.
func (s reminding) saidTopic(line string, topics ...string) string {
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
	return reminding{s}.saidTopic(line, topics...) != ""
}

// reminder is one as the actions show it.
type reminder struct {
	ID     string `json:"id"`
	Text   string `json:"text"`
	Due    string `json:"due"`
	Repeat string `json:"repeat"`
}

// at is when it falls due, on the clock of whom it is for.
func (r reminder) at() time.Time {
	at, err := time.Parse(time.RFC3339, r.Due)
	if err != nil {
		at, _ = time.Parse("2006-01-02T15:04", r.Due)
	}
	return at
}

func (s reminding) reminded(raw json.RawMessage) string {
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

// moment tells a time as shortly as today allows.
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

func (s reminding) every(rule string) string {
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
