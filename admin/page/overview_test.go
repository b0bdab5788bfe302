package page

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"synthbot/core"
	"synthbot/core/watch"
)

// has fails the test for each text that the page lacks.
func has(t *testing.T, page string, texts ...string) {
	t.Helper()
	for _, want := range texts {
		if !strings.Contains(page, want) {
			t.Errorf("no %q in %s", want, page)
		}
	}
}

func TestOverview(t *testing.T) {
	w := newWorld(t)
	w.state = State{
		Version: "v9", Began: w.clock(), Errors: 3, Used: 2_500_000, Free: 7e9,
		Engines: []Part{
			{Name: "big", Text: "Engine big fails. it cannot be reached, or is busy", Since: w.clock()},
			{Name: "home", Works: true, Text: "the key is refused", Since: w.clock()}, {Name: "offline", Works: true},
		},
		Interfaces: []Part{{Name: "telegram", Works: true}, {Name: "discord", Text: "it has stopped"}},
		Workers:    []string{"worker one (this one), lease for 8s more: telegram main"},
		Failing:    []string{"The disk is full."},
		Guests:     []Guest{{core.MustPath("telegram/@user/9"), "Eve " + canary}},
		Asleep:     []core.Path{group},
		Spent:      Spending{Tokens: 1234567, TokensLimit: 1000000, Cost: 1.5, CostLimit: 20},
	}
	c := w.in()
	body := c.get("/").body
	has(t, body,
		`<strong>big</strong> <span class="mark bad">fails</span> Engine big fails. it cannot be reached, or is busy`,
		`<strong>home</strong> <span class="mark good">works</span> <span class="who">failed last: the key is refused</span> <time class="who">2026-03-01 12:00:00</time>`,
		`<strong>offline</strong> <span class="mark good">works</span></li>`,
		`<strong>discord</strong> <span class="mark bad">fails</span> it has stopped`,
		`<dt>Workers</dt><dd><ul><li>worker one (this one), lease for 8s more: telegram main</li></ul></dd>`,
		`<p role="alert">The disk is full.</p>`, "1\u202f234\u202f567 of 1\u202f000\u202f000 tokens, cost 1.50 of 20.00", "budget spent",
		"3 in the log", "2.5 MB used, 7.0 GB free", "v9, started 2026-03-01 12:00:00",
		`value="telegram/@user/9"><button>Let in<span class="unseen"> Eve &lt;script`, "Wake<span", "<bdi>The reading circle &lt;script",
	)
	if strings.Contains(body, "<script>alert") {
		t.Error("a name is not escaped")
	}
	w.state.Spent = Spending{Tokens: 5}
	if body := c.get("/").body; !strings.Contains(body, "<dd>5 tokens, cost 0.00</dd>") {
		t.Errorf("without limits: %s", body)
	}
}

