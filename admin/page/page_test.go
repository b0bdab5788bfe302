package page

import (
	"errors"
	"html"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"synthbot/core"
	"synthbot/core/llm"
	"synthbot/core/watch"
)

// inline matches what a strict policy would block, and other hosts.
var inline = regexp.MustCompile(`(?i)<script(?:>| [^>]*[^"]>)|<style| style=| on[a-z]+=|javascript:|(?:src|href|action)="(?:https?:)?//`)

func TestPolicy(t *testing.T) {
	w := newWorld(t)
	w.live()
	c := w.in()
	for _, path := range append(paths[http.MethodGet], "/login", "/assets/page.css", "/assets/page.js", "/assets/icon.svg", "/nowhere", "/assets/") {
		if strings.HasSuffix(path, "/live") {
			continue
		}
		r := c.get(path)
		if fault := lax(r.head.Get("Content-Security-Policy")); fault != "" {
			t.Errorf("%s: the policy allows %s", path, fault)
		}
		for name, want := range map[string]string{
			"X-Content-Type-Options": "nosniff", "Referrer-Policy": "same-origin", "X-Frame-Options": "DENY",
			"Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Resource-Policy": "same-origin",
		} {
			if got := r.head.Get(name); got != want {
				t.Errorf("%s: %s is %q", path, name, got)
			}
		}
		if !strings.HasPrefix(path, "/assets/") && r.head.Get("Cache-Control") != "no-store" {
			t.Errorf("%s may be cached: %q", path, r.head.Get("Cache-Control"))
		}
		page := strings.ReplaceAll(r.body, `<script src="/assets/page.js" defer></script>`, "")
		if found := inline.FindString(unquoted.Replace(page)); found != "" && strings.HasPrefix(r.head.Get("Content-Type"), "text/html") {
			t.Errorf("%s has %q", path, found)
		}
	}
}

// lax returns what a policy allows besides this program's own content, or "".
func lax(policy string) string {
	left := map[string]string{"default-src": "'none'", "form-action": "'self'", "base-uri": "'none'", "frame-ancestors": "'none'"}
	for directive := range strings.SplitSeq(policy, "; ") {
		name, sources, _ := strings.Cut(directive, " ")
		if want, ok := left[name]; ok && sources != want {
			return name + " is " + sources
		}
		delete(left, name)
		for source := range strings.FieldsSeq(sources) {
			if source != "'self'" && source != "'none'" && (source != "data:" || name != "img-src") {
				return name + " lets in " + source
			}
		}
	}
	for name := range left {
		return name + " is missing"
	}
	return ""
}

func TestLaxPolicies(t *testing.T) {
	for _, change := range [][2]string{
		{"script-src 'self'", "script-src 'self' 'unsafe-inline'"}, {"style-src 'self'", "style-src 'unsafe-inline'"}, {"script-src 'self'", "script-src data:"},
		{"img-src 'self'", "img-src *"}, {"connect-src 'self'", "connect-src https:"}, {"default-src 'none'; ", ""}, {"form-action 'self'; ", ""},
		{"base-uri 'none'; ", ""}, {"; frame-ancestors 'none'", ""}, {"default-src 'none'", "default-src 'self'"},
	} {
		if changed := strings.Replace(policy, change[0], change[1], 1); changed == policy || lax(changed) == "" {
			t.Errorf("a policy with %q instead of %q passes as strict", change[1], change[0])
		}
	}
}

// TestLargeForms checks that forms above their size limit are not read.
func TestLargeForms(t *testing.T) {
	w := newWorld(t)
	c := w.in()
	csrf := c.csrf()
	for size, want := range map[int]int{1000: http.StatusSeeOther, maxForm: http.StatusRequestEntityTooLarge} {
		if r := c.post("/memories", "csrf", csrf, "words", strings.Repeat("x", size)); r.status != want {
			t.Errorf("form of %d bytes: status %d", size, r.status)
		}
	}
	const most = 256 << 10 // limit of a persona's file, see cmd/synthbot/commands
	text := "name = " + strings.Repeat("ж", most/2-4)
	if r := c.post("/personas/save", "csrf", csrf, "id", "aria.toml", "text", text, "was", strings.Repeat("ж", most/2)); r.status != http.StatusOK || !strings.Contains(r.body, "changed meanwhile") {
		t.Errorf("largest persona: status %d", r.status)
	}
}

