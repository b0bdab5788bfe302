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

// timeReplies answers questions about the time and the date.
type timeReplies struct{ *speaker }

// zonesOf finds the time zones of a place. name is the place without the words around it ("the city of …",
// "… right now").
func (s timeReplies) zonesOf(text string) (name string, zones []string) {
	t := s.book.Read(text)
	known := func() bool { return len(places.Zones(t.String())) > 0 }
	for len(t.Words) > 1 && t.Begins("articles") > 0 && !known() {
		t = t.From(1)
	}
	for len(t.Words) > 1 && t.Ends(1, phrases.Filler) && !known() {
		t = t.Before(len(t.Words) - 1)
	}
	return t.String(), places.Zones(t.String())
}

// placeOf returns the places that a message names, or the last one if it says "there".
func (s timeReplies) placeOf(m understood) string {
	if strings.HasSuffix(m.topic, "there") {
		return followUpReplies(s).lastPlace()
	}
	return m.rest()
}

// timeIn answers with the time here, in places, or after a span of time.
func (s timeReplies) timeIn(m understood) string {
	text := s.placeOf(m)
	fold := txt.Fold(text)
	mustKnow := s.strict || m.topic == "timeplace"
	switch {
	case text == "" && s.zone == "":
		return s.say("time")
	case s.book.Is("tongues", fold), s.book.Is("units", fold): // "and in French?"
		return ""
	case m.topic == "time" && s.isSpan(text):
		then, _ := s.reader.Read(text, s.now)
		return s.say("timethen", "at", s.moment(then.At))
	case mustKnow && !s.knowsPlaces(text):
		return ""
	}
	named := []string{text}
	_, zones := s.zonesOf(text)
	if len(zones) == 0 {
		named = s.cutList(text)
	}
	var told []string
	if text == "" {
		told = []string{s.zone + ": " + s.momentIn(s.now.Location())}
	}
	for _, each := range named[:min(len(named), 4)] {
		name, zones := s.zonesOf(each)
		for _, zone := range zones[:min(len(zones), 4)] {
			loc, err := time.LoadLocation(zone)
			if err != nil {
				continue
			}
			place := placeName(name)
			if len(zones) > 1 {
				place = strings.ReplaceAll(zone[strings.LastIndexByte(zone, '/')+1:], "_", " ")
			}
			told = append(told, place+": "+s.momentIn(loc))
		}
	}
	switch {
	case len(told) == 0:
		return s.say("timewhere")
	case len(told) == 1:
		place, at, _ := strings.Cut(told[0], ": ")
		return s.say("timein", "place", place, "at", at)
	}
	return strings.Join(told, "; ") + "."
}

func (s timeReplies) isSpan(text string) bool {
	words := phrases.Split(text)
	_, err := s.reader.Read(text, s.now)
	return len(words) == 2 && s.book.Is("units", words[1].Fold) && err == nil
}

func (s timeReplies) dateIn(m understood) string {
	place := s.placeOf(m)
	name, zones := s.zonesOf(place)
	switch {
	case !s.knowsPlaces(place):
		return ""
	case len(zones) == 0:
		return s.say("date")
	}
	loc, err := time.LoadLocation(zones[0])
	if err != nil {
		return s.say("timewhere")
	}
	return s.say("datein", "place", placeName(name), "day", s.date(s.now.In(loc)))
}

// knowsPlaces reports whether a text names nothing or only known places.
func (s timeReplies) knowsPlaces(text string) bool {
	unknown := func(name string) bool {
		_, zones := s.zonesOf(name)
		return len(zones) == 0
	}
	return text == "" || !unknown(text) || !slices.ContainsFunc(s.cutList(text), unknown)
}

// cutList cuts a list such as "Rome, Paris and London" into its items.
func (s timeReplies) cutList(text string) (items []string) {
	item := ""
	for w := range strings.FieldsSeq(text) {
		bare := strings.Trim(w, ",;&")
		isAnd := s.book.Is("and", txt.Fold(bare)) || bare == ""
		if !isAnd {
			item = join(item, bare)
		}
		if (isAnd || strings.HasSuffix(w, ",")) && item != "" {
			items, item = append(items, item), ""
		}
	}
	if item != "" {
		items = append(items, item)
	}
	return items
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
	if day, ok := s.book.Lists["holidays"][key]; ok {
		text = day // "12-25"
		at, err := time.ParseInLocation("2006-01-02", s.now.Format("2006-")+text, s.now.Location())
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

// dayAgo reads how long ago a day was, in days or weeks, or the last weekday of that name.
func (s timeReplies) dayAgo(text string) (day time.Time, ok bool) {
	when, err := s.reader.Read(text, s.now)
	if err != nil {
		return day, false
	}
	words := phrases.Split(text)
	unit := s.book.Lists["units"][words[len(words)-1].Fold]
	if unit == "d" || unit == "wk" {
		return s.now.AddDate(0, 0, -daysFrom(s.now, when.At)), true
	}
	isWeekday := strings.Contains(txt.Fold(s.book.Says["weekdays"][0]), words[0].Fold) && len(words) == 1
	return when.At.AddDate(0, 0, -7), isWeekday
}

func (s timeReplies) dateAgo(m understood) string {
	day, ok := s.dayAgo(m.rest())
	if !ok {
		return ""
	}
	return s.say("dateon", "day", s.date(day))
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

// daysBetween reads two days and returns the earlier one first. A day without a year is the next such day after today
// or after the first day; before a day with a year, it is the last such day before that.
func (s timeReplies) daysBetween(slots []string) (from, to time.Time, ok bool) {
	read := func(text string, now time.Time) time.Time {
		day := strings.TrimSpace(text)
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
	ok = true
	years := func(i int) bool { return yearOf().MatchString(slots[i]) }
	if years(1) && !years(0) {
		to = read(slots[1], s.now)
		from = read(slots[0], to.AddDate(-1, 0, 0))
	} else {
		from = read(slots[0], s.now)
		to = read(slots[1], s.now)
		if years(0) && !years(1) || to.Before(from) {
			to = read(slots[1], from)
		}
	}
	if to.Before(from) {
		from, to = to, from
	}
	return from, to, ok
}

func (s timeReplies) between(m understood) string {
	from, to, ok := s.daysBetween(m.slots)
	if !ok {
		return ""
	}
	n := daysFrom(from, to)
	topic := "between"
	if n == 1 {
		topic = "betweenone"
	}
	return s.say(topic, "n", strconv.Itoa(n), "from", s.date(from), "to", s.date(to))
}
