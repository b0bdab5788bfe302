package page

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"synthbot/admin"
	"synthbot/core"
	"synthbot/core/llm"
	"synthbot/core/watch"
	"synthbot/memory"
)

// Texts that users might write to break a page, and texts that must never be shown.
const (
	canary  = `<script>alert("canary")</script>'"><img src=x onerror=alert(1)>`
	private = "zebra-in-private"
	mind    = "heron-in-thought"
)

var (
	group  = core.MustPath("telegram/-100")
	direct = core.MustPath("telegram/1000")
)

// world is a page with a real database.
type world struct {
	*testing.T
	page   *Page
	server *httptest.Server
	db     *memory.DB
	traces *admin.Traces
	stages *admin.Running
	log    *bytes.Buffer
	dress  *dress

	mu    sync.Mutex
	now   time.Time
	state State
	done  []string // executed commands

	cannotMute bool
	lines      admin.Lines
	lists      map[string][]List
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{T: t, traces: new(admin.Traces), stages: new(admin.Running), log: new(bytes.Buffer)}
	w.now = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	var err error
	if w.db, err = memory.Open(t.TempDir(), memory.Options{Log: slog.New(slog.DiscardHandler)}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.db.Close() })
	w.dress = &dress{text: "name = " + canary}
	w.page = New(w.options())
	w.server = httptest.NewServer(w.page.Handler())
	t.Cleanup(w.server.Close)
	return w
}

func (w *world) options() Options {
	return Options{
		Log: slog.New(slog.NewTextHandler(w.log, nil)), Clock: w.clock, Turns: w.traces, Running: w.stages,
		Reader: w.db, Facts: w.db, Items: items{w.db}, Personas: w.dress,
		Bot: bot{w}, Lines: &w.lines,
	}
}

// bot is a Bot whose names and texts try to break the page.
type bot struct{ w *world }

func (b bot) Listing(ctx context.Context, l core.FactPage) ([]core.Fact, string, error) {
	return b.w.db.ListFacts(ctx, l)
}

func (bot) Uses(context.Context, string, string) ([]Use, error) {
	return []Use{
		{Day: "2026-03-01", Whose: group, Engine: "e", Usage: llm.Usage{In: 1200, Cached: 200, Out: 34}, Cost: 0.5},
		{Day: "2026-03-01", Whose: core.MustPath("telegram/@user/7"), Engine: "e", Usage: llm.Usage{In: 1200, Out: 34}, Cost: 0.5},
	}, nil
}

func (bot) Actions(place core.Path) []Action {
	a := Action{Name: "dice_roll", Brief: "Roll " + canary, Schema: json.RawMessage(`{"type":"object"}`), Help: canary}
	if !place.IsZero() {
		a.Off = "a command in " + place.String() + canary
		a.Buttons = []Button{{Label: "Turn on", Command: "switch", Args: []Arg{{"name", a.Name}}}}
	}
	return []Action{a}
}

// logged adds a line to the log.
func (w *world) logged(room string, level slog.Level, text string, args ...any) {
	r := slog.NewRecord(w.clock(), level, text, 0)
	r.Add(args...)
	w.lines.Add(room, nil, &r)
}

func (bot) Rooms() []string { return []string{"core/turn", "memory"} }

func (bot) Settings(place core.Path) []Setting {
	from := "the file, for " + place.String()
	return []Setting{
		{Name: "activation", Value: "mention" + canary, Default: "always", From: from, Command: "activation", Arg: "what", Choices: []string{"never"}},
		{Name: "language", Value: "as spoken", From: from, Command: "set", Arg: "value"}, {Name: "observe", Value: "true", From: from},
	}
}

func (bot) Names(_ context.Context, paths ...core.Path) map[core.Path]string {
	all := map[core.Path]string{group: "The reading circle " + canary, core.MustPath("telegram/@user/7"): "Jay Miller"}
	maps.DeleteFunc(all, func(p core.Path, _ string) bool { return !slices.Contains(paths, p) })
	return all
}

func (b bot) Lists(_ context.Context, name string) ([]List, error) {
	b.w.mu.Lock()
	defer b.w.mu.Unlock()
	return b.w.lists[name], nil
}

func (b bot) State(context.Context) (State, error) {
	b.w.mu.Lock()
	defer b.w.mu.Unlock()
	return b.w.state, nil
}

func (b bot) Knows(command string) bool { return command != "mute" || !b.w.cannotMute }

