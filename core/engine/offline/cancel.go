package offline

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"synthbot/core/engine/offline/phrases"
	"synthbot/core/spoken"
)

// listReminders plans the action that lists reminders: to show them, or to find those to cancel.
func (s reminderReplies) listReminders(understood) plan {
	if !s.has(actionList) {
		return s.speak("", s.say("remindnone"))
	}
	return act("query", newStep(actionList, map[string]any{}))
}

// listed answers with the reminders that the list action returned.
func (s reminderReplies) listed(m understood, raw json.RawMessage) plan {
	var found struct {
		Reminders []reminder `json:"reminders"`
		More      int        `json:"more"`
	}
	_ = json.Unmarshal(raw, &found)
	all := found.Reminders
	switch left := timeReplies(s).timeLeft(all); {
	case len(all) == 0 && m.topic == "forget":
		return s.speak("", s.say("forgetnone"))
	case len(all) == 0:
		return s.speak("", s.say("remindlistnone"))
	case m.topic == "timeleft" && left != "":
		return s.speak("query", left)
	case m.topic == "remindmove":
		return s.correct(m.rest(), all)
	case !slices.Contains([]string{"remindcancel", "forget", "forgetall"}, m.topic):
		return s.speak("query", s.say("remindlist")+s.rows(all, found.More))
	}
	chosen := s.chosen(m, all)
	_, _, kept, excepts := s.book.Read(s.message()).Cut("except")
	switch {
	case len(chosen) == 0 && excepts && len(s.matching(kept.String(), all)) == len(all):
		return s.speak("", s.say("keep"))
	case len(chosen) == 0 && s.isSpecific(m.rest()):
		return s.speak("clarification", s.say("cancelnone")+s.rows(all, found.More))
	case len(chosen) == 0:
		return s.speak("clarification", s.say("cancelwhich")+s.rows(all, found.More))
	case len(chosen) > 1 && !s.book.Has("all", s.message()):
		return s.speak("clarification", s.say("cancelwhich")+s.rows(chosen, 0))
	}
	var steps []step
	for _, r := range chosen[:min(len(chosen), maxCancelled)] {
		steps = append(steps, newStep(actionCancel, map[string]any{"id": r.ID}))
	}
	return act("action", steps...)
}

// maxCancelled is how many reminders are cancelled at once: a plan may have no more steps.
const maxCancelled = 30

// rows lists reminders, one on each line, and says how many more there are.
func (s reminderReplies) rows(all []reminder, more int) string {
	var b strings.Builder
	shown := min(len(all), 20)
	for i, r := range all[:shown] {
		fmt.Fprintf(&b, "\n%d. %s%s: %s", i+1, s.moment(r.at()), s.otherZone(r), clipForeign(r.Text))
		if r.Repeat != "" {
			b.WriteString(" (" + s.every(r.Repeat) + ")")
		}
	}
	more += len(all) - shown
	if more > 0 {
		b.WriteString("\n" + s.say("remindmore", "n", fmt.Sprint(more)))
	}
	return b.String()
}

// otherZone names the zone of a reminder that follows the clocks of another one than the user's.
func (s reminderReplies) otherZone(r reminder) string {
	_, theirs := r.at().Zone()
	_, own := r.at().In(s.now.Location()).Zone()
	if r.Zone == "" || r.Zone == "Local" || theirs == own {
		return ""
	}
	return " (" + r.Zone + ")"
}

// position returns the position in a list that a text names: "2", "#2", "the second one"; -1 is the last one.
func (s reminderReplies) position(text string) (n int, ok bool) {
	words := slices.DeleteFunc(s.book.Split(text), func(w phrases.Word) bool { return s.book.Is("articles", w.Fold) })
	for i, w := range words {
		place, isOrdinal := s.book.Lists["ordinals"][w.Fold]
		if isOrdinal {
			isMore := func(w phrases.Word) bool { return !s.book.Is("stop", w.Fold) }
			n, ok = number(s.book, place)
			return n, ok && !slices.ContainsFunc(slices.Delete(words, i, i+1), isMore)
		}
	}
	if len(words) != 1 {
		return 0, false
	}
	return number(s.book, words[0].Fold)
}