// TestButtons checks that buttons run some chat commands, and that the next page shows the result.
func TestButtons(t *testing.T) {
	w := newWorld(t)
	c := w.in()
	csrf := c.csrf()
	r := c.post("/do", "csrf", csrf, "command", "pair", "arg-code", "telegram/@user/9", "place", "", "back", "/")
	if r.status != http.StatusSeeOther || r.head.Get("Location") != "/" {
		t.Errorf("button: status %d, to %q", r.status, r.head.Get("Location"))
	}
	has(t, c.get("/").body, `<p role="status" class="note words">Done: pair.</p>`)
	if body := c.get("/").body; strings.Contains(body, "Done:") {
		t.Error("the result is shown again")
	}
	c.post("/do", "csrf", csrf, "command", "mute", "place", group.String())
	if want := []string{"pair  map[code:telegram/@user/9]", "mute telegram/-100 map[]"}; !slices.Equal(w.done, want) {
		t.Errorf("done %q", w.done)
	}
	for back, want := range map[string]string{
		"/talk/place?place=telegram%2F-100": "/talk/place?place=telegram%2F-100", "//evil.example/x": "/x",
		"https://evil.example/x": "/x", "javascript:alert(1)": "/", `/\\evil.example`: `/%5C%5Cevil.example`, "": "/", "%zz": "/",
	} {
		r := c.post("/do", "csrf", csrf, "command", "reload", "back", back)
		if got := r.head.Get("Location"); got != want {
			t.Errorf("back to %q redirects to %q", back, got)
		}
	}
	done := len(w.done)
	for name, form := range map[string][]string{
		"another command":   {"command", "say", "arg-text", "x"},
		"no command":        {},
		"not a place":       {"command", "wake", "place", "//"},
		"a command of none": {"command", "usage"},
	} {
		if r := c.post("/do", append([]string{"csrf", csrf}, form...)...); r.status != http.StatusBadRequest {
			t.Errorf("%s: got %d", name, r.status)
		}
	}
	if len(w.done) != done {
		t.Errorf("done %q", w.done[done:])
	}
	r = c.post("/do", "csrf", csrf, "command", "pair", "arg-code", "refused", "back", "/settings")
	if r.status != http.StatusSeeOther || r.head.Get("Location") != "/settings" {
		t.Errorf("refused command: status %d, to %q", r.status, r.head.Get("Location"))
	}
	has(t, c.get("/").body, `<p role="status" class="note words">Not done: `)
	if log := w.log.String(); !strings.Contains(log, `"command by an admin on the page" command=pair`) {
		t.Errorf("log: %s", log)
	}
}

// TestSettings checks that a setting has its value, default and origin, and a form if a command can change it.
func TestSettings(t *testing.T) {
	w := newWorld(t)
	body := w.in().get("/settings?place=telegram/-100").body
	has(t, body, "default always · from the file, for telegram/-100", `<select name="arg-what" aria-label="activation"><option>never</option></select>`,
		`<input type="hidden" name="arg-what" value="language">`, `<input name="arg-value" aria-label="language, or default" value="" placeholder="as spoken"`)
	if n := strings.Count(body, `action="/do"`); n != 2 {
		t.Errorf("got %d forms", n)
	}
}

// TestNames checks that users and places are shown by name, with their path.
func TestNames(t *testing.T) {
	w := newWorld(t)
	w.live()
	c := w.in()
	const circle, jay = "The reading circle", "<bdi>Jay Miller</bdi> <span class=\"path\">telegram/@user/7</span>"
	for path, texts := range map[string][]string{
		"/": {circle, jay}, "/turn?place=telegram/-100&seq=1": {circle, jay}, "/talk": {circle}, "/talk/place?place=telegram/-100": {circle},
		"/memories": {circle}, "/memories/one?id=1&place=telegram/-100": {circle, jay}, "/settings?place=telegram/-100": {circle},
		"/charts": {circle, "Jay Miller telegram/@user/7"},
	} {
		has(t, c.get(path).body, texts...)
	}
	c.post("/talk/open", "csrf", c.csrf(), "place", direct.String(), "reason", "to look for names")
	has(t, c.get("/sessions").body, direct.String())
}

// TestFallback checks that a turn says that another engine answered, and how the first one failed. In private
// conversations, the engine's error text is hidden.
func TestFallback(t *testing.T) {
	w := newWorld(t)
	for _, place := range []core.Path{group, direct} {
		w.traces.Observe(watch.TurnEnd{
			Turn: core.TurnID{Path: place, Seq: 1}, Answered: true, Private: place == direct,
			Trace: &watch.Trace{Began: w.clock(), Took: time.Second, Asks: []watch.Ask{{
				Round: 1, Engine: "offline", Failed: []string{"engine big: retry_later: status 503: busy: " + private, "engine home: fatal: " + private},
			}}},
		})
	}
	c := w.in()
	has(t, c.get("/").body, `<td>offline <span class="mark bad">fallback</span></td>`)
	has(t, c.get("/turn?place=telegram/-100&seq=1").body, "answered by offline as a fallback", "engine big: retry_later: status 503: busy: "+private)
	body := c.get("/turn?place=telegram/1000&seq=1").body
	has(t, body, "answered by offline as a fallback", "engine big: retry_later: status 503<", "engine home: fatal<")
	if strings.Contains(body, private) {
		t.Error("the engine's error text is shown")
	}
}
