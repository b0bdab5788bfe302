package commands

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"image"
	"image/png"
	"io"
	"mime/multipart"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"synthbot/core/coretest"
	"synthbot/interfaces/telegram/telegramtest"
)

// reader is an admin's browser.
type reader struct {
	testing.TB
	http.Client
	origin string
}

// send sends a form, or gets a page where there is none.
func (r *reader) send(path string, form url.Values) (status int, page string) {
	r.Helper()
	if form == nil {
		return r.sendAs("", path, "")
	}
	return r.sendAs("application/x-www-form-urlencoded", path, form.Encode())
}

// sendAs sends a body of a type; without a type, it gets a page.
func (r *reader) sendAs(kind, path, body string) (status int, page string) {
	r.Helper()
	method := http.MethodGet
	if kind != "" {
		method = http.MethodPost
	}
	q, err := http.NewRequestWithContext(r.Context(), method, r.origin+path, strings.NewReader(body))
	if err != nil {
		r.Fatal(err)
	}
	q.Header.Set("Content-Type", kind)
	q.Header.Set("Origin", r.origin)
	a, err := r.Do(q)
	if err != nil {
		r.Fatal(err)
	}
	defer a.Body.Close()
	answer, err := io.ReadAll(a.Body)
	if err != nil {
		r.Fatalf("%s: %v", path, err)
	}
	return a.StatusCode, string(answer)
}

// ask returns the page that a request shows.
func (r *reader) ask(path string, form url.Values) string {
	r.Helper()
	status, page := r.send(path, form)
	if status != http.StatusOK {
		r.Fatalf("%s: %d %s", path, status, page)
	}
	return page
}

// link asks the daemon of a configuration for one.
func link(t testing.TB, file string) string {
	t.Helper()
	var out, errs bytes.Buffer
	until(t, func() bool { // it may take a moment to listen
		return run(t.Context(), []string{"page", "-c", file}, strings.NewReader(""), &out, &errs) == statusDone
	})
	return strings.TrimSpace(out.String())
}

// newReader is logged in.
func newReader(t testing.TB, file string) *reader {
	t.Helper()
	origin, token, ok := strings.Cut(link(t, file), "/login#")
	jar, err := cookiejar.New(nil)
	if err != nil || !ok || token == "" {
		t.Fatal(origin, err)
	}
	r := &reader{TB: t, Client: http.Client{Jar: jar}, origin: origin}
	if page := r.ask("/login", url.Values{"token": {token}}); !strings.Contains(page, "The latest turns") {
		t.Fatalf("logged in: %s", page)
	}
	return r
}

func TestPageOfADaemon(t *testing.T) {
	who := filepath.Join(t.TempDir(), "who.toml")
	if err := os.WriteFile(who, []byte("name = \"Nora\"\n"), 0o640); err != nil {
		t.Fatal(err)
	}
	d := startDaemon(t, withTerminal+"[persona]\npath = \""+who+"\"\n[admin]\nlisten = \""+freeAddress(t)+"\"\n[[engine]]\nprovider = \"openai\"\nmodel = \"x\"\napi_key = \"swordfish\"\ndisabled = true\n")
	d.tells("READY=1")
	d.answers("hello")
	r := newReader(t, d.file)
	until(t, func() bool { return strings.Contains(r.ask("/", nil), "/turn?place=") }) // the turn ends after its answer
	for path, want := range map[string]string{
		"/":                              "console/main",
		"/turn?place=console/main&seq=1": "The conversation is closed",
		"/talk":                          "private, closed",
		"/memories":                      "There is none",
		"/personas":                      "Nora",
		"/charts":                        "Tokens by person",
		"/catalogue":                     "message_console",
		"/log":                           "interfaces</b> 1",
		"/settings":                      "bot.data_dir",
		"/settings?place=console/main":   "actions_deny",
	} {
		page := r.ask(path, nil)
		if !strings.Contains(page, want) {
			t.Errorf("%s does not tell %q: %s", path, want, page)
		}
		if strings.Contains(page, "swordfish") {
			t.Errorf("%s tells a secret", path)
		}
	}
	page := r.ask("/personas/one?id="+url.QueryEscape(who), nil)
	csrf := regexp.MustCompile(`name="csrf" value="([^"]+)"`).FindStringSubmatch(page)[1]
	form := url.Values{"csrf": {csrf}, "id": {who}, "was": {"name = \"Nora\"\n"}, "text": {"nickname = 7"}}
	if page := r.ask("/personas/preview", form); !strings.Contains(page, "who.toml") || strings.Contains(page, "persona-") || !strings.Contains(page, `role="alert"`) {
		t.Errorf("a broken persona: %s", page)
	}
	form.Set("text", "name = \"Mira\"\r\n")
	if page := r.ask("/personas/preview", form); !strings.Contains(page, "You are Mira") {
		t.Errorf("preview: %s", page)
	}
	r.ask("/personas/save", form)
	d.tells("READY=1") // it was read again
	if raw, err := os.ReadFile(who); string(raw) != "name = \"Mira\"\n" || err != nil {
		t.Errorf("the file: %q, %v", raw, err)
	}
	if info, err := os.Stat(who); err != nil || info.Mode().Perm() != 0o640 {
		t.Errorf("its mode: %v, %v", info.Mode(), err)
	}
	until(t, func() bool { return strings.Contains(r.ask("/personas", nil), "Mira") })
	d.stop()
	if status := <-d.status; status != statusDone {
		t.Errorf("status %d", status)
	}
}

