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
	"testing"
	"time"

	"synthbot/core/coretest"
	"synthbot/interfaces/telegram/telegramtest"
)

// adminBrowser is the browser of an admin.
type adminBrowser struct {
	testing.TB
	http.Client
	origin string
}

// send submits a form, or gets the page if form is nil.
func (r *adminBrowser) send(path string, form url.Values) (status int, page string) {
	r.Helper()
	if form == nil {
		return r.sendAs("", path, "")
	}
	return r.sendAs("application/x-www-form-urlencoded", path, form.Encode())
}

// sendAs posts a body of a content type, or gets the page if kind is empty.
func (r *adminBrowser) sendAs(kind, path, body string) (status int, page string) {
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

// ask returns the page of a request that must succeed.
func (r *adminBrowser) ask(path string, form url.Values) string {
	r.Helper()
	status, page := r.send(path, form)
	if status != http.StatusOK {
		r.Fatalf("%s: %d %s", path, status, page)
	}
	return page
}

// loginLink asks the daemon for a login link.
func loginLink(t testing.TB, file string) string {
	t.Helper()
	var out, errs bytes.Buffer
	until(t, func() bool { // the daemon may not listen yet
		return run(t.Context(), []string{"page", "-c", file}, strings.NewReader(""), &out, &errs) == statusDone
	})
	return strings.TrimSpace(out.String())
}

// newAdminBrowser returns a browser that is logged in.
func newAdminBrowser(t testing.TB, file string) *adminBrowser {
	t.Helper()
	origin, token, ok := strings.Cut(loginLink(t, file), "/login#")
	jar, err := cookiejar.New(nil)
	if err != nil || !ok || token == "" {
		t.Fatal(origin, err)
	}
	r := &adminBrowser{TB: t, Client: http.Client{Jar: jar}, origin: origin}
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
	d.awaitNotice("READY=1")
	d.ask("hello")
	r := newAdminBrowser(t, d.file)
	until(t, func() bool { return strings.Contains(r.ask("/", nil), "/turn?place=") }) // the turn ends after its answer was sent
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
			t.Errorf("%s lacks %q: %s", path, want, page)
		}
		if strings.Contains(page, "swordfish") {
			t.Errorf("%s reveals a secret", path)
		}
	}
	page := r.ask("/personas/one?id="+url.QueryEscape(who), nil)
	csrf := regexp.MustCompile(`name="csrf" value="([^"]+)"`).FindStringSubmatch(page)[1]
	form := url.Values{"csrf": {csrf}, "id": {who}, "was": {"name = \"Nora\"\n"}, "text": {"nickname = 7"}}
	if page := r.ask("/personas/preview", form); !strings.Contains(page, "who.toml") || strings.Contains(page, "persona-") || !strings.Contains(page, `role="alert"`) {
		t.Errorf("preview of a broken persona: %s", page)
	}
	form.Set("text", "name = \"Mira\"\r\n")
	if page := r.ask("/personas/preview", form); !strings.Contains(page, "You are Mira") {
		t.Errorf("preview: %s", page)
	}
	r.ask("/personas/save", form)
	d.awaitNotice("READY=1") // the file was reloaded
	if raw, err := os.ReadFile(who); string(raw) != "name = \"Mira\"\n" || err != nil {
		t.Errorf("the saved file: %q, %v", raw, err)
	}
	if info, err := os.Stat(who); err != nil || info.Mode().Perm() != 0o640 {
		t.Errorf("mode of the saved file: %v, %v", info.Mode(), err)
	}
	until(t, func() bool { return strings.Contains(r.ask("/personas", nil), "Mira") })
	d.end()
}

