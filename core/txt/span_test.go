package txt

import (
	"testing"
	"time"
)

func FuzzSpan(f *testing.F) {
	for _, text := range []string{"30m", "7d", "1w2d", "2h30m", "90s", " 1H ", "h", "5", "3650d", "999999999999999999999d", "١h", "1d-1h"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		d, ok := ParseSpan(text)
		if !ok {
			return
		}
		if d <= 0 || d > maxSpan || d%time.Second != 0 {
			t.Errorf("%q: the duration %v is out of bounds", text, d)
		}
		if again, ok := ParseSpan(Span(d)); !ok || again != d {
			t.Errorf("%q: %v was written as %q, which is %v", text, d, Span(d), again)
		}
	})
}

func TestSpanWords(t *testing.T) {
	for d, want := range map[time.Duration]string{
		time.Hour: "1 hour", 14 * day: "2 weeks", 10 * time.Second: "10 seconds", 90 * time.Minute: "1 hour 30 minutes", 2*day + time.Second: "2 days 1 second",
	} {
		if got := SpanWords(d); got != want {
			t.Errorf("%v: got %q, want %q", d, got, want)
		}
	}
}

func TestMoment(t *testing.T) {
	rome, err := time.LoadLocation("Europe/Rome")
	if err != nil {
		t.Fatal(err)
	}
	now := time.Date(2026, 12, 31, 22, 30, 0, 0, rome)
	for after, want := range map[time.Duration]string{
		time.Hour: "23:30 CET", 2 * time.Hour: "1 Jan 2027 00:30 CET", -3 * day: "28 Dec 22:30 CET", 30 * time.Second: "22:30:30 CET",
	} {
		if got := Moment(now.Add(after).UTC(), now); got != want {
			t.Errorf("%v: got %q, want %q", after, got, want)
		}
	}
}