func (b bot) Do(_ context.Context, place core.Path, command string, args map[string]string) (string, error) {
	if args["code"] == "refused" {
		return "", core.Errorf(core.Invalid, "Nobody has that code, or it is too old.")
	}
	b.w.mu.Lock()
	defer b.w.mu.Unlock()
	b.w.done = append(b.w.done, fmt.Sprint(command, " ", place, " ", args))
	return "Done: `" + command + "`.", nil
}

func (w *world) clock() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.now
}

func (w *world) later(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.now = w.now.Add(d)
}

// items are the items of one plugin in the database.
type items struct{ db *memory.DB }

func (i items) Get(ctx context.Context, path core.Path, key string) (core.Item, bool, error) {
	return i.db.Items("page").Get(ctx, path, key)
}
func (i items) Put(ctx context.Context, item core.Item) (uint64, error) {
	return i.db.Items("page").Put(ctx, item)
}
func (i items) PutAll(ctx context.Context, list ...core.Item) error {
	return i.db.Items("page").PutAll(ctx, list...)
}
func (i items) List(ctx context.Context, root core.Path) ([]core.Item, error) {
	return i.db.Items("page").List(ctx, root)
}

// dress holds a single persona file.
type dress struct {
	text string
	card bool // the file is a card, which cannot be edited
}

func (d *dress) Files() []File {
	return []File{{ID: "aria.toml", Name: canary, Path: "aria.toml", Text: d.text, Editable: !d.card, Imported: d.card, Avatar: d.card}}
}

func (d *dress) Preview(_, text string) (core.Persona, error) {
	name, ok := strings.CutPrefix(text, "name = ")
	if !ok {
		return core.Persona{}, errors.New("name: missing " + canary)
	}
	return core.Persona{Name: name, Text: "You are " + name + ".", Dialogue: canary, Greeting: canary}, nil
}

func (d *dress) Try(_ context.Context, _, text string, talk []Exchange) (answer, engine string, err error) {
	if talk[len(talk)-1].Said == "fail" {
		return "", "", errors.New("every engine is busy")
	}
	return fmt.Sprintf("%d exchanges as %s %s", len(talk), text, canary), "big", nil
}

func (d *dress) Import(name string, data []byte) (string, error) {
	if string(data) != "a card" {
		return "", errors.New(name + ": no card " + canary)
	}
	d.card = true
	return "aria.toml", nil
}

func (d *dress) Avatar(string) ([]byte, error) {
	if !d.card {
		return nil, errors.New("none")
	}
	return []byte("\x89PNG"), nil
}

func (d *dress) Remove(string) error {
	if !d.card {
		return errors.New("the configuration names it")
	}
	d.card = false
	return nil
}

func (d *dress) Save(_, text, was string) error {
	if was != d.text {
		return errors.New("changed meanwhile")
	}
	d.text = text
	return nil
}

// client is a browser.
type client struct {
	*http.Client
	w *world
}

func (w *world) client() *client {
	jar, err := cookiejar.New(nil)
	if err != nil {
		w.Fatal(err)
	}
	stay := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &client{&http.Client{Jar: jar, CheckRedirect: stay}, w}
}

// in returns a client that is logged in.
func (w *world) in() *client {
	w.Helper()
	c := w.client()
	if r := c.post("/login", "token", w.page.Ticket()); r.status != http.StatusSeeOther {
		w.Fatalf("login: %d %s", r.status, r.body)
	}
	return c
}

// reply is a response.
type reply struct {
	status int
	head   http.Header
	body   string
}

