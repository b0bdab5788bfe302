package reminders

import (
	"strings"
	"testing"
	"time"

	"synthbot/core"
	"synthbot/core/command"
	"synthbot/core/values"
	"synthbot/plugins/plugintest"
)

// TestAll checks that admins see all reminders with place and rule, the next one first, until they are
// cancelled.
func TestAll(t *testing.T) {
	h := plugintest.NewHarness(t, "reminders")
	h.Set(time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC))
	p, err := New(h.Host, plugintest.Defaults(t, Config{}))
	if err != nil {
		t.Fatal(err)
	}
	call := func(place, who, what, text string) {
		t.Helper()
		path := core.MustPath(place)
		person, _ := path.Person(who)
		author := core.Author{ID: who, Rank: core.RankAdmin}
		c := command.Call{Path: path, Person: person, Author: author, Sees: []core.Path{path},
			Args: map[string]string{"what": what, "text": text}}
		if _, err := p.remind(t.Context(), c); err != nil {
			t.Fatal(err)
		}
	}
	call("room/1", "jay", "add", "every monday at 9 water the plants")
	call("room/2", "ann", "add", "in 2 hours call mum")
	all, err := p.All(t.Context())
	if err != nil || len(all) != 2 {
		t.Fatalf("got %+v, %v", all, err)
	}
	first, second := all[0], all[1]
	if first.Text != "call mum" || first.Place.String() != "room/2" || first.Person.String() != "room/@user/ann" || first.Repeats != "" ||
		!first.Due.Equal(time.Date(2026, 3, 2, 14, 0, 0, 0, time.UTC)) {
		t.Errorf("got %+v", first)
	}
	if second.Text != "water the plants" || second.Repeats != "every week on Monday" || second.Due.Weekday() != time.Monday || second.Due.Hour() != 9 {
		t.Errorf("got %+v", second)
	}
	call("room/1", "page", "cancel", second.ID)
	if all, err := p.All(t.Context()); err != nil || len(all) != 1 || all[0].ID != first.ID {
		t.Errorf("after a cancellation: got %+v, %v", all, err)
	}
	if err := h.Items.PutAll(t.Context(), values.New(core.MustPath("room/@user/bob"), keyReminder+"x", "no reminder")); err != nil {
		t.Fatal(err)
	}
	if all, err := p.All(t.Context()); err == nil || len(all) != 1 {
		t.Errorf("with a damaged item: got %+v, %v", all, err)
	}
}

// TestRepeats checks that a rule is described in words, or by its next occurrences.
func TestRepeats(t *testing.T) {
	const horizon = 365 * 24 * time.Hour
	due := time.Date(2026, 11, 27, 9, 0, 0, 0, time.UTC)
	for rule, want := range map[string]string{
		"": "", "FREQ=DAILY": "every day", "FREQ=HOURLY;INTERVAL=3": "every 3 hours", "FREQ=WEEKLY;BYDAY=MO,FR": "every week on Monday, Friday",
		"FREQ=MONTHLY;INTERVAL=1;BYMONTHDAY=1,15": "every month on day 1, 15",
		"FREQ=MONTHLY;BYDAY=-1FR":                 "on 25 Dec 2026 09:00, 29 Jan 2027 09:00, 26 Feb 2027 09:00, …",
		"FREQ=DAILY;COUNT=3":                      "on 28 Nov 2026 09:00, 29 Nov 2026 09:00",
		"FREQ=DAILY;COUNT=1":                      "",
		"FREQ=MONTHLY;BYMONTHDAY=-1":              "on 30 Nov 2026 09:00, 31 Dec 2026 09:00, 31 Jan 2027 09:00, …",
		"FREQ=X":                                  "",
	} {
		if got := (&reminder{Start: due, Due: due, Rule: rule}).repeats(horizon); got != want {
			t.Errorf("%s: got %q, want %q", rule, got, want)
		}
	}
	far := due.In(time.FixedZone("Far", 3*3600))
	got := (&reminder{Start: due, Due: far, Rule: "FREQ=WEEKLY;BYDAY=MO"}).repeats(horizon)
	if want := "every week on Monday, 09:00 (UTC)"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	here := time.Date(2026, 11, 27, 9, 0, 0, 0, time.Local)
	got = (&reminder{Start: here, Due: far, Rule: "FREQ=DAILY"}).repeats(horizon)
	if want := "every day, 09:00 (my time zone)"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestListBelow: a list shows the reminders of topics below its place, but not their texts. They can be cancelled.
func TestListBelow(t *testing.T) {
	_, p := stand(t, nil)
	call := func(place, who, what, text string) string {
		t.Helper()
		path := core.MustPath(place)
		person, _ := path.Person(who)
		author := core.Author{ID: who, Name: who}
		said, err := p.remind(t.Context(), command.Call{Path: path, Person: person, Author: author,
			Sees: []core.Path{path}, Args: map[string]string{"what": what, "text": text}})
		if err != nil {
			t.Fatal(err)
		}
		return said
	}
	call("room/1/7", "jay", "add", "tomorrow at 9 call mum")
	call("room/1/7", "ann", "add", "tomorrow at 9 sleep")
	call("room/2", "jay", "add", "tomorrow at 9 eat")
	listed := call("room/1", "jay", "list", "")
	hidden, id, _ := strings.Cut(listed, " · `")
	if hidden != "- Tuesday 3 March 2026, 09:00: (set in a topic or thread of this place)" || strings.Contains(id, "\n") {
		t.Errorf("the list above is %q, want one reminder without its text", listed)
	}
	if said := call("room/1", "jay", "cancel", strings.Trim(id, "`")); strings.Contains(said, "mum") {
		t.Errorf("the bot says %q, want no text of the topic", said)
	}
	if left := call("room/1/7", "jay", "list", ""); !strings.HasPrefix(left, "No reminders") {
		t.Errorf("the topic lists %q, want none", left)
	}
}