// unquoted removes the canary where it is escaped.
var unquoted = strings.NewReplacer(`src=x onerror=alert(1)&gt;`, "", `src=x onerror=alert(1)`, "")

func TestNothingBreaksOut(t *testing.T) {
	w := newWorld(t)
	w.live()
	c := w.in()
	c.search("tea")
	seen := 0
	for _, path := range paths[http.MethodGet] {
		if strings.HasSuffix(path, "/live") {
			continue
		}
		r := c.get(path)
		if r.status != http.StatusOK {
			t.Errorf("%s: got %d %s", path, r.status, r.body)
		}
		if strings.Contains(r.body, "<script>alert") || strings.Contains(r.body, "<img src=x") {
			t.Errorf("%s has an unescaped text", path)
		}
		if title, _, _ := strings.Cut(r.body, "</title>"); strings.Contains(title, "alert") || strings.Contains(title, "telegram") {
			t.Errorf("%s has private text in its title", path)
		}
		seen += strings.Count(r.body, "canary")
	}
	if seen < 15 {
		t.Errorf("the texts occur %d times only", seen)
	}
	r := c.post("/personas/preview", "csrf", c.csrf(), "id", "aria.toml", "text", "nameless "+canary, "was", canary)
	if strings.Contains(r.body, "<script>alert") || !strings.Contains(r.body, "canary") {
		t.Errorf("preview: %s", r.body)
	}
}

func TestPrivateIsClosed(t *testing.T) {
	w := newWorld(t)
	w.live()
	c := w.in()
	csrf := c.csrf()
	looks := append([]string{"/turn?place=telegram/1000&seq=1", "/talk/place?place=telegram/1000", "/memories?place=telegram/1000"}, paths[http.MethodGet]...)
	revealing := func() (list []string) {
		for _, path := range looks {
			if !strings.HasSuffix(path, "/live") && strings.Contains(c.get(path).body, private) {
				list = append(list, path)
			}
		}
		if r := c.search("zebra in private"); strings.Contains(r.body, private) {
			list = append(list, "search")
		} else if !strings.Contains(r.body, "There is none.") {
			list = append(list, "that there is something to be found")
		}
		return list
	}
	if list := revealing(); list != nil {
		t.Errorf("pages that reveal a closed conversation: %q", list)
	}
	facts, _, err := w.db.ListFacts(t.Context(), all(direct))
	if err != nil || len(facts) != 1 {
		t.Fatal(facts, err)
	}
	one := "/memories/one?" + url.Values{"id": {facts[0].ID}, "place": {direct.String()}}.Encode()
	if r := c.get(one); r.status != http.StatusForbidden || strings.Contains(r.body, private) {
		t.Errorf("private memory: status %d", r.status)
	}
	if r := c.get("/memories/one?" + url.Values{"id": {facts[0].ID}, "place": {group.String()}}.Encode()); r.status != http.StatusNotFound {
		t.Errorf("private memory with the group's path: status %d", r.status)
	}
	for _, reason := range []string{"", "  ", "x", strings.Repeat("x", 501), strings.Repeat("言", 501)} {
		if r := c.post("/talk/open", "csrf", csrf, "place", direct.String(), "reason", reason); r.status != http.StatusBadRequest {
			t.Errorf("open with the reason %q: status %d", reason, r.status)
		}
	}
	r := c.post("/talk/open", "csrf", csrf, "place", direct.String(), "reason", "he asked for help")
	if to := r.head.Get("Location"); r.status != http.StatusSeeOther || to != "/talk/place?place=telegram%2F1000" {
		t.Fatalf("open: status %d, to %q", r.status, to)
	}
	if list := revealing(); len(list) != 6 {
		t.Errorf("pages that show the open conversation: %q", list)
	}
	if r := w.in().get("/talk/place?place=telegram/1000"); strings.Contains(r.body, private) {
		t.Error("the conversation is also open in another session")
	}
	if body := w.in().get("/sessions").body; !strings.Contains(body, "he asked for help") || !strings.Contains(body, direct.String()) {
		t.Error("the page does not show who opened the conversation")
	}
	if !strings.Contains(w.log.String(), `private conversation opened by an admin" path=telegram/1000 reason="he asked for help"`) {
		t.Errorf("log: %s", w.log)
	}
	c.post("/talk/close", "csrf", csrf, "place", direct.String())
	if list := revealing(); list != nil {
		t.Errorf("pages that reveal it after it was closed: %q", list)
	}
	if r := c.post("/talk/open", "csrf", csrf, "place", direct.String(), "reason", strings.Repeat("言", maxReason)); r.status != http.StatusSeeOther {
		t.Errorf("longest reason: status %d", r.status)
	}
	w.later(openTime)
	if list := revealing(); list != nil {
		t.Errorf("pages that reveal it after its time: %q", list)
	}
	for _, word := range []string{private, "canary"} {
		if strings.Contains(w.log.String(), word) {
			t.Errorf("the log contains %q", word)
		}
	}
}

