package calendar

import (
	"errors"
	"testing"
	"time"

	"synthbot/core/timezone"

	"github.com/teambition/rrule-go"
)

func zone(t testing.TB, name string) *time.Location {
	t.Helper()
	loc, ok := timezone.Load(name)
	if !ok {
		t.Fatalf("no zone %s", name)
	}
	return loc
}

// TestAt converts local times around clock changes in four zones, one with a change of half an hour and one
// whose change skips midnight.
func TestAt(t *testing.T) {
	for _, tc := range []struct{ zone, wall, want string }{
		{"Europe/Rome", "2027-03-28T01:59:00", "2027-03-28T01:59:00+01:00"},
		{"Europe/Rome", "2027-03-28T02:30:00", "2027-03-28T03:30:00+02:00"}, // skipped
		{"Europe/Rome", "2027-10-31T02:30:00", "2027-10-31T02:30:00+02:00"}, // occurs twice
		{"Europe/Rome", "2027-10-31T03:00:00", "2027-10-31T03:00:00+01:00"},
		{"America/New_York", "2027-03-14T02:00:00", "2027-03-14T03:00:00-04:00"},
		{"America/New_York", "2027-11-07T01:30:00", "2027-11-07T01:30:00-04:00"},
		{"Australia/Lord_Howe", "2027-10-03T02:15:00", "2027-10-03T02:45:00+11:00"},
		{"Australia/Lord_Howe", "2027-04-04T01:45:00", "2027-04-04T01:45:00+11:00"},
		{"America/Santiago", "2027-09-05T00:00:00", "2027-09-05T01:00:00-03:00"},
		{"Asia/Tokyo", "2027-03-28T02:30:00", "2027-03-28T02:30:00+09:00"},
	} {
		wall, err := time.Parse("2006-01-02T15:04:05", tc.wall)
		if err != nil {
			t.Fatal(err)
		}
		if got := Resolve(wall, zone(t, tc.zone)).Format(time.RFC3339); got != tc.want {
			t.Errorf("%s in %s: got %s, want %s", tc.wall, tc.zone, got, tc.want)
		}
	}
}

const far = 5 * 366 * 24 * time.Hour

