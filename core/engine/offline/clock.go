package offline

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"synthbot/core/engine/offline/phrases"
	"synthbot/core/engine/offline/places"
	"synthbot/core/spoken"
	"synthbot/core/txt"
)

type timeReplies struct{ *speaker }

// place is a place that a text names, with its time zones. An unknown place has none.
type place struct {
	name  string
	zones []string
}

// placeIn reads a place, without the words around it ("the city of …", "… right now").
func (s timeReplies) placeIn(text string) place {
	t := s.book.Read(text)
	isKnown := func() bool { return len(places.Zones(t.String())) > 0 }
	for len(t.Words) > 1 && t.Begins("articles") > 0 && !isKnown() {
		t = t.From(1)
	}
	for len(t.Words) > 1 && t.Ends(1, phrases.Filler) && !isKnown() {
		t = t.Before(len(t.Words) - 1)
	}
	return place{t.String(), places.Zones(t.String())}
}

// placesIn reads a place or a list such as "Rome, Paris and London". known reports whether it knows all of them.
func (s timeReplies) placesIn(text string) (all []place, known bool) {
	one := s.placeIn(text)
	if text == "" || len(one.zones) > 0 {
		return []place{one}, true
	}
	item := ""
	known = true
	for w := range strings.FieldsSeq(text + " ,") {
		bare := strings.Trim(w, ",;&")
		isAnd := bare == "" || s.book.Is("and", txt.Fold(bare))
		if !isAnd {
			item = join(item, bare)
		}
		if item != "" && (isAnd || strings.HasSuffix(w, ",")) {
			next := s.placeIn(item)
			all, item, known = append(all, next), "", known && len(next.zones) > 0
		}
	}
	return all, known
}

// textOf returns the text that names the places of a message. If it says "there", that is the last one.
func (s timeReplies) textOf(m understood) string {
	if strings.HasSuffix(m.topic, "there") {
		return followUpReplies(s).lastPlace()
	}
	return m.rest()
}

// timeIn answers with the time here, in places, or after a span of time.
func (s timeReplies) timeIn(m understood) string {
	text := s.textOf(m)
	words := phrases.Split(text)
	fold := txt.Fold(text)
	then, err := s.reader.Read(text, s.now)
	named, known := s.placesIn(text)
	switch {
	case text == "" && s.zone == "":
		return s.say("time")
	case s.book.Is("tongues", fold), s.book.Is("units", fold): // "and in French?"
		return ""
	case m.topic == "time" && len(words) == 2 && s.book.Is("units", words[1].Fold) && err == nil:
		return s.say("timethen", "at", s.moment(then.At))
	case !known && (s.strict || m.topic == "timeplace"):
		return ""
	}
	var times []string
	if text == "" {
		times = []string{s.zone + ": " + s.momentIn(s.now.Location())}
	}
	for _, p := range named[:min(len(named), 4)] {
		for _, zone := range p.zones[:min(len(p.zones), 4)] {
			loc, err := time.LoadLocation(zone)
			if err != nil {
				continue
			}
			name := placeName(p.name)
			if len(p.zones) > 1 {
				name = strings.ReplaceAll(zone[strings.LastIndexByte(zone, '/')+1:], "_", " ")
			}
			times = append(times, name+": "+s.momentIn(loc))
		}
	}
	switch {
	case len(times) == 0:
		return s.say("timewhere")
	case len(times) == 1:
		name, at, _ := strings.Cut(times[0], ": ")
		return s.say("timein", "place", name, "at", at)
	}
	return strings.Join(times, "; ") + "."
}

func (s timeReplies) dateIn(m understood) string {
	text := s.textOf(m)
	p := s.placeIn(text)
	_, known := s.placesIn(text)
	switch {
	case !known:
		return ""
	case len(p.zones) == 0:
		return s.say("date")
	}
	loc, err := time.LoadLocation(p.zones[0])
	if err != nil {
		return s.say("timewhere")
	}
	return s.say("datein", "place", placeName(p.name), "day", s.date(s.now.In(loc)))
}