// TestPrivateOnceStaysClosed checks that a place in which anything was said in private stays closed after it
// has become public.
func TestPrivateOnceStaysClosed(t *testing.T) {
	w := newWorld(t)
	b := core.Batch{}
	for i := range maxEntries {
		b.Append = append(b.Append, core.Entry{Event: core.Event{Kind: core.KindMessage, Message: core.Message{
			Path: group, ID: strconv.Itoa(i), Text: private, Time: w.clock(), Private: i == 0, Author: core.Author{ID: "7"},
		}}})
	}
	if err := w.db.Commit(t.Context(), &b); err != nil {
		t.Fatal(err)
	}
	if body := w.in().get("/talk/place?place=telegram/-100").body; strings.Contains(body, private) || !strings.Contains(body, "Why must you read it?") {
		t.Errorf("the place is open: %s", body)
	}
}

func TestThoughtsAreShownToNobody(t *testing.T) {
	w := newWorld(t)
	w.live()
	c := w.in()
	c.post("/talk/open", "csrf", c.csrf(), "place", direct.String(), "reason", "to look for thoughts")
	for _, path := range []string{"/turn?place=telegram/1000&seq=1", "/turn?place=telegram/-100&seq=1"} {
		body := c.get(path).body
		if strings.Contains(body, mind) {
			t.Errorf("%s shows a thought", path)
		}
		if !strings.Contains(body, "diary_write") || !strings.Contains(body, "summary") {
			t.Errorf("%s lacks the plan", path)
		}
	}
}

func FuzzBare(f *testing.F) {
	f.Add([]byte(`{"a":[{"PRIVATE_thought":"x"}],"b":"{\"private\u005fthought\":1}"}`))
	f.Add([]byte(`"private_thought"`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		if s := withoutThoughts(raw); strings.Contains(strings.ToLower(s), llm.ThoughtKey) {
			t.Errorf("%q was rendered as %q", raw, s)
		}
	})
}