func (c *client) send(r *http.Request) reply {
	c.w.Helper()
	answer, err := c.Do(r)
	if err != nil {
		c.w.Fatal(err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		c.w.Fatal(err)
	}
	return reply{answer.StatusCode, answer.Header, string(body)}
}

func (c *client) request(method, path string, form url.Values) *http.Request {
	c.w.Helper()
	r, err := http.NewRequestWithContext(c.w.Context(), method, c.w.server.URL+path, strings.NewReader(form.Encode()))
	if err != nil {
		c.w.Fatal(err)
	}
	if method == http.MethodPost {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Header.Set("Origin", c.w.server.URL)
	}
	return r
}

func (c *client) get(path string) reply {
	c.w.Helper()
	return c.send(c.request(http.MethodGet, path, nil))
}

// post submits a form. Pairs are its names and values.
func (c *client) post(path string, pairs ...string) reply {
	c.w.Helper()
	form := make(url.Values)
	for i := 0; i < len(pairs); i += 2 {
		form.Set(pairs[i], pairs[i+1])
	}
	return c.send(c.request(http.MethodPost, path, form))
}

// search searches memories. The words are in no address, and the results are a page of their own that a browser
// can return to.
func (c *client) search(words string) reply {
	c.w.Helper()
	r := c.post("/memories", "csrf", c.csrf(), "words", words)
	if to := r.head.Get("Location"); r.status != http.StatusSeeOther || to != "/memories/found" {
		c.w.Fatalf("search: %d, to %q", r.status, to)
	}
	return c.get("/memories/found")
}

var token = regexp.MustCompile(`name="csrf" value="([^"]+)"`)

// csrf returns the token for this session's forms.
func (c *client) csrf() string {
	c.w.Helper()
	found := token.FindStringSubmatch(c.get("/sessions").body)
	if found == nil {
		c.w.Fatal("no form has a token")
	}
	return found[1]
}

// live adds a group and a private conversation to the world, with a memory and a turn in each.
func (w *world) live() {
	w.Helper()
	say := func(place core.Path, id, text string, private bool) core.Entry {
		return core.Entry{Event: core.Event{Kind: core.KindMessage, Message: core.Message{
			Path: place, ID: id, Text: text, Time: w.clock(), Private: private, Author: core.Author{ID: "7", Name: "Jay " + canary},
		}}, Due: true}
	}
	b := core.Batch{Append: []core.Entry{say(group, "1", "in the group "+canary, false), say(direct, "1", private, true)}}
	if err := w.db.Commit(w.Context(), &b); err != nil {
		w.Fatal(err)
	}
	for _, f := range []core.Fact{{Origin: group, Text: "likes tea " + canary}, {Origin: direct, Text: private}} { // in this order, because they are numbered
		if _, err := w.db.SaveFact(w.Context(), core.Fact{Text: f.Text, Tags: []string{"tag" + canary}, Origin: f.Origin, By: core.MustPath("telegram/@user/7")}); err != nil {
			w.Fatal(err)
		}
	}
	w.turn(group, 1, "said to the group "+canary, false)
	w.turn(direct, 1, private, true)
}

// turn ends a turn in which the text is the message, a memory and a fault.
func (w *world) turn(place core.Path, seq uint64, text string, private bool) {
	quoted, err := json.Marshal(text)
	if err != nil {
		w.Fatal(err)
	}
	w.traces.Observe(watch.TurnEnd{
		Turn: core.TurnID{Path: place, Seq: seq}, Answered: true, Private: private, Intent: text,
		Person: core.MustPath("telegram/@user/7"),
		Trace: &watch.Trace{
			Began: w.clock(), Took: 1200 * time.Millisecond, Thought: time.Second,
			Asks: []watch.Ask{{Round: 1, Engine: "big", Took: time.Second, Usage: llm.Usage{In: 900, Out: 50}, Err: text,
				Sections: []watch.Section{{Name: "persona", Size: 400}, {Name: "history", Size: 600, Items: 4, Dropped: 2}},
				Prompt: []watch.PromptPart{{Name: "system 1", Text: "You are Aria. Write no private_thought to them.", Stable: true},
					{Name: "user", Text: `{"input":` + string(quoted) + `}` + "\n" + `{"private_thought":"` + mind + `","said":1}`}},
				Faults: []string{"actions[0]: " + text, "private_thought: " + mind}}},
			Memories: []string{text},
			Plans: []core.Plan{{Response: text, Steps: []core.Step{{
				Type: "diary_write", Payload: json.RawMessage(`{"summary":` + string(quoted) + `,"deep":[{"Private_Thought":"` + mind + `"}]}`),
				Fallback: &core.Step{Type: "x", Payload: json.RawMessage(`{"private_thought":"` + mind + `"}`)},
			}}, Extra: map[string]json.RawMessage{"raw": json.RawMessage(`"{\"private_thought\":\"` + mind + `\"}"`)}}},
			Steps: []watch.Step{{Progress: core.ProgressDone, Outcome: core.Outcome{Action: "diary_write", Text: text, Result: core.Result{Output: json.RawMessage(`{"private_thought":"` + mind + `","said":` + string(quoted) + `}`)}}}},
		},
	})
}