// isSpecific reports whether the rest of a request has a word that may select reminders.
func (s reminderReplies) isSpecific(rest string) bool {
	t := s.book.Read(rest)
	return len(t.After("all", "articles", "self", "polite", "plurals", "singulars").Words) > 0
}

// chosen returns the reminders that a request to cancel selects. If it names none, it selects all, or those that
// were shown last. Reminders that the request excepts are left out.
func (s reminderReplies) chosen(m understood, all []reminder) []reminder {
	rest := m.rest()
	for _, list := range []string{"ordinals", "days"} {
		_, within, _, ok := s.book.Read(s.message()).Cut(list)
		if rest == "" && ok { // it is part of the phrase
			rest = within.String()
		}
	}
	if _, _, after, ok := s.book.Read(s.message()).Cut("except"); ok {
		before, _, _, within := s.book.Read(rest).Cut("except")
		kept := s.matching(after.String(), all)
		if len(kept) == 0 || within && s.isSpecific(before.String()) {
			return nil // it is not clear enough
		}
		return filter(all, func(r reminder) bool { return !slices.Contains(kept, r) })
	}
	last := s.lastAnswer()
	shown := filter(all, func(r reminder) bool { return strings.Contains(last, clipForeign(r.Text)) })
	n, isPlace := s.position(rest)
	switch {
	case isPlace && len(shown) > 0 && s.saidBefore(last, "cancelwhich", "cancelnone", "remindlist"):
		return nth(shown, n)
	case s.isSpecific(rest):
		return s.matching(rest, all)
	case s.book.Read(s.message()).Has("all", "plurals"), len(all) == 1:
		return all
	}
	return shown
}

func filter(all []reminder, keep func(reminder) bool) []reminder {
	return slices.DeleteFunc(slices.Clone(all), func(r reminder) bool { return !keep(r) })
}

// nth returns only the n-th reminder, or the last one for -1, or none if there are fewer.
func nth(all []reminder, n int) []reminder {
	if n < 0 {
		n = len(all)
	}
	if n < 1 || n > len(all) {
		return nil
	}
	return all[n-1 : n]
}

// matching returns the reminders that match a text best, by their position, words, day or time.
func (s reminderReplies) matching(text string, all []reminder) []reminder {
	n, isPlace := s.position(text)
	if isPlace && n <= len(all) {
		return nth(all, n)
	}
	if isPlace && n < 24 { // "the one at 10"
		text = fmt.Sprintf("%d:00", n)
	}
	when, what, err := orderReader(s).findTime(text)
	if err != nil {
		when, err = s.reader.Read(text, s.now)
	}
	before, day, after, ok := s.book.Read(text).Cut("days")
	if ok { // includes today, which reader refuses if the time is over
		at, _ := timeReplies(s).dayOf(day.String())
		when, what, err = spoken.When{At: at, Dated: true}, before.String()+" "+after.String(), nil
	}
	layouts := []string{"15:04", "03:04"} // "the one at 10" may be the morning's or the evening's
	if when.Dated {
		layouts = []string{"2006-01-02"}
	}
	var then []reminder
	for _, layout := range layouts {
		if err == nil && len(then) == 0 {
			then = filter(all, func(r reminder) bool { return r.at().Format(layout) == when.At.Format(layout) })
		}
	}
	if len(then) > 0 {
		all, text = then, what
	}
	keys := keywordsOf(text, s.books)
	hits := func(r reminder) int { return keys.in(r.Text + " " + s.moment(r.at()) + " " + s.every(r.Repeat)) }
	most := 0
	for _, r := range all {
		most = max(most, hits(r))
	}
	if most == 0 && (len(keys) > 0 || len(then) == 0) {
		return nil
	}
	return filter(all, func(r reminder) bool { return hits(r) == most })
}

func (s reminderReplies) cancelled(outputs []output) plan {
	var gone []string
	for _, o := range outputs {
		var c struct{ Cancelled reminder }
		if o.Action == actionCancel && json.Unmarshal(o.Output, &c) == nil {
			gone = append(gone, clipForeign(c.Cancelled.Text))
		}
	}
	if len(gone) >= maxCancelled {
		return s.speak("", s.say("cancelledmany", "n", fmt.Sprint(len(gone))))
	}
	return s.speak("", s.say("cancelled", "text", strings.Join(gone, "; ")))
}