func TestInspector(t *testing.T) {
	w := newWorld(t)
	w.live()
	body := w.in().get("/turn?place=telegram/-100&seq=1").body
	for _, want := range []string{
		"1.2 s: 1.0 s waiting for models, 200 ms of its own", "Question 1, answered by big", "900 in, 0 of them cached, 50 out",
		`<th scope="row">history</th><td class="n">600</td><td class="n">4</td><td class="n">2</td>`, `<th scope="row">All</th><td class="n">1000</td>`,
		"actions[0]: said to the group", "The prompt of question 1 as the model got it", "{&#34;input&#34;:&#34;said to the group", "<h3>system 1</h3>",
		"What follows changes.</p>\n<h3>user</h3>",
	} {
		if !strings.Contains(body, want) {
			t.Errorf("there is no %q", want)
		}
	}
	if r := w.in().get("/turn?place=telegram/-100&seq=99"); r.status != http.StatusNotFound {
		t.Errorf("unknown turn: status %d", r.status)
	}
	person := core.MustPath("telegram/@user/7")
	spent := &llm.Error{Kind: llm.ErrorRefused, Err: errors.New("budget of " + person.String() + " is spent")}
	asked := &watch.Trace{Asks: []watch.Ask{{Round: 1, Err: spent.Error()}}}
	w.traces.Observe(watch.TurnEnd{Turn: core.TurnID{Path: group, Seq: 2}, Person: person, Trace: asked})
	has(t, w.in().get("/turn?place=telegram/-100&seq=2").body, `<p role="alert">refused: budget of Jay Miller (telegram/@user/7) is spent</p>`)
	w.traces.Forget(group)
	if r := w.in().get("/turn?place=telegram/-100&seq=1"); r.status != http.StatusNotFound {
		t.Errorf("forgotten turn: status %d", r.status)
	}
	if r := w.in().get("/"); r.status != http.StatusOK {
		t.Errorf("list after a user was forgotten: status %d", r.status)
	}
}

func TestMemories(t *testing.T) {
	w := newWorld(t)
	w.live()
	c := w.in()
	csrf := c.csrf()
	if r := c.search("tea"); !strings.Contains(r.body, "likes tea") {
		t.Errorf("search: status %d, %s", r.status, r.body)
	}
	if r := w.in().get("/memories/found"); r.status != http.StatusSeeOther || strings.Contains(r.body, "tea") {
		t.Errorf("search of another session: status %d, %s", r.status, r.body)
	}
	facts, _, err := w.db.ListFacts(t.Context(), all(group))
	if err != nil || len(facts) != 1 {
		t.Fatal(facts, err)
	}
	id := facts[0].ID
	r := c.post("/memories/save", "csrf", csrf, "id", id, "place", group.String(), "text", "likes coffee")
	if r.status != http.StatusSeeOther || strings.Contains(r.head.Get("Location"), "coffee") {
		t.Fatalf("save: %d, to %q", r.status, r.head.Get("Location"))
	}
	body := c.get(r.head.Get("Location")).body
	if !strings.Contains(body, "likes coffee") || !strings.Contains(body, "likes tea") {
		t.Errorf("page after the change: %s", body)
	}
	if facts, _, _ = w.db.ListFacts(t.Context(), all(group)); facts[0].By != core.MustPath("telegram/@user/7") {
		t.Errorf("author of the memory: %v", facts[0].By)
	}
	for _, text := range []string{"", " \r\n\t", strings.Repeat("x", maxMemory+1)} {
		if r := c.post("/memories/save", "csrf", csrf, "id", id, "place", group.String(), "text", text); !strings.Contains(r.body, `<p role="alert">`) || !strings.Contains(r.body, strings.TrimSpace(text)+"</textarea>") {
			t.Errorf("memory of %d bytes: status %d, %s", len(text), r.status, r.body)
		}
	}
	c.post("/memories/save", "csrf", csrf, "id", id, "place", group.String(), "text", strings.Repeat("x", maxMemory))
	c.post("/memories/save", "csrf", csrf, "id", id, "place", group.String(), "text", "likes coffee\r\nand cake\r\n")
	if facts, _, _ = w.db.ListFacts(t.Context(), all(group)); facts[0].Text != "likes coffee\nand cake" || len(facts[0].Former[0].Text) != maxMemory {
		t.Errorf("lines as a browser sends them: %q", facts[0].Text)
	}
	if r := c.post("/memories/drop", "csrf", csrf, "id", id, "place", group.String()); r.status != http.StatusSeeOther {
		t.Errorf("forget: %d", r.status)
	}
	if facts, _, _ = w.db.ListFacts(t.Context(), all(group)); len(facts) != 0 {
		t.Errorf("memories after forget: %v", facts)
	}
	if r := c.post("/memories/drop", "csrf", csrf, "id", id, "place", group.String()); r.status != http.StatusNotFound {
		t.Errorf("second forget: status %d", r.status)
	}
	if log := w.log.String(); !strings.Contains(log, "memory changed by an admin") || strings.Contains(log, "tea") || strings.Contains(log, "coffee") {
		t.Errorf("the log has too little, or a memory's text: %s", log)
	}
}