// placeName capitalises the words of a place.
func placeName(text string) string {
	words := strings.Fields(clipForeign(text))
	for i, w := range words {
		if len(w) > 2 {
			words[i] = phrases.Capital(w)
		}
	}
	return strings.Join(words, " ")
}

// momentIn returns the time in a zone, with the weekday if it is another day there.
func (s timeReplies) momentIn(loc *time.Location) string {
	there := s.now.In(loc)
	clock := there.Format("15:04")
	if there.YearDay() != s.now.YearDay() {
		clock += " (" + s.names("weekdays")[there.Weekday()] + ")"
	}
	return clock
}

// dayAndMonth is a date such as "24.12" or "3.10", without the usual full stop at its end.
var dayAndMonth = txt.Pattern(`^\d{1,2}\.\d{1,2}$`)

// yearOf matches a year from 1600 to 2099.
var yearOf = txt.Pattern(`\b(1[6-9]|20)\d\d\b`)

// dayOf reads a day: from the book's lists (yesterday, Christmas), or as a month, a date or another time. It returns
// the zero Time for a day that does not exist.
func (s timeReplies) dayOf(text string) (time.Time, bool) {
	if text == "" || strings.Contains(text, "%") {
		return s.now, text == ""
	}
	key := phrases.FoldName(text)
	if days, ok := s.book.Lists["days"][key]; ok {
		n, _ := strconv.Atoi(days)
		return s.now.AddDate(0, 0, n), true
	}
	if day, ok := s.book.Lists["holidays"][key]; ok { // "12-25"
		at, err := time.ParseInLocation("2006-01-02", s.now.Format("2006-")+day, s.now.Location())
		if err == nil && at.Before(s.now.AddDate(0, 0, -1)) {
			at = at.AddDate(1, 0, 0)
		}
		return at, err == nil
	}
	when, err := s.reader.Read(text, s.now)
	month := s.month(key)
	switch {
	case errors.Is(err, spoken.ErrNever):
		return time.Time{}, true // the day does not exist
	case err != nil && month >= 0:
		at := time.Date(s.now.Year(), time.Month(month+1), 1, 12, 0, 0, 0, s.now.Location())
		if at.Before(s.now) {
			at = at.AddDate(1, 0, 0)
		}
		return at, true
	case err != nil && dayAndMonth().MatchString(text):
		when, err = s.reader.Read("am "+text+". ", s.now)
	}
	if strings.ContainsAny(text, "0123456789") { // a date may be today
		now := time.Date(s.now.Year(), s.now.Month(), s.now.Day(), 0, 0, -1, 0, s.now.Location())
		today, rest, wrong := s.reader.Find(text, now)
		if wrong == nil && rest == "" && today.Wall && today.Dated && today.At.YearDay() == s.now.YearDay() {
			when, err = today, nil
		}
	}
	year, noYear := strconv.Atoi(yearOf().FindString(text))
	if errors.Is(err, spoken.ErrPast) && noYear == nil {
		when, err = s.reader.Read(text, time.Date(year, time.January, 1, 0, 0, 0, 0, s.now.Location()))
	}
	return when.At, err == nil && when.Repeat == ""
}

// dateAgo answers with the day some days or weeks ago, or the last weekday of a name.
func (s timeReplies) dateAgo(m understood) string {
	when, err := s.reader.Read(m.rest(), s.now)
	if err != nil {
		return ""
	}
	words := phrases.Split(m.rest())
	unit := s.book.Lists["units"][words[len(words)-1].Fold]
	isWeekday := len(words) == 1 && strings.Contains(txt.Fold(s.book.Says["weekdays"][0]), words[0].Fold)
	switch {
	case unit == "d", unit == "wk":
		return s.say("dateon", "day", s.date(s.now.AddDate(0, 0, -daysFrom(s.now, when.At))))
	case isWeekday:
		return s.say("dateon", "day", s.date(when.At.AddDate(0, 0, -7)))
	}
	return ""
}

