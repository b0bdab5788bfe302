package page

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"synthbot/core"
)

// TestLists checks that rows show their content and buttons. A row from a private conversation shows only the
// place and the author until the conversation is opened.
func TestLists(t *testing.T) {
	w := newWorld(t)
	w.live()
	jay := core.MustPath("telegram/@user/7")
	answer := Button{Label: "Answer", Command: "knowledge", Args: []Arg{{"id", "x" + canary}}, Text: &Arg{"text", "so far " + canary}, TextLabel: "What to say"}
	row := func(place core.Path, text string) Row {
		return Row{Text: text, Place: place, Person: jay, Time: w.clock(), Values: []string{"asked of " + text}, Buttons: []Button{answer}}
	}
	w.lists = map[string][]List{"knowledge": {
		{Title: "Questions", Note: "Reading " + canary, Live: true, Rows: []Row{row(group, "Where is it? "+canary), row(direct, private)},
			Buttons: []Button{{Label: "Read", Command: "knowledge", Args: []Arg{{"what", "sync"}}}}},
		{Title: "Sources", Rows: []Row{{Name: "handbook", Mark: "broken", Bad: true, Buttons: []Button{{Label: "Remove", Command: "unteach", Sure: "For good."}}}}},
		{Title: "Empty"},
	}}
	c := w.in()
	body := c.get("/knowledge").body
	has(t, body,
		`<p class="live" role="status">Reading &lt;script`, `<p class="words" dir="auto">Where is it? &lt;script`, "asked of Where is it?",
		`<time>2026-03-01 12:00:00</time> <a href="/talk/place?place=telegram%2F-100"><bdi>The reading circle`, "by <bdi>Jay Miller</bdi>",
		`<summary>Answer<span class="unseen"> Where is it? &lt;script`, `name="arg-id" value="x&lt;script`, `<textarea name="arg-text" rows="4" dir="auto" required>`+"\nso far &lt;script",
		`value="telegram/-100"><input type="hidden" name="back" value="/knowledge">`, `<p>Said in private: closed.</p>`, `href="/talk/place?place=telegram%2F1000"`,
		`<strong>handbook</strong> <span class="mark bad">broken</span>`, `<p>For good.</p>`, `<button class="grave">Remove<span class="unseen"> handbook</span>`, "<li>None.</li>",
	)
	if strings.Contains(body, private) || strings.Contains(body, "<script>alert") || strings.Count(body, "<textarea") != 1 {
		t.Errorf("the page has a private text or an unescaped name: %s", body)
	}
	csrf := c.csrf()
	press := func(place core.Path) int {
		return c.post("/do", "csrf", csrf, "command", "knowledge", "place", place.String(), "arg-id", "1", "back", "/knowledge").status
	}
	if status := press(direct); status != http.StatusForbidden || len(w.done) > 0 {
		t.Errorf("button of a closed place: status %d, done %q", status, w.done)
	}
	c.post("/talk/open", "csrf", csrf, "place", direct.String(), "reason", "to answer it")
	has(t, c.get("/knowledge").body, `<p class="words" dir="auto">`+private, `<span class="mark">private</span>`)
	for _, place := range []core.Path{direct, group, {}} {
		if status := press(place); status != http.StatusSeeOther {
			t.Errorf("button in %q: status %d", place, status)
		}
	}
	if want := []string{"knowledge telegram/1000 map[id:1]", "knowledge telegram/-100 map[id:1]", "knowledge  map[id:1]"}; !slices.Equal(w.done, want) {
		t.Errorf("done %q", w.done)
	}
	w.lists = nil
	has(t, c.get("/knowledge").body, "the plugin is off")
}

// TestCatalogue checks that the catalogue says what turns an action off, in all places or in one, and has a
// button for it.
func TestCatalogue(t *testing.T) {
	w := newWorld(t)
	w.lists = map[string][]List{"plugins": {{Title: "Plugins", Rows: []Row{{Name: "games", Mark: "on", Values: []string{"the default"}}}}}}
	c := w.in()
	body := c.get("/catalogue").body
	has(t, body, "<strong>games</strong>", "the default", "<p>1 actions.", "<dd>on</dd>", "<code>dice_roll</code> Roll")
	if strings.Contains(body, "Turn on") {
		t.Errorf("the page lacks its button: %s", body)
	}
	body = c.get("/catalogue?place=telegram/-100").body
	has(t, body, `In <bdi>The reading circle`, `<span class="mark bad">off</span>`, "<dd>off by a command in telegram/-100&lt;script",
		`name="place" value="telegram/-100"><input type="hidden" name="back" value="/catalogue?place=telegram%2F-100"><input type="hidden" name="arg-name" value="dice_roll">`)
	if strings.Contains(body, "games") || strings.Contains(body, "<script>alert") {
		t.Errorf("the page lists plugins for one place, or has an unescaped name: %s", body)
	}
	if status := c.get("/catalogue?place=//").status; status != http.StatusBadRequest {
		t.Errorf("invalid place: status %d", status)
	}
}