// TestMerge checks that memories of one place and author can be merged, and that those of others stay separate.
func TestMerge(t *testing.T) {
	w := newWorld(t)
	w.live()
	jay := core.MustPath("telegram/@user/7")
	for _, f := range []core.Fact{
		{Text: "drinks it hot", Tags: []string{"taste"}, Topic: "drinks", About: []core.Path{jay}, Origin: group, By: jay, Importance: 4},
		{Text: "said by somebody else", Origin: group, By: core.MustPath("telegram/@user/8")},
	} {
		if _, err := w.db.SaveFact(t.Context(), f); err != nil {
			t.Fatal(err)
		}
	}
	ids := make(map[string]string)
	facts, _, _ := w.db.ListFacts(t.Context(), all(group))
	for _, f := range facts {
		ids[strings.Fields(f.Text)[0]] = f.ID
	}
	c := w.in()
	csrf := c.csrf()
	one := "/memories/one?place=telegram/-100&id=" + ids["likes"]
	if body := c.get(one).body; !strings.Contains(body, ">drinks it hot</option>") || strings.Contains(body, "somebody else") || strings.Contains(body, private) {
		t.Errorf("offered merges: %s", body)
	}
	if r := c.post("/memories/merge", "csrf", csrf, "place", group.String(), "id", ids["likes"], "other", ids["said"]); r.status != http.StatusBadRequest {
		t.Errorf("merge with another author's memory: status %d", r.status)
	}
	if r := c.post("/memories/merge", "csrf", csrf, "place", group.String(), "id", ids["likes"], "other", ids["drinks"]); r.status != http.StatusSeeOther {
		t.Fatalf("merge: %d %s", r.status, r.body)
	}
	facts, _, _ = w.db.ListFacts(t.Context(), all(group))
	if len(facts) != 2 || !strings.HasSuffix(facts[1].Text, "\ndrinks it hot") && !strings.HasSuffix(facts[0].Text, "\ndrinks it hot") {
		t.Fatalf("memories after the merge: %+v", facts)
	}
	has(t, c.get(one).body, "drinks it hot", "What it said before", "Jay Miller", ">taste<")
	has(t, c.get("/memories?place=telegram/@user/7").body, "drinks it hot", "Of <bdi>Jay Miller</bdi>")
	for _, topic := range []string{"taste", "drinks"} {
		c.post("/memories", "csrf", csrf, "tag", topic)
		if body := c.get("/memories/found").body; !strings.Contains(body, "drinks it hot") || strings.Contains(body, "somebody else") || !strings.Contains(body, `value="`+topic+`"`) {
			t.Errorf("by topic: %s", body)
		}
	}
}

// TestTryPersona talks to a persona that is not saved.
func TestTryPersona(t *testing.T) {
	w := newWorld(t)
	c := w.in()
	csrf, was := c.csrf(), w.dress.text
	try := func(say string, before ...string) reply {
		form := append([]string{"csrf", csrf, "id", "aria.toml", "text", "name = Mira", "was", was, "say", say}, before...)
		return c.post("/personas/try", form...)
	}
	r := try("hello "+canary, "said", "before", "answer", "so it was")
	has(t, r.body, "2 exchanges as name = Mira", "answered by big", "hello &lt;script", "so it was", "You are Mira")
	if strings.Contains(r.body, "<script>alert") || w.dress.text != was {
		t.Errorf("a text is not escaped, or the persona was saved: %s", r.body)
	}
	has(t, try("fail").body, "No engine answered: every engine is busy")
	for _, say := range []string{"", "  ", strings.Repeat("x", maxSaid+1)} {
		if r := try(say); r.status != http.StatusBadRequest {
			t.Errorf("message of %d bytes: status %d", len(say), r.status)
		}
	}
}