func TestNoPage(t *testing.T) {
	var out, errs bytes.Buffer
	file := filepath.Join(t.TempDir(), "config.toml")
	if err := os.WriteFile(file, []byte("[admin]\nlisten = \"0.0.0.0:8787\"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if status := run(t.Context(), []string{"check", "-c", file}, strings.NewReader(""), &out, &errs); status != statusUsage || !strings.Contains(errs.String(), "admin.listen") {
		t.Errorf("open to all: %d %s", status, errs.String())
	}
	d := startDaemon(t, withTerminal)
	d.tells("READY=1")
	errs.Reset()
	if status := run(t.Context(), []string{"page", "-c", d.file}, strings.NewReader(""), &out, &errs); status != statusUsage || !strings.Contains(errs.String(), "there is no page") {
		t.Errorf("without: %d %s", status, errs.String())
	}
	d.stop()
	<-d.status
}

// browsers are who may look at the admin's page while turns flow.
var browsers = []string{"nobody", "open", "dead"}

// BenchmarkPage is the time from an update to the call that answers it, at 50
// turns a second over 20 chats: with nobody at the admin's page, with a browser
// that shows turns live, and with one that never reads what it is sent; by turns
// of half a second, so that all have the same noise. Rounds in which the host of a
// virtual machine took the processor away are left out. One iteration is a round
// of each: go test -run '^$' -bench Page$ -benchtime 60x ./cmd/synthbot/commands takes 90 s.
func BenchmarkPage(b *testing.B) {
	platform, file := atTelegram(b, newSlow(b, nil).URL, "[admin]\nlisten = \""+freeAddress(b)+"\"\n")
	for i := range killChats {
		platform.AddPerson(telegramtest.Person{ID: int64(1000 + i), Name: "Jay"})
	}
	arrived := make(chan time.Time, 1)
	platform.Delay(func(c telegramtest.Call) time.Duration {
		if c.Method == "sendMessage" {
			arrived <- c.At
		}
		return 0
	})
	r := newReader(b, file)
	pace := time.NewTicker(20 * time.Millisecond)
	defer pace.Stop()
	n := 0
	round := func(browser string) (took []time.Duration) {
		defer r.watch(browser)()
		for range 25 {
			<-pace.C
			n++
			chat := int64(1000 + n%killChats)
			began := time.Now()
			platform.Say(chat, chat, telegramtest.Saying{Text: "hello"})
			took = append(took, (<-arrived).Sub(began))
		}
		return took
	}
	all, worked := make(map[string][]time.Duration), make(map[string]time.Duration)
	round("nobody") // it warms up
	for i := 0; b.Loop(); i++ {
		for k := range browsers {
			browser := browsers[(i+k)%len(browsers)] // none always comes after the same one
			stolen, began := coretest.Stolen(), work(b)
			if took := round(browser); coretest.Stolen() == stolen {
				all[browser] = append(all[browser], took...)
				worked[browser] += work(b) - began
			}
		}
	}
	compare(b, all)
	for browser, d := range worked { // of the whole process, with platform, model and browser
		b.ReportMetric(ms(d)/float64(len(all[browser])), browser+"-cpu-ms/turn")
	}
}

// work is the time that this process had a processor.
func work(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// compare reports the times of each, and how they relate to those of nobody.
func compare(b *testing.B, all map[string][]time.Duration) {
	for _, browser := range browsers {
		took := all[browser]
		if len(took) == 0 {
			b.Skip("no round was quiet")
		}
		slices.Sort(took)
		for _, percent := range []int{25, 50, 95} {
			its, alone := took[len(took)*percent/100], all[browsers[0]][len(all[browsers[0]])*percent/100]
			b.ReportMetric(ms(its), fmt.Sprintf("%s-p%d-ms", browser, percent))
			if browser != browsers[0] {
				b.ReportMetric(float64(its)/float64(alone), fmt.Sprintf("%s/nobody-p%d", browser, percent))
			}
		}
	}
}

// watch shows turns live until the browser is gone.
func (r *reader) watch(browser string) (gone func()) {
	r.Helper()
	if browser == "nobody" {
		return func() {}
	}
	q, err := http.NewRequestWithContext(r.Context(), http.MethodGet, r.origin+"/live", nil)
	if err != nil {
		r.Fatal(err)
	}
	a, err := r.Do(q)
	if err != nil || a.StatusCode != http.StatusOK {
		r.Fatal(a, err)
	}
	if browser == "open" {
		go func() { _, _ = io.Copy(io.Discard, a.Body) }()
	}
	return func() { _ = a.Body.Close() }
}

// TestPageElsewhere: where another program has the page's address, that is what is
// said.
func TestPageElsewhere(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	d := startDaemon(t, withTerminal+"[admin]\nlisten = \""+taken.Addr().String()+"\"\n")
	d.tells("READY=1")
	status, out, errs := d.command("", "page")
	if status != statusFailed || out != "" || !strings.Contains(errs, "not served at "+taken.Addr().String()) {
		t.Errorf("%d, %q, %q", status, out, errs)
	}
	d.end()
}

// TestPageMovesTheClock: a reload with another time zone is one for the page, too.
func TestPageMovesTheClock(t *testing.T) {
	config := "[admin]\nlisten = \"" + freeAddress(t) + "\"\n" + withTerminal
	in := func(zone string) string { return strings.Replace(config, "[bot]", "[bot]\ntimezone = \""+zone+"\"", 1) }
	d := startDaemon(t, in("UTC"))
	d.tells("READY=1")
	r := newReader(t, d.file)
	seen := regexp.MustCompile(`\d\d:\d\d`)
	hour := func() string { return seen.FindString(r.ask("/sessions", nil)) }
	before := hour()
	d.write(in("Asia/Kolkata"))
	if status, _, errs := d.command("", "reload"); status != 0 {
		t.Fatal(errs)
	}
	if after := hour(); before == "" || after == before || after[3:] == before[3:] {
		t.Errorf("it was %q by UTC, and is %q in Kolkata", before, after)
	}
	d.end()
}

// TestPageOfKnowledge: the page lists the sources and what was taught, and its buttons edit and remove that.
func TestPageOfKnowledge(t *testing.T) {
	docs := t.TempDir()
	if err := os.WriteFile(filepath.Join(docs, "faq.md"), []byte("# FAQ\nKeys hang in the hall."), 0o600); err != nil {
		t.Fatal(err)
	}
	d := startDaemon(t, withTerminal+"[admin]\nlisten = \""+freeAddress(t)+"\"\n[plugins.knowledge]\nteach = \"everyone\"\n[[plugins.knowledge.source]]\nname = \"faq\"\npath = \""+docs+"\"\n")
	d.tells("READY=1")
	r := newReader(t, d.file)
	until(t, func() bool { return strings.Contains(r.ask("/knowledge", nil), "1 document, 1 passage") })
	d.answers("/teach The wardrobe has the number 17.")
	page := r.ask("/knowledge", nil)
	if strings.Contains(page, "wardrobe") || !strings.Contains(page, "Said in private: closed.") {
		t.Fatalf("what was taught in private: %s", page)
	}
	csrf := regexp.MustCompile(`name="csrf" value="([^"]+)"`).FindStringSubmatch(page)[1]
	do := func(path string, form url.Values) string {
		form.Set("csrf", csrf)
		form.Set("place", "console/main")
		form.Set("back", "/knowledge")
		return r.ask(path, form)
	}
	do("/talk/open", url.Values{"reason": {"to edit it"}})
	page = r.ask("/knowledge", nil)
	id := regexp.MustCompile(`name="arg-id" value="([a-z0-9]+)"`).FindStringSubmatch(page)[1]
	page = do("/do", url.Values{"command": {"knowledge"}, "arg-what": {"edit"}, "arg-id": {id}, "arg-text": {"The cupboard\r\nhas the number 18."}})
	if !strings.Contains(page, "The entry is changed.") || !strings.Contains(page, "The cupboard\nhas the number 18.") {
		t.Errorf("edited: %s", page)
	}
	page = do("/do", url.Values{"command": {"unteach"}, "arg-id": {id}})
	if !strings.Contains(page, "I no longer know that.") || strings.Count(page, "cupboard") != 1 {
		t.Errorf("removed: %s", page)
	}
	if err := os.WriteFile(filepath.Join(docs, "more.md"), []byte("# More\nLadders are in the shed."), 0o600); err != nil {
		t.Fatal(err)
	}
	do("/do", url.Values{"command": {"knowledge"}, "arg-what": {"sync"}})
	until(t, func() bool { return strings.Contains(r.ask("/knowledge", nil), "2 documents, 2 passages") })
	d.stop()
	<-d.status
}

// TestPageSwitches: actions and plugins are turned off on the page, at once and over a restart, and on again.
func TestPageSwitches(t *testing.T) {
	config := withTerminal + "[access]\nprivate = \"pairing\"\nallow = [\"console\"]\n[admin]\nlisten = \"" + freeAddress(t) +
		"\"\n[plugins.reminders]\n[plugins.games]\nenabled = false\n"
	d := startDaemon(t, config)
	d.tells("READY=1")
	r := newReader(t, d.file)
	row := func(name string) string { // of a plugin
		_, rest, _ := strings.Cut(r.ask("/catalogue", nil), "<strong>"+name+"</strong>")
		one, _, _ := strings.Cut(rest, "</li>")
		return one
	}
	press := func(what, name, to, place string) string {
		csrf := regexp.MustCompile(`name="csrf" value="([^"]+)"`).FindStringSubmatch(r.ask("/sessions", nil))[1]
		return r.ask("/do", url.Values{"csrf": {csrf}, "command": {"switch"}, "back": {"/catalogue"}, "place": {place},
			"arg-what": {what}, "arg-name": {name}, "arg-to": {to}})
	}
	for name, want := range map[string]string{
		"reminders": "[plugins.reminders] in the configuration", "games": "enabled = false in [plugins.games]",
		"diary": "add [plugins.diary] to the configuration", "pairing": "access.private needs it",
	} {
		if got := row(name); !strings.Contains(got, want) || strings.Contains(got, "<button") != (name == "reminders") {
			t.Errorf("%s: %s", name, got)
		}
	}
	shown := func(path, want string) {
		t.Helper()
		if page := r.ask(path, nil); !strings.Contains(page, want) {
			t.Errorf("%s lacks %q: %s", path, want, page)
		}
	}
	press("action", "reminder_set", "off", "")
	press("action", "reminder_list", "off", "console/main")
	shown("/catalogue", "off by a command for all places")
	shown("/catalogue?place=console/main", "off by a command in console/main")
	prompt := func() string {
		status, out, errs := d.command("", "prompt", "--path", "console/main", "--text", "hello")
		if status != statusDone {
			t.Fatal(errs)
		}
		return out
	}
	if p := prompt(); strings.Contains(p, "reminder_set") || strings.Contains(p, "reminder_list") || !strings.Contains(p, "reminder_cancel") {
		t.Errorf("the model is offered: %s", p)
	}
	press("action", "reminder_set", "on", "")
	if p := prompt(); !strings.Contains(p, "reminder_set") {
		t.Errorf("turned on again: %s", p)
	}
	if got := d.answers("/remind list"); !strings.Contains(got, "No reminders") {
		t.Errorf("the plugin answers %q", got)
	}
	if page := press("plugin", "reminders", "off", ""); !strings.Contains(page, "reminders is off from now on.") {
		t.Errorf("turned off: %s", page)
	}
	if got := row("reminders"); !strings.Contains(got, "turned off on this page") {
		t.Errorf("its row: %s", got)
	}
	if p := prompt(); strings.Contains(p, "reminder_") {
		t.Errorf("without the plugin, the model is offered: %s", p)
	}
	if got := d.answers("/remind list"); strings.Contains(got, "No reminders") {
		t.Errorf("without the plugin, it answers %q", got)
	}
	for range 2 { // the terminal is the same one
		press("plugin", "reminders", "on", "")
		if got := d.answers("/remind list"); !strings.Contains(got, "No reminders") {
			t.Errorf("with the plugin again, it answers %q", got)
		}
		press("plugin", "reminders", "off", "")
	}
	d.write(config + "[nonsense]\n")
	csrf := regexp.MustCompile(`name="csrf" value="([^"]+)"`).FindStringSubmatch(r.ask("/sessions", nil))[1]
	form := url.Values{"csrf": {csrf}, "command": {"switch"}, "arg-what": {"plugin"}, "arg-name": {"reminders"}, "arg-to": {"on"}}
	if status, page := r.send("/do", form); status != http.StatusOK || !strings.Contains(page, "Not done: Nothing was changed") || !strings.Contains(page, "nonsense") {
		t.Errorf("with a broken configuration: %d %s", status, page)
	}
	if got := row("reminders"); !strings.Contains(got, "turned off on this page") {
		t.Errorf("its row after that: %s", got)
	}
	d.write(config)
	for name, what := range map[string]string{"pairing": "plugin", "games": "plugin", "nothing": "plugin", "message_console": "action", "no_action": "action"} {
		form := url.Values{"csrf": {csrf}, "command": {"switch"}, "arg-what": {what}, "arg-name": {name}, "arg-to": {"off"}}
		if status, page := r.send("/do", form); status != http.StatusOK || !strings.Contains(page, "Not done: ") {
			t.Errorf("%s is turned off: %d %s", name, status, page)
		}
	}
	d.stop()
	<-d.status
	if p := prompt(); strings.Contains(p, "reminder_") || !strings.Contains(p, "message_console") {
		t.Errorf("after a restart: %s", p)
	}
}

// TestPageOfReminders: the page lists reminders, with what they say where the conversation is open, and cancels them.
func TestPageOfReminders(t *testing.T) {
	d := startDaemon(t, withTerminal+"[admin]\nlisten = \""+freeAddress(t)+"\"\n")
	d.tells("READY=1")
	r := newReader(t, d.file)
	d.answers("/remind add every monday at 9 water the plants")
	page := r.ask("/reminders", nil)
	if !strings.Contains(page, "1 reminder, the next one first.") || !strings.Contains(page, "Said in private: closed.") || strings.Contains(page, "plants") {
		t.Errorf("closed: %s", page)
	}
	csrf := regexp.MustCompile(`name="csrf" value="([^"]+)"`).FindStringSubmatch(page)[1]
	form := url.Values{"csrf": {csrf}, "place": {"console/main"}, "command": {"remind"}, "arg-what": {"list"}, "back": {"/reminders"}}
	if status, page := r.send("/do", form); status != http.StatusForbidden || strings.Contains(page, "plants") {
		t.Errorf("listed by a button: %d %s", status, page)
	}
	form.Set("reason", "to cancel it")
	r.ask("/talk/open", form)
	page = r.ask("/reminders", nil)
	id := regexp.MustCompile(`name="arg-text" value="([a-z0-9]+)"`).FindStringSubmatch(page)
	if !strings.Contains(page, "water the plants") || !strings.Contains(page, "repeats every week on Monday") || id == nil {
		t.Fatalf("open: %s", page)
	}
	form.Set("arg-what", "cancel")
	form.Set("arg-text", id[1])
	if page := r.ask("/do", form); !strings.Contains(page, "Cancelled: water the plants") || !strings.Contains(page, "0 reminders") {
		t.Errorf("cancelled: %s", page)
	}
	d.stop()
	<-d.status
}

// TestPageOfCards: an imported card speaks where /persona chooses it, over a restart, until it is removed.
func TestPageOfCards(t *testing.T) {
	settings := withTerminal + "[admin]\nlisten = \"" + freeAddress(t) + "\"\n"
	d := startDaemon(t, settings)
	d.tells("READY=1")
	r := newReader(t, d.file)
	csrf := regexp.MustCompile(`name="csrf" value="([^"]+)"`).FindStringSubmatch(r.ask("/personas", nil))[1]
	upload := func(name, data string) (status int, page string) {
		t.Helper()
		var body bytes.Buffer
		form := multipart.NewWriter(&body)
		part, err := form.CreateFormFile("file", name)
		if err == nil {
			_, err = io.WriteString(part, data)
		}
		if err != nil || form.WriteField("csrf", csrf) != nil || form.Close() != nil {
			t.Fatal(err)
		}
		return r.sendAs(form.FormDataContentType(), "/personas/import", body.String())
	}
	text := base64.StdEncoding.EncodeToString([]byte(`{"name":"Mira","description":"Sails."}`))
	card := pngCard(t, "chara\x00"+text)
	for name, tc := range map[string][2]string{
		"a.png": {"no picture", "a.png"}, "b.png": {card[:len(card)-5], "truncated PNG"}, "c.json": {`{"x":1}`, "no character card"},
		"d.zip": {"PK\x03\x04", "a ZIP or CHARX archive"}, "../e.png": {pngCard(t, "x\x00y"), "e.png: a PNG without a character card"},
	} {
		if status, page := upload(name, tc[0]); status != http.StatusBadRequest || !strings.Contains(page, tc[1]) {
			t.Errorf("%s: %d %s", name, status, page)
		}
	}
	status, page := upload("../../mira card.png", card)
	file := filepath.Join(d.dir(), "data", "personas", "mira.png")
	if status != http.StatusOK || !strings.Contains(page, "It is imported.") || !strings.Contains(page, "You are Mira") {
		t.Fatalf("imported: %d %s", status, page)
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 || info.Size() != int64(len(card)) {
		t.Errorf("the file: %v, %v", info, err)
	}
	if status, page := upload("mira.json", `{"name":"mira"}`); status != http.StatusBadRequest || !strings.Contains(page, "there is a persona mira already") {
		t.Errorf("twice: %d %s", status, page)
	}
	if picture := r.ask("/personas/avatar?id="+url.QueryEscape(file), nil); !strings.HasPrefix(picture, "\x89PNG") || strings.Contains(picture, text) {
		t.Errorf("the picture: %q", picture)
	}
	do := url.Values{"csrf": {csrf}, "command": {"persona"}, "place": {"console/main"}, "arg-name": {"Mira"}, "id": {file}}
	if page := r.ask("/do", do); !strings.Contains(page, "Here I am Mira.") {
		t.Errorf("chosen: %s", page)
	}
	d.write("broken")
	if status, page := upload("nora.json", `{"name":"Nora"}`); status != http.StatusOK || !strings.Contains(page, "It is imported.") {
		t.Errorf("imported while the configuration is broken: %d %s", status, page)
	}
	nora := url.Values{"csrf": {csrf}, "id": {filepath.Join(filepath.Dir(file), "nora.json")}}
	if page := r.ask("/personas/remove", nora); strings.Contains(page, "Nora") {
		t.Errorf("removed while the configuration is broken: %s", page)
	}
	d.write(settings)
	prompt := func() string {
		status, out, errs := d.command("", "prompt", "--path", "console/main", "--text", "hello")
		if status != statusDone {
			t.Fatal(errs)
		}
		return out
	}
	if p := prompt(); !strings.Contains(p, "You are Mira") {
		t.Errorf("where it was chosen: %s", p)
	}
	r.ask("/personas/remove", do)
	if _, err := os.Stat(file); err == nil || strings.Contains(prompt(), "Mira") {
		t.Errorf("it is still there: %v", err)
	}
	if status, page := r.send("/personas/remove", url.Values{"csrf": {csrf}, "id": {""}}); status != http.StatusBadRequest {
		t.Errorf("the main persona is removed: %d %s", status, page)
	}
	upload("mira.png", card)
	d.stop()
	<-d.status
	if p := prompt(); !strings.Contains(p, "You are Mira") {
		t.Errorf("after a restart: %s", p)
	}
}

// pngCard is a picture with a text in it.
func pngCard(t *testing.T, text string) string {
	t.Helper()
	var b bytes.Buffer
	if err := png.Encode(&b, image.NewGray(image.Rect(0, 0, 1, 1))); err != nil {
		t.Fatal(err)
	}
	const header = 8 + 25 // the signature and the first chunk
	chunk := binary.BigEndian.AppendUint32(nil, uint32(len(text)))
	chunk = append(chunk, "tEXt"+text...)
	chunk = binary.BigEndian.AppendUint32(chunk, crc32.ChecksumIEEE(chunk[4:]))
	return string(b.Bytes()[:header]) + string(chunk) + string(b.Bytes()[header:])
}