func TestNext(t *testing.T) {
	for _, tc := range []struct {
		rule, zone, start string
		want              []string
	}{
		{"FREQ=DAILY", "Europe/Rome", "2027-03-26T09:00", []string{"2027-03-26T09:00+01:00", "2027-03-27T09:00+01:00", "2027-03-28T09:00+02:00"}},
		{"RRULE:FREQ=DAILY", "Europe/Rome", "2027-10-30T09:00", []string{"2027-10-30T09:00+02:00", "2027-10-31T09:00+01:00"}},
		{"FREQ=DAILY", "Europe/Rome", "2027-03-27T02:30", []string{"2027-03-27T02:30+01:00", "2027-03-28T03:30+02:00", "2027-03-29T02:30+02:00"}},
		{"FREQ=DAILY", "America/New_York", "2027-11-06T01:30", []string{"2027-11-06T01:30-04:00", "2027-11-07T01:30-04:00", "2027-11-08T01:30-05:00"}},
		{"FREQ=DAILY", "America/Santiago", "2027-09-04T00:00", []string{"2027-09-04T00:00-04:00", "2027-09-05T01:00-03:00", "2027-09-06T00:00-03:00"}},
		{"FREQ=WEEKLY;BYDAY=SU", "Australia/Lord_Howe", "2027-09-26T02:15", []string{"2027-09-26T02:15+10:30", "2027-10-03T02:45+11:00", "2027-10-10T02:15+11:00"}},
		{"FREQ=HOURLY", "Europe/Rome", "2027-03-28T01:00", []string{"2027-03-28T01:00+01:00", "2027-03-28T03:00+02:00", "2027-03-28T04:00+02:00"}},
		{"FREQ=HOURLY", "Europe/Rome", "2027-10-31T01:00", []string{"2027-10-31T01:00+02:00", "2027-10-31T02:00+02:00", "2027-10-31T02:00+01:00"}},
		{"FREQ=HOURLY;BYHOUR=2,3", "Europe/Rome", "2027-03-28T00:00", []string{"2027-03-28T03:00+02:00", "2027-03-29T02:00+02:00"}},
		{"FREQ=WEEKLY;BYDAY=MO,TH", "UTC", "2026-11-21T08:00", []string{"2026-11-23T08:00Z", "2026-11-26T08:00Z", "2026-11-30T08:00Z"}},
		{"FREQ=MONTHLY;BYMONTHDAY=31", "UTC", "2027-01-31T08:00", []string{"2027-01-31T08:00Z", "2027-03-31T08:00Z"}},
		{"FREQ=DAILY;COUNT=2", "UTC", "2027-01-01T08:00", []string{"2027-01-01T08:00Z", "2027-01-02T08:00Z", ""}},
		{"FREQ=DAILY;UNTIL=20270102T080000Z", "Europe/Rome", "2027-01-01T09:00", []string{"2027-01-01T09:00+01:00", "2027-01-02T09:00+01:00", ""}},
		{"FREQ=DAILY;UNTIL=20270102T085959", "Europe/Rome", "2027-01-01T09:00", []string{"2027-01-01T09:00+01:00", ""}},
		{"FREQ=DAILY;UNTIL=20270102", "Europe/Rome", "2027-01-01T23:30", []string{"2027-01-01T23:30+01:00", "2027-01-02T23:30+01:00", ""}},
		{"FREQ=HOURLY;INTERVAL=12;UNTIL=20270102", "America/New_York", "2027-01-01T22:00", []string{"2027-01-01T22:00-05:00", "2027-01-02T10:00-05:00", "2027-01-02T22:00-05:00", ""}},
		{"FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=30", "UTC", "2027-01-01T08:00", []string{""}},
		{"FREQ=YEARLY;INTERVAL=6", "UTC", "2027-01-01T08:00", []string{"2027-01-01T08:00Z", ""}}, // beyond the limit
	} {
		r, err := ParseRule(tc.rule)
		if err != nil {
			t.Errorf("%s: got %v", tc.rule, err)
			continue
		}
		wall, err := time.Parse("2006-01-02T15:04", tc.start)
		if err != nil {
			t.Fatal(err)
		}
		start := Resolve(wall, zone(t, tc.zone))
		after := start.Add(-time.Second)
		for i, want := range tc.want {
			next, ok := r.Next(start, after, far)
			got := ""
			if ok {
				got = next.Format("2006-01-02T15:04Z07:00")
			}
			if got != want {
				t.Errorf("%s from %s: occurrence %d is %s, want %s", tc.rule, tc.start, i+1, got, want)
				break
			}
			after = next
		}
	}
}

// TestNextInAJump checks that a time that a clock change skips comes after it, also if the query is made after
// the change.
func TestNextInAJump(t *testing.T) {
	rome := zone(t, "Europe/Rome")
	r, err := ParseRule("FREQ=DAILY")
	if err != nil {
		t.Fatal(err)
	}
	start := At(2027, 3, 20, 2, 30, 0, rome)
	next, ok := r.Next(start, At(2027, 3, 28, 3, 0, 0, rome), far)
	if got := next.Format(time.RFC3339); !ok || got != "2027-03-28T03:30:00+02:00" {
		t.Errorf("next: got %s", got)
	}
}

func TestRulesRefused(t *testing.T) {
	for _, text := range []string{"", "DAILY", "FREQ=MINUTELY", "FREQ=SECONDLY", "FREQ=HOURLY;BYMINUTE=0,30", "FREQ=DAILY;BYSECOND=1", "FREQ=DAILY;INTERVAL=5000",
		"FREQ=DAILY;COUNT=99999", "FREQ=DAILY\nDTSTART:20200101T000000Z", "DTSTART=20200101T000000Z;FREQ=DAILY", "FREQ=DAILY;FREQ=HOURLY", "FREQ=DAILY;INTERVAL=-1",
		"FREQ=DAILY;BYHOUR=25", "FREQ=FORTNIGHTLY", "FREQ=DAILY;COUNT=-1", "FREQ=HOURLY;BYMONTH=2;BYMONTHDAY=30", "every day",
		"FREQ=MONTHLY;BYDAY=10FR", "FREQ=MONTHLY;BYDAY=1MO,-6FR", "FREQ=YEARLY;BYDAY=54MO", "FREQ=YEARLY;BYDAY=-54MO", "FREQ=YEARLY;BYMONTH=1;BYDAY=-6MO", "FREQ=YEARLY;BYEASTER=300", "FREQ=YEARLY;BYEASTER=-120"} {
		if r, err := ParseRule(text); !errors.Is(err, ErrRule) {
			t.Errorf("%q is accepted: %+v, %v", text, r, err)
		}
	}
}