func TestPersonas(t *testing.T) {
	w := newWorld(t)
	c := w.in()
	csrf, was := c.csrf(), w.dress.text
	form := func(text string) []string {
		return []string{"csrf", csrf, "id", "aria.toml", "text", text, "was", was}
	}
	if r := c.post("/personas/preview", form("name = Mira\r\nx")...); !strings.Contains(r.body, "You are Mira\nx.") || w.dress.text != was {
		t.Errorf("preview: %s", r.body)
	}
	if r := c.post("/personas/save", form("broken")...); !strings.Contains(r.body, "name: missing") || w.dress.text != was {
		t.Errorf("preview of a broken persona: %s", r.body)
	}
	if r := c.post("/personas/save", form("name = Mira")...); r.status != http.StatusSeeOther || w.dress.text != "name = Mira" {
		t.Errorf("save: %d, %q", r.status, w.dress.text)
	}
	if r := c.post("/personas/save", form("name = Nora")...); !strings.Contains(r.body, "changed meanwhile") || w.dress.text != "name = Mira" {
		t.Errorf("save over another admin's change: %s", r.body)
	}
	if r := c.post("/personas/save", "csrf", csrf, "id", "../etc/passwd", "text", "name = x"); r.status != http.StatusNotFound {
		t.Errorf("unknown file: status %d", r.status)
	}
	w.dress.card = true
	if r := c.post("/personas/save", "csrf", csrf, "id", "aria.toml", "text", "name = Nora", "was", w.dress.text); r.status != http.StatusBadRequest || w.dress.text != "name = Mira" {
		t.Errorf("save over a card: status %d, %q", r.status, w.dress.text)
	}
	if log := w.log.String(); !strings.Contains(log, "persona changed by an admin") || strings.Contains(log, "Mira") {
		t.Errorf("the log has too little, or the persona's text: %s", log)
	}
}

func TestCharts(t *testing.T) {
	w := newWorld(t)
	c := w.in()
	if body := c.get("/charts").body; strings.Count(body, "Nothing to show yet") != 5 || strings.Count(body, "<svg") != 6 {
		t.Errorf("charts without turns: %s", body)
	}
	w.live()
	w.later(time.Minute)
	w.turn(group, 2, "x", false)
	w.page.queue.add(queueSample{w.clock(), 3})
	body := c.get("/charts").body
	for _, want := range []string{
		"<td class=\"n\">1000</td><td class=\"n\">200</td><td class=\"n\">34</td>", // each token of the day is counted once
		`<th scope="row">Jay Miller telegram/@user/7</th><td class="n">0.5000</td>`,
		`<title>12:00:00, answered: 2</title>`, `<title>12:00:57, corrections: 1</title>`, `<title>12:00:00, half of the turns within: 1.0 s</title>`,
		`<title>12:01:00, waiting: 3</title>`,
	} {
		if !strings.Contains(body, want) {
			t.Errorf("there is no %q", want)
		}
	}
	for title, other := range map[string]string{"Tokens by person": group.String(), "Cost by person": group.String(), "Tokens by place": "@user/7", "Cost by place": "@user/7"} {
		_, chart, found := strings.Cut(body, "<figcaption>"+title+"<")
		chart, _, _ = strings.Cut(chart, "</figure>")
		if !found || strings.Contains(chart, ">"+other+"<") || strings.Contains(chart, other+",") {
			t.Errorf("%s contains %s, or is missing", title, other)
		}
	}
}

// TestTimesOfTurns checks the percentiles of ten turns.
func TestTimesOfTurns(t *testing.T) {
	w := newWorld(t)
	var ends []watch.TurnEnd
	for i := range 10 {
		took, thought := time.Duration(i+2)*time.Second, time.Duration(i+1)*time.Second
		ends = append(ends, watch.TurnEnd{Trace: &watch.Trace{Began: w.clock(), Took: took, Thought: thought}})
	}
	all := chartPage{w.page}.turnCharts(ends)
	models, own := all[0].Draw(), all[1].Draw()
	if got := strings.Join(models.Rows[0].Cells, " "); got != "5.0 s 10.0 s" {
		t.Errorf("median and 95th percentile of models: %s", got)
	}
	if got := strings.Join(own.Rows[0].Cells, " "); got != "1.0 s 1.0 s" {
		t.Errorf("times of the bot itself: %s", got)
	}
	if b := models.Bars; len(b) != 2 || b[0].H != b[1].H || b[0].Tip != "12:00:00, half of the turns within: 5.0 s" || b[1].Tip != "12:00:00, 95 % within: 10.0 s" {
		t.Errorf("bars: %+v", b)
	}
}