func TestNoPage(t *testing.T) {
	var out, errs bytes.Buffer
	file := filepath.Join(t.TempDir(), "config.toml")
	if err := os.WriteFile(file, []byte("[admin]\nlisten = \"0.0.0.0:8787\"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if status := run(t.Context(), []string{"check", "-c", file}, strings.NewReader(""), &out, &errs); status != statusUsage || !strings.Contains(errs.String(), "admin.listen") {
		t.Errorf("check of a public address: status %d, %s", status, errs.String())
	}
	d := startDaemon(t, withTerminal)
	d.awaitNotice("READY=1")
	errs.Reset()
	if status := run(t.Context(), []string{"page", "-c", d.file}, strings.NewReader(""), &out, &errs); status != statusUsage || !strings.Contains(errs.String(), "there is no page") {
		t.Errorf("page, without [admin]: status %d, %s", status, errs.String())
	}
	d.end()
}

// browsers are the kinds of browsers that show the admin page while turns run.
var browsers = []string{"nobody", "open", "dead"}

// BenchmarkPage measures the time from an update to the call that answers it, at 50 turns a second in 20 chats:
// without a browser, with one that shows turns live, and with one that never reads its response. They take
// turns of half a second, so that all have the same noise. Rounds in which the host took the processor away are
// left out. One iteration is a round of each: go test -run '^$' -bench Page$ -benchtime 60x
// ./cmd/synthbot/commands takes 90 s.
func BenchmarkPage(b *testing.B) {
	platform, file := atTelegram(b, newGatedModel(b, nil).URL, "[admin]\nlisten = \""+freeAddress(b)+"\"\n")
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
	r := newAdminBrowser(b, file)
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
	all, cpu := make(map[string][]time.Duration), make(map[string]time.Duration)
	round("nobody") // warms up
	for i := 0; b.Loop(); i++ {
		for k := range browsers {
			browser := browsers[(i+k)%len(browsers)] // the order rotates
			stolen, began := coretest.Stolen(), processorTime(b)
			if took := round(browser); coretest.Stolen() == stolen {
				all[browser] = append(all[browser], took...)
				cpu[browser] += processorTime(b) - began
			}
		}
	}
	reportTimes(b, all)
	for browser, d := range cpu { // of the whole process, including platform, model and browser
		b.ReportMetric(ms(d)/float64(len(all[browser])), browser+"-cpu-ms/turn")
	}
}

// reportTimes reports the times of each kind of browser, and their ratio to those without a browser.
func reportTimes(b *testing.B, all map[string][]time.Duration) {
	for _, browser := range browsers {
		took := all[browser]
		if len(took) == 0 {
			b.Skip("no quiet round")
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

// watch shows turns live until gone is called.
func (r *adminBrowser) watch(browser string) (gone func()) {
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

// TestPageElsewhere checks that `page` reports an address that another program uses.
func TestPageElsewhere(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	d := startDaemon(t, withTerminal+"[admin]\nlisten = \""+taken.Addr().String()+"\"\n")
	d.awaitNotice("READY=1")
	status, out, errs := d.command("", "page")
	if status != statusFailed || out != "" || !strings.Contains(errs, "not served at "+taken.Addr().String()) {
		t.Errorf("page: status %d, %q, %q", status, out, errs)
	}
	d.end()
}

// TestPageChangesTimeZone checks that the page uses a new time zone after a reload.
func TestPageChangesTimeZone(t *testing.T) {
	config := "[admin]\nlisten = \"" + freeAddress(t) + "\"\n" + withTerminal
	in := func(zone string) string { return strings.Replace(config, "[bot]", "[bot]\ntimezone = \""+zone+"\"", 1) }
	d := startDaemon(t, in("UTC"))
	d.awaitNotice("READY=1")
	r := newAdminBrowser(t, d.file)
	seen := regexp.MustCompile(`\d\d:\d\d`)
	hour := func() string { return seen.FindString(r.ask("/sessions", nil)) }
	before := hour()
	d.write(in("Asia/Kolkata"))
	if status, _, errs := d.command("", "reload"); status != 0 {
		t.Fatal(errs)
	}
	if after := hour(); before == "" || after == before || after[3:] == before[3:] {
		t.Errorf("the page shows %q in UTC and %q in Kolkata", before, after)
	}
	d.end()
}

// TestPageOfKnowledge checks that the page lists sources and taught entries, and that its buttons edit and
// remove entries.
func TestPageOfKnowledge(t *testing.T) {
	docs := t.TempDir()
	if err := os.WriteFile(filepath.Join(docs, "faq.md"), []byte("# FAQ\nKeys hang in the hall."), 0o600); err != nil {
		t.Fatal(err)
	}
	d := startDaemon(t, withTerminal+"[admin]\nlisten = \""+freeAddress(t)+"\"\n[plugins.knowledge]\nteach = \"everyone\"\n[[plugins.knowledge.source]]\nname = \"faq\"\npath = \""+docs+"\"\n")
	d.awaitNotice("READY=1")
	r := newAdminBrowser(t, d.file)
	until(t, func() bool { return strings.Contains(r.ask("/knowledge", nil), "1 document, 1 passage") })
	d.ask("/teach The wardrobe has the number 17.")
	page := r.ask("/knowledge", nil)
	if strings.Contains(page, "wardrobe") || !strings.Contains(page, "Said in private: closed.") {
		t.Fatalf("the page with an entry taught in private: %s", page)
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
		t.Errorf("after the edit: %s", page)
	}
	page = do("/do", url.Values{"command": {"unteach"}, "arg-id": {id}})
	if !strings.Contains(page, "I no longer know that.") || strings.Count(page, "cupboard") != 1 {
		t.Errorf("after the removal: %s", page)
	}
	if err := os.WriteFile(filepath.Join(docs, "more.md"), []byte("# More\nLadders are in the shed."), 0o600); err != nil {
		t.Fatal(err)
	}
	do("/do", url.Values{"command": {"knowledge"}, "arg-what": {"sync"}})
	until(t, func() bool { return strings.Contains(r.ask("/knowledge", nil), "2 documents, 2 passages") })
	d.end()
}

// TestPageSwitches checks that the page turns actions and plugins off and on again, at once and beyond a
// restart.
func TestPageSwitches(t *testing.T) {
	config := withTerminal + "[access]\nprivate = \"pairing\"\nallow = [\"console\"]\n[admin]\nlisten = \"" + freeAddress(t) +
		"\"\n[plugins.reminders]\n[plugins.games]\nenabled = false\n"
	d := startDaemon(t, config)
	d.awaitNotice("READY=1")
	r := newAdminBrowser(t, d.file)
	row := func(name string) string { // returns the row of a plugin
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
			t.Errorf("%s: got %s", name, got)
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
		t.Errorf("prompt with two actions off: %s", p)
	}
	press("action", "reminder_set", "on", "")
	if p := prompt(); !strings.Contains(p, "reminder_set") {
		t.Errorf("prompt with reminder_set on again: %s", p)
	}
	if got := d.ask("/remind list"); !strings.Contains(got, "No reminders") {
		t.Errorf("/remind list: got %q", got)
	}
	if page := press("plugin", "reminders", "off", ""); !strings.Contains(page, "reminders is off from now on.") {
		t.Errorf("page after the plugin was turned off: %s", page)
	}
	if got := row("reminders"); !strings.Contains(got, "turned off on this page") {
		t.Errorf("row of the plugin that is off: %s", got)
	}
	if p := prompt(); strings.Contains(p, "reminder_") {
		t.Errorf("prompt with the plugin off: %s", p)
	}
	if got := d.ask("/remind list"); strings.Contains(got, "No reminders") {
		t.Errorf("/remind list with the plugin off: got %q", got)
	}
	for range 2 { // the terminal stays connected
		press("plugin", "reminders", "on", "")
		if got := d.ask("/remind list"); !strings.Contains(got, "No reminders") {
			t.Errorf("/remind list with the plugin on again: got %q", got)
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
		t.Errorf("row of the plugin after that: %s", got)
	}
	d.write(config)
	for name, what := range map[string]string{"pairing": "plugin", "games": "plugin", "nothing": "plugin", "message_console": "action", "no_action": "action"} {
		form := url.Values{"csrf": {csrf}, "command": {"switch"}, "arg-what": {what}, "arg-name": {name}, "arg-to": {"off"}}
		if status, page := r.send("/do", form); status != http.StatusOK || !strings.Contains(page, "Not done: ") {
			t.Errorf("%s can be turned off: status %d, %s", name, status, page)
		}
	}
	d.end()
	if p := prompt(); strings.Contains(p, "reminder_") || !strings.Contains(p, "message_console") {
		t.Errorf("prompt after a restart: %s", p)
	}
}

// TestPageOfReminders checks that the page lists reminders, shows their texts once the conversation is open,
// and cancels them.
func TestPageOfReminders(t *testing.T) {
	d := startDaemon(t, withTerminal+"[admin]\nlisten = \""+freeAddress(t)+"\"\n")
	d.awaitNotice("READY=1")
	r := newAdminBrowser(t, d.file)
	d.ask("/remind add every monday at 9 water the plants")
	page := r.ask("/reminders", nil)
	if !strings.Contains(page, "1 reminder, the next one first.") || !strings.Contains(page, "Said in private: closed.") || strings.Contains(page, "plants") {
		t.Errorf("page while the conversation is closed: %s", page)
	}
	csrf := regexp.MustCompile(`name="csrf" value="([^"]+)"`).FindStringSubmatch(page)[1]
	form := url.Values{"csrf": {csrf}, "place": {"console/main"}, "command": {"remind"}, "arg-what": {"list"}, "back": {"/reminders"}}
	if status, page := r.send("/do", form); status != http.StatusForbidden || strings.Contains(page, "plants") {
		t.Errorf("list without a reason: status %d, %s", status, page)
	}
	form.Set("reason", "to cancel it")
	r.ask("/talk/open", form)
	page = r.ask("/reminders", nil)
	id := regexp.MustCompile(`name="arg-text" value="([a-z0-9]+)"`).FindStringSubmatch(page)
	if !strings.Contains(page, "water the plants") || !strings.Contains(page, "repeats every week on Monday") || id == nil {
		t.Fatalf("page while the conversation is open: %s", page)
	}
	form.Set("arg-what", "cancel")
	form.Set("arg-text", id[1])
	if page := r.ask("/do", form); !strings.Contains(page, "Cancelled: water the plants") || !strings.Contains(page, "0 reminders") {
		t.Errorf("page after the cancellation: %s", page)
	}
	d.end()
}

// TestPageOfCards checks that an imported character card is used where /persona chooses it, also after a
// restart, until it is removed.
func TestPageOfCards(t *testing.T) {
	settings := withTerminal + "[admin]\nlisten = \"" + freeAddress(t) + "\"\n"
	d := startDaemon(t, settings)
	d.awaitNotice("READY=1")
	r := newAdminBrowser(t, d.file)
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
			t.Errorf("%s: got %d %s", name, status, page)
		}
	}
	status, page := upload("../../mira card.png", card)
	file := filepath.Join(d.dir(), "data", "personas", "mira.png")
	if status != http.StatusOK || !strings.Contains(page, "It is imported.") || !strings.Contains(page, "You are Mira") {
		t.Fatalf("import: status %d, %s", status, page)
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 || info.Size() != int64(len(card)) {
		t.Errorf("the imported file: %v, %v", info, err)
	}
	if status, page := upload("mira.json", `{"name":"mira"}`); status != http.StatusBadRequest || !strings.Contains(page, "there is a persona mira already") {
		t.Errorf("second import: status %d, %s", status, page)
	}
	if picture := r.ask("/personas/avatar?id="+url.QueryEscape(file), nil); !strings.HasPrefix(picture, "\x89PNG") || strings.Contains(picture, text) {
		t.Errorf("picture: got %q", picture)
	}
	do := url.Values{"csrf": {csrf}, "command": {"persona"}, "place": {"console/main"}, "arg-name": {"Mira"}, "id": {file}}
	if page := r.ask("/do", do); !strings.Contains(page, "Here I am Mira.") {
		t.Errorf("page after the choice: %s", page)
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
		t.Errorf("prompt where it was chosen: %s", p)
	}
	r.ask("/personas/remove", do)
	if _, err := os.Stat(file); err == nil || strings.Contains(prompt(), "Mira") {
		t.Errorf("the removed card: got %v", err)
	}
	if status, page := r.send("/personas/remove", url.Values{"csrf": {csrf}, "id": {""}}); status != http.StatusBadRequest {
		t.Errorf("removal of the main persona: status %d, %s", status, page)
	}
	upload("mira.png", card)
	d.end()
	if p := prompt(); !strings.Contains(p, "You are Mira") {
		t.Errorf("prompt after a restart: %s", p)
	}
}

// pngCard returns a PNG picture that contains the text as a card.
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