func (s timeReplies) week(understood) string {
	_, week := s.now.ISOWeek()
	return s.say("week", "n", strconv.Itoa(week))
}

func (s timeReplies) dateOn(m understood) string {
	text := m.rest()
	at, ok := s.dayOf(text)
	switch {
	case !ok:
		return ""
	case text == "":
		return s.say("date")
	case at.IsZero():
		return s.say("nosuchday")
	}
	return s.say("dateon", "day", s.date(at))
}

func (s timeReplies) daysUntil(m understood) string {
	text := m.rest()
	at, ok := s.dayOf(text)
	days := daysFrom(s.now, at)
	when, rest, err := s.reader.Find(text, s.now)
	switch {
	case !ok:
		return ""
	case err == nil && rest == "" && when.Wall && !when.Dated: // a time of the day
		return s.say("untiltime", "span", formatSpan(when.At.Sub(s.now)), "at", when.At.Format("15:04"))
	case at.IsZero():
		return s.say("nosuchday")
	case days < 0:
		return s.say("untilpast", "day", s.date(at))
	case days == 0:
		return s.say("untiltoday")
	case days == 1:
		return s.say("untilone", "day", s.date(at))
	}
	return s.say("until", "n", strconv.Itoa(days), "day", s.date(at))
}

// timeLeft says how long it is until the first of the reminders, or "" if it is not within a day.
func (s timeReplies) timeLeft(all []reminder) string {
	if len(all) == 0 {
		return ""
	}
	next := slices.MinFunc(all, func(a, b reminder) int { return a.at().Compare(b.at()) }).at()
	left := next.Sub(s.now)
	if left < 0 || left >= 24*time.Hour {
		return ""
	}
	return s.say("untiltime", "span", formatSpan(left), "at", next.Format("15:04"))
}

// formatSpan writes a time span in hours and minutes, or in seconds if it is less than a minute.
func formatSpan(d time.Duration) string {
	minutes := int(d.Round(time.Minute).Minutes())
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%.0f s", d.Seconds())
	case minutes < 60:
		return fmt.Sprintf("%d min", minutes)
	}
	return fmt.Sprintf("%d h %d min", minutes/60, minutes%60)
}

func daysFrom(from, to time.Time) int {
	midnight := func(t time.Time) time.Time { return time.Date(t.Year(), t.Month(), t.Day(), 0, 0, 0, 0, time.UTC) }
	return int(midnight(to).Sub(midnight(from)).Hours() / 24)
}

// between says how many days are between two days. A day without a year is the next such day after today or after the
// first day; before a day with a year, it is the last such day before that.
func (s timeReplies) between(m understood) string {
	ok := true
	read := func(i int, now time.Time) time.Time {
		day := strings.TrimSpace(m.slots[i])
		_, bare := number(s.book, txt.Fold(day))
		if s.book.Is("days", phrases.FoldName(day)) { // "today"
			now = s.now
		}
		then := *s.speaker
		then.now = now
		at, known := timeReplies{&then}.dayOf(day)
		ok = ok && known && !bare && day != "" && !at.IsZero()
		return at
	}
	hasYear := func(i int) bool { return yearOf().MatchString(m.slots[i]) }
	to := read(1, s.now)
	from := read(0, s.now)
	switch {
	case hasYear(1) && !hasYear(0):
		from = read(0, to.AddDate(-1, 0, 0))
	case hasYear(0) && !hasYear(1), to.Before(from):
		to = read(1, from)
	}
	if to.Before(from) {
		from, to = to, from
	}
	n := daysFrom(from, to)
	more := []string{"n", strconv.Itoa(n), "from", s.date(from), "to", s.date(to)}
	switch {
	case !ok:
		return ""
	case n == 1:
		return s.say("betweenone", more...)
	}
	return s.say("between", more...)
}