// TestSeriesBreaks checks that a panic of the library ends only its series.
func TestSeriesBreaks(t *testing.T) {
	option, err := rrule.StrToROption("FREQ=MONTHLY;BYDAY=1MO,10FR")
	if err != nil {
		t.Fatal(err)
	}
	r := Rule{text: "FREQ=MONTHLY;BYDAY=1MO,10FR", option: *option}
	n := 0
	for range r.After(time.Date(2027, 1, 1, 9, 0, 0, 0, time.UTC), time.Date(2027, 1, 1, 9, 0, 0, 0, time.UTC), far) {
		n++
	}
	if n == 0 || n > 12 {
		t.Errorf("got %d occurrences", n)
	}
}

// TestLastWeeks checks rules with the largest allowed numbers.
func TestLastWeeks(t *testing.T) {
	for text, want := range map[string]string{
		"FREQ=MONTHLY;BYDAY=-5MO": "2027-03-01", "FREQ=MONTHLY;BYDAY=5FR": "2027-01-29", "FREQ=YEARLY;BYDAY=53FR": "2027-12-31", "FREQ=YEARLY;BYEASTER=80": "2027-06-16", "FREQ=YEARLY;BYEASTER=-80": "2027-01-07",
	} {
		r, err := ParseRule(text)
		if err != nil {
			t.Errorf("%s: got %v", text, err)
			continue
		}
		start := time.Date(2027, 1, 1, 9, 0, 0, 0, time.UTC)
		if next, ok := r.Next(start, start.Add(-time.Second), far); !ok || next.Format(time.DateOnly) != want {
			t.Errorf("%s: got %s, %v, want %s", text, next, ok, want)
		}
	}
}

// FuzzRule checks that an accepted rule does not recur within an hour, moves forward, and is read again from
// its text.
func FuzzRule(f *testing.F) {
	for _, s := range []string{"FREQ=DAILY", "FREQ=WEEKLY;BYDAY=MO,TU;INTERVAL=2", "FREQ=HOURLY;BYHOUR=1,2,3", "FREQ=MONTHLY;BYDAY=-1FR", "FREQ=YEARLY;BYEASTER=0",
		"FREQ=MONTHLY;BYSETPOS=-1;BYDAY=MO,TU,WE", "FREQ=YEARLY;BYWEEKNO=53;BYYEARDAY=366;UNTIL=20300101", "FREQ=HOURLY;BYMONTH=2;BYMONTHDAY=30", "FREQ=DAILY;WKST=SU;COUNT=3", "FREQ=MONTHLY;BYDAY=10FR", "FREQ=MONTHLY;BYDAY=-6FR,1MO", "FREQ=YEARLY;BYEASTER=-120"} {
		f.Add(s, int64(1_800_000_000))
	}
	rome := zone(f, "Europe/Rome")
	f.Fuzz(func(t *testing.T, text string, unix int64) {
		r, err := ParseRule(text)
		if err != nil {
			return
		}
		if again, err := ParseRule(r.String()); err != nil || again.String() != r.String() {
			t.Fatalf("%q was printed as %q: %v", text, r, err)
		}
		start := time.Unix(1_700_000_000+unix%(10*365*86400), 0).In(rome)
		after := start.Add(-time.Second)
		for range 3 {
			next, ok := r.Next(start, after, 366*24*time.Hour)
			if !ok {
				return
			}
			if !after.Before(start) && next.Sub(after) < 59*time.Minute || next.Before(start) {
				t.Fatalf("%q: %s comes after %s", text, next, after)
			}
			after = next
		}
	})
}

func BenchmarkNext(b *testing.B) {
	start := time.Date(2021, 11, 20, 9, 0, 0, 0, zone(b, "Europe/Rome"))
	for _, text := range []string{"FREQ=DAILY", "FREQ=HOURLY", "FREQ=WEEKLY;BYDAY=MO,TU,WE,TH,FR", "FREQ=DAILY;BYMONTH=2;BYMONTHDAY=30"} {
		r, err := ParseRule(text)
		if err != nil {
			b.Fatal(err)
		}
		b.Run(text, func(b *testing.B) {
			for b.Loop() {
				r.Next(start, start.AddDate(5, 0, 0), far)
			}
		})
	}
}