func TestQueue(t *testing.T) {
	w := newWorld(t)
	w.live()
	if n, err := w.page.waiting(t.Context()); n != 2 || err != nil {
		t.Errorf("got %d waiting messages, %v", n, err)
	}
	for range maxSamples + 5 {
		w.page.queue.add(queueSample{})
	}
	if n := len(w.page.queue.samples()); n != maxSamples {
		t.Errorf("got %d samples", n)
	}
	if f := (chartPage{w.page}).queueChart(); len(f.Labels) != buckets {
		t.Errorf("got %d bars", len(f.Labels))
	}
}

// TestOlder pages back through a conversation in which entries are missing.
func TestOlder(t *testing.T) {
	w := newWorld(t)
	const n = 5*maxEntries + 7
	var b core.Batch
	for i := range n {
		b.Append = append(b.Append, core.Entry{Event: core.Event{Kind: core.KindMessage, Message: core.Message{
			Path: group, ID: strconv.Itoa(i), Text: "word" + strconv.Itoa(i) + ".", Time: w.clock(), Author: core.Author{ID: "7"},
		}}})
	}
	if err := w.db.Commit(t.Context(), &b); err != nil {
		t.Fatal(err)
	}
	c := w.in()
	path, next := "/talk/place?place=telegram/-100", regexp.MustCompile(`<a href="([^"]+)">Older ones`)
	for end := n; end > 0; end -= maxEntries {
		body := c.get(path).body
		first := max(end-maxEntries, 0)
		if strings.Count(body, ">word") != end-first || !strings.Contains(body, ">word"+strconv.Itoa(first)+".") || !strings.Contains(body, ">word"+strconv.Itoa(end-1)+".") {
			t.Fatalf("%s does not show entries %d to %d", path, first, end)
		}
		found := next.FindStringSubmatch(body)
		if (found != nil) != (first > 0) {
			t.Fatalf("%s links to %q", path, found)
		}
		if found != nil {
			path = html.UnescapeString(found[1])
		}
	}
	for number, want := range map[string]int{"0": 200, "1": 200, "18446744073709551615": 200, "-1": 400, "x": 400} {
		if r := c.get("/talk/place?place=telegram/-100&before=" + number); r.status != want {
			t.Errorf("before=%s: status %d", number, r.status)
		}
	}
	for first := range uint64(3 * maxEntries) {
		list, err := entriesBelow(gap{nil, first, 10 * n}, group, 10*n)
		most := int(min(first, maxEntries))
		if err != nil || len(list) != most || most > 0 && list[most-1].Message.Seq != first {
			t.Fatalf("entries across a gap after %d: got %d, %v", first, len(list), err)
		}
	}
}

// TestRightToLeft checks that right-to-left names are isolated, so that they do not affect the text beside
// them.
func TestRightToLeft(t *testing.T) {
	w := newWorld(t)
	const name, text = "\u202ejay", "مرحبا!"
	b := core.Batch{Append: []core.Entry{{Event: core.Event{Kind: core.KindMessage, Message: core.Message{
		Path: group, ID: "1", Text: text, Time: w.clock(), Author: core.Author{ID: "7", Name: name},
	}}}}}
	if err := w.db.Commit(t.Context(), &b); err != nil {
		t.Fatal(err)
	}
	if _, err := w.db.SaveFact(t.Context(), core.Fact{Text: text, Origin: group}); err != nil {
		t.Fatal(err)
	}
	c := w.in()
	body := c.get("/talk/place?place=telegram/-100").body
	if !strings.Contains(body, "<bdi>"+name+"</bdi>") || !strings.Contains(body, ` dir="auto">`+text+"<") {
		t.Errorf("conversation: %s", body)
	}
	shown := regexp.MustCompile(` dir="auto"[^>]*>` + text + "<")
	for _, path := range []string{"/memories", "/memories/one?id=1&place=telegram/-100"} {
		if !shown.MatchString(c.get(path).body) {
			t.Errorf("%s does not isolate the name", path)
		}
	}
}

