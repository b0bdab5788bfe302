package offline

import (
	"cmp"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"time"

	"synthbot/core"
	"synthbot/core/engine/offline/phrases"
)

type reminderReplies struct{ *speaker }

const (
	actionRemind = "reminder_set"
	actionList   = "reminder_list"
	actionCancel = "reminder_cancel"
)

// remind answers "remind me … to …". The next round answers with the action's output.
func (s reminderReplies) remind(m understood) plan {
	o := orderReader(s).read(m)
	switch {
	case !s.has(actionRemind):
		return s.speak("", s.say("remindnone"))
	case o.open != "":
		return s.speak("clarification", s.say(o.open, "text", o.what))
	}
	return act("action", s.set(o))
}

func (s reminderReplies) set(o order) step {
	layout := time.RFC3339
	if o.when.Wall {
		layout = "2006-01-02T15:04:05" // in the user's time zone, which the action knows
	}
	values := map[string]any{"text": o.what, "when": o.when.At.Format(layout)}
	if o.when.Repeat != "" {
		values["repeat"] = o.when.Repeat
	}
	return newStep(actionRemind, values)
}

// correct moves the reminder that was just set to another time, on the same day unless the answer names one.
func (s reminderReplies) correct(answer string, all []reminder) plan {
	var old reminder
	for _, r := range all {
		if strings.Contains(contextReader(s).justSet(), clipForeign(r.Text)) && len(r.Text) > len(old.Text) {
			old = r
		}
	}
	isWake := func(b *phrases.Book) bool { return clipForeign(b.Says["wake"][0]) == clipForeign(old.Text) }
	reader := contextReader(s)
	if slices.ContainsFunc(s.books, isWake) {
		reader = contextReader(orderReader(s).early())
	}
	when, _ := reader.newTime(answer, s.now)
	due := old.at()
	midnight := time.Date(due.Year(), due.Month(), due.Day(), 0, 0, 0, 0, s.now.Location())
	if when.Wall && !when.Dated && midnight.After(s.now) {
		when, _ = reader.newTime(answer, midnight.Add(-time.Second)) // so that midnight itself counts
	}
	if old.ID == "" {
		return s.speak("clarification", s.say("cancelwhich")+s.rows(all, 0))
	}
	when.Repeat = cmp.Or(when.Repeat, old.Repeat)
	cancel := newStep(actionCancel, map[string]any{"id": old.ID})
	cancel.Conditions = []core.Condition{{Field: "results." + actionRemind + ".id", Operator: "exists"}}
	return act("action", s.set(order{when: when, what: old.Text}), cancel)
}

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
	topic := "reminded"
	if r.Repeat != "" {
		topic = "remindedagain"
	}
	return s.say(topic, "text", clipForeign(r.Text), "at", s.moment(r.at()), "every", s.every(r.Repeat))
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
		names := s.names("weekdays")
		for day := range strings.SplitSeq(parts["BYDAY"], ",") {
			days = append(days, names[max(0, slices.Index([]string{"SU", "MO", "TU", "WE", "TH", "FR", "SA"}, day))])
		}
	}
	words := s.book.Lists["every"][key]
	return strings.NewReplacer("{n}", parts["INTERVAL"], "{days}", s.list(days)).Replace(words)
}