// gap is a view of the store in which a place has only its first and its last entries.
type gap struct {
	core.View
	first, last uint64
}

func (g gap) After(_ core.Path, seq uint64, most int, _ []core.Entry) (list []core.Entry, err error) {
	for n := seq + 1; n <= g.last && len(list) < most; n++ {
		if n <= g.first || n == g.last {
			list = append(list, core.Entry{Event: core.Event{Message: core.Message{Seq: n}}})
		}
	}
	return list, nil
}

// TestManyPlaces checks that each place can be reached.
func TestManyPlaces(t *testing.T) {
	w := newWorld(t)
	w.live()
	c := w.in()
	if strings.Contains(c.get("/talk").body, "Another place") {
		t.Error("all places are listed although there are too many")
	}
	var b core.Batch
	for i := range maxPlaces {
		b.Append = append(b.Append, core.Entry{Event: core.Event{Kind: core.KindMessage, Message: core.Message{
			Path: core.MustPath("telegram/-" + strconv.Itoa(200+i)), ID: "1", Text: "x", Time: w.clock(), Author: core.Author{ID: "7"},
		}}})
	}
	if err := w.db.Commit(t.Context(), &b); err != nil {
		t.Fatal(err)
	}
	if body := c.get("/talk").body; !strings.Contains(body, "The latest 300 are listed. Another place") {
		t.Error("the page does not say that there are more places")
	}
}

func TestUnknownPlaces(t *testing.T) {
	w := newWorld(t)
	c := w.in()
	for path, want := range map[string]int{
		"/talk/place?place=": 400, "/talk/place?place=a//b": 400, "/turn?place=x&seq=y": 400, "/memories?place=//": 400, "/memories?before=!!": 400,
		"/settings?place=/": 400, "/nowhere": 404, "/personas/one?id=x": 404, "/talk/place?place=telegram/unknown": 200,
	} {
		if r := c.get(path); r.status != want {
			t.Errorf("%s: got %d, want %d", path, r.status, want)
		}
	}
	for _, path := range []string{"/catalogue", "/settings", "/memories", "/talk/place"} { // the path of a place may be any word
		r := c.get(path + "?place=%3Cscript%3Ealert(1)")
		if r.status != http.StatusOK || strings.Contains(r.body, "<script>alert") {
			t.Errorf("%s of a place like a tag: got %d, %s", path, r.status, r.body)
		}
	}
	if body := c.get("/talk/place?place=telegram/unknown").body; !strings.Contains(body, "closed") {
		t.Error("an unknown place is open")
	}
	alone := core.Entry{Self: true, Event: core.Event{Kind: core.KindMessage, Message: core.Message{
		Path: core.MustPath("telegram/2000"), ID: "1", Text: private, Time: w.clock(),
	}}}
	if err := w.db.Commit(t.Context(), &core.Batch{Append: []core.Entry{alone}}); err != nil {
		t.Fatal(err)
	}
	if body := c.get("/talk/place?place=telegram/2000").body; strings.Contains(body, private) {
		t.Error("a place with messages of the bot only is open")
	}
}

// TestMuteWithoutItsPlugin checks that the mute buttons are hidden if the command does not exist.
func TestMuteWithoutItsPlugin(t *testing.T) {
	w := newWorld(t)
	for _, cannot := range []bool{false, true} {
		w.cannotMute = cannot
		r := w.in().get("/talk/place?place=telegram/-100")
		if strings.Contains(r.body, "Mute it for a while") == cannot || !strings.Contains(r.body, "Wake it") {
			t.Errorf("without /mute = %v:\n%s", cannot, r.body)
		}
	}
}
