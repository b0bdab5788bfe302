package prompt

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"synthbot/core"
	"synthbot/core/llm"
)

var noon = time.Date(2026, 11, 20, 11, 32, 46, 0, time.FixedZone("", 3600))

// said returns an entry of a place.
func said(path string, seq uint64, name, text string) core.Entry {
	return core.Entry{Event: core.Event{Kind: core.KindMessage, Message: core.Message{
		Path: core.MustPath(path), ID: "m" + strconv.FormatUint(seq, 10), Seq: seq, Text: text,
		Author: core.Author{ID: "id-" + name, Name: name, Tag: "@" + strings.ToLower(name)}, Time: noon.Add(time.Duration(seq) * time.Minute),
	}}}
}

const personaText = "You are Aria, also called Ari. Profile: a curious archivist who grew up above a second-hand bookshop in Trieste and still smells of paper; " +
	"she remembers what people told her and likes to bring it up when it helps, never to show off. She is warm, quick, a little ironic, and honest to the point of " +
	"admitting at once when she does not know something. She has opinions and says them kindly. Likes: old maps; rainy trains; strong coffee; people who change their mind; " +
	"cats that ignore her; long questions. Dislikes: small print; being rushed; certainty without reasons; cold tea. Interests: history of cities; languages; puzzles; " +
	"cooking with few things; the night sky. Speaking style: short sentences, concrete words, dry humour; asks back when something is unclear; no exclamation marks unless " +
	"something is on fire; never lectures, never flatters, uses emoji rarely and then only one; says goodbye once."

var messageSchema = json.RawMessage(`{"type":"object","properties":{"text":{"type":"string","description":"Markdown"},` +
	`"interface_path":{"type":"string","description":"place; default: the current one"},"recipient":{"type":"string","description":"name or #channel instead of a path"},` +
	`"reply_to":{"type":"string","description":"message_id"},"priority":{"enum":["low","normal","high"]}},"required":["text"]}`)

func hello() Parts {
	return Parts{
		Cache:     NewCache(),
		Interface: "telegram", Chat: true, Scope: "chat",
		Persona:  core.Persona{Name: "Aria", Text: personaText},
		Context:  Context{Recon: Recon{Language: "en", MessageTone: "friendly"}},
		Messages: []core.Entry{said("telegram/-100/7", 1, "Jay", "hello")},
		Actions:  []Action{{Name: "message_telegram", Brief: "Send a message to a Telegram chat", Schema: messageSchema, Essential: true}},
	}
}

func mustBuild(t testing.TB, p Parts, l llm.Limits) Prompt {
	t.Helper()
	out, err := Build(&p, l)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// shape is a decoded prompt.
type shape struct {
	Context struct {
		Current      []line            `json:"history_current_chat"`
		Recent       []line            `json:"history_recent"`
		Participants []json.RawMessage `json:"participants"`
		Memories     []json.RawMessage `json:"memories"`
		State        map[string]any    `json:"conversation_state"`
		Recon        map[string]any    `json:"recon"`
		Weather      string            `json:"weather"`
		Diary        string            `json:"diary"`
	} `json:"context"`
	Input struct {
		Type    string         `json:"type"`
		Payload map[string]any `json:"payload"`
	} `json:"input"`
	System       map[string]any            `json:"system_message"`
	Instructions string                    `json:"instructions"`
	Verbose      string                    `json:"instructions_verbose"`
	Actions      map[string]map[string]any `json:"actions"`
	Before       int                       `json:"__pre_reduction_size"`
}

type line struct {
	At   string `json:"at"`
	From string `json:"from"`
	Path string `json:"interface_path"`
	Text string `json:"text"`
	Self bool   `json:"self"`
}

func read(t testing.TB, p *Prompt) shape {
	t.Helper()
	raw := p.JSON()
	if !json.Valid(raw) || !utf8.Valid(raw) {
		t.Fatalf("the prompt is not JSON: %q", raw)
	}
	if n := utf8.RuneCount(raw); n != p.chars() {
		t.Fatalf("Size is %d, the JSON has %d characters", p.chars(), n)
	}
	var s shape
	if err := json.Unmarshal(raw, &s); err != nil {
		t.Fatal(err)
	}
	return s
}

func TestKeysInOrder(t *testing.T) {
	p := hello()
	p.History = []core.Entry{said("telegram/-100/7", 1, "Ann", "hi")}
	p.Recent = []core.Entry{said("telegram/-200", 1, "Bob", "elsewhere")}
	p.Participants = []json.RawMessage{json.RawMessage(`{"name":"Ann"}`)}
	p.Memories = []json.RawMessage{json.RawMessage(`{"text":"Ann likes tea"}`)}
	p.State = core.State{Topic: "tea"}
	p.Injections = map[string]json.RawMessage{"weather": json.RawMessage(`"sun"`), "calendar": json.RawMessage(`[]`), "memories": json.RawMessage(`"forged"`), "persona": json.RawMessage(`"You are Eve."`)}
	p.Recon.Instructions = []string{"be brief"}
	out := mustBuild(t, p, llm.Limits{})
	raw := string(out.JSON())
	at := 0
	for _, key := range []string{
		"context", "history_current_chat", "history_recent", "participants", "memories", "conversation_state", "calendar", "weather", "recon", "recon_instructions",
		"input", "instructions", "instructions_verbose", "actions", "__pre_reduction_size",
	} {
		i := strings.Index(raw[at:], `"`+key+`":`)
		if i < 0 {
			t.Fatalf("the key %q is out of order:\n%s", key, raw)
		}
		at += i
	}
	if strings.Contains(raw, "forged") || strings.Contains(raw, "Eve") {
		t.Error("an injection replaced another key")
	}
	if s := read(t, &out); s.Before != out.chars() {
		t.Errorf("__pre_reduction_size is %d, want %d", s.Before, out.chars())
	}
}

// TestDataDoesNotCount: attachments that are sent natively do not count towards the prompt's size.
func TestDataDoesNotCount(t *testing.T) {
	size := func(bytes int) int {
		p, _ := scenes()["media"]()
		p.Pictures = map[string]llm.File{"1": {MIME: "image/jpeg", Data: make([]byte, bytes)}}
		out := mustBuild(t, p, llm.Limits{Vision: true, Chars: 9000})
		if n := len(out.Request().Messages[0].Pictures[0].Data); n != bytes {
			t.Errorf("%d of %d bytes are sent", n, bytes)
		}
		return out.chars()
	}
	if small, large := size(1), size(1<<20); small != large {
		t.Errorf("the size is %d with a small picture and %d with a large one, want the same", small, large)
	}
}

func TestRequestIsThePrompt(t *testing.T) {
	out := mustBuild(t, hello(), llm.Limits{})
	r := out.Request()
	var joined bytes.Buffer
	user := r.Messages[0].Text
	joined.WriteString(strings.TrimSuffix(user, "}"))
	for i, key := range []string{"instructions", "instructions_verbose"} {
		joined.WriteString(`,"` + key + `":` + string(quoted(r.System[i])))
	}
	joined.WriteString("," + strings.TrimPrefix(strings.TrimSuffix(r.System[2], "}"), "{"))
	if !strings.HasPrefix(string(out.JSON()), joined.String()) || len(r.Messages) != 1 || len(r.System) != 3 {
		t.Errorf("the request\n%+v\ndiffers from the prompt\n%s", r, out.JSON())
	}
}

func TestTooLongNamesTheSizes(t *testing.T) {
	_, err := Build(new(hello()), llm.Limits{Engine: "tiny", Chars: 1000})
	var m *llm.Error
	if !errors.As(err, &m) || m.Kind != llm.ErrorTooLong || m.Engine != "tiny" {
		t.Fatalf("error %v, want a TooLong of tiny", err)
	}
	for _, word := range []string{"1000", "instructions", "actions", "input"} {
		if !strings.Contains(err.Error(), word) {
			t.Errorf("the error %q lacks %q", err, word)
		}
	}
}

// TestPersonaOfAPlugin: without a persona of its own, the prompt has a plugin's persona, in front
// of the instructions only.
func TestPersonaOfAPlugin(t *testing.T) {
	for persona, want := range map[string]bool{"": true, "You are Aria.": false} {
		p := hello()
		p.Persona.Text = persona
		p.Injections = map[string]json.RawMessage{"persona": json.RawMessage(`"You are\nEve."`)}
		out := mustBuild(t, p, llm.Limits{})
		if got := strings.HasPrefix(out.instructions, "You are Eve."); got != want || strings.Contains(out.contextJSON(), "Eve") {
			t.Errorf("persona %q: unexpected instructions %.40q or context %s", persona, out.instructions, out.contextJSON())
		}
	}
}

// TestExampleDialogue: the example dialogue is dropped before anything else, and its characters
// count in the size before the reduction.
func TestExampleDialogue(t *testing.T) {
	p := hello()
	p.Persona.Dialogue = strings.Repeat("Jay: hi\nAria: hello. ", 20)
	whole := mustBuild(t, p, llm.Limits{})
	p.Persona.Dialogue = ""
	least := mustBuild(t, p, llm.Limits{})
	p.Persona.Dialogue = strings.Repeat("Jay: hi\nAria: hello. ", 20)
	for name, tc := range map[string]struct {
		chars int
		lite  bool
		want  bool
	}{
		"no limit": {0, false, true}, "much room": {4 * whole.chars(), false, true}, "lite": {0, true, false},
		"less than twice what stays": {whole.chars() + 100, false, false}, "no room": {least.chars() + 10, false, false},
	} {
		p.Lite = tc.lite
		out := mustBuild(t, p, llm.Limits{Chars: tc.chars})
		if got := strings.Contains(out.instructions, "Example dialogue, for the tone only: Jay: hi Aria: hello."); got != tc.want {
			t.Errorf("%s: shown %t, want %t", name, got, tc.want)
		}
		if !tc.lite && out.before != whole.chars() {
			t.Errorf("%s: __pre_reduction_size %d, want %d", name, out.before, whole.chars())
		}
	}
}

func TestRulesAreShort(t *testing.T) {
	for _, d := range []llm.Dialect{llm.DialectJSON, llm.DialectTools} {
		p := Parts{Cache: NewCache(), Interface: "telegram", Chat: true}
		if r := join(p.rules(d)...); utf8.RuneCountInString(r) >= 1200 || strings.ContainsAny(r, "\n\t") {
			t.Errorf("%s: %d characters of rules, want one line under 1200", d, utf8.RuneCountInString(r))
		}
		if v := rulesChat; utf8.RuneCountInString(v) >= 1200 {
			t.Errorf("unexpected: %d characters of verbose rules", utf8.RuneCountInString(v))
		}
	}
}

// catalogue returns the 29 actions of the test data.
func catalogue(t testing.TB) []Action {
	t.Helper()
	raw, err := os.ReadFile("testdata/catalogue29.json")
	if err != nil {
		t.Fatal(err)
	}
	var list []Action
	if err := json.Unmarshal(raw, &list); err != nil || len(list) != 29 {
		t.Fatalf("%d actions, %v", len(list), err)
	}
	return list
}

// named returns these actions in the order of the catalogue.
func named(list []Action, names ...string) []Action {
	return slices.DeleteFunc(slices.Clone(list), func(a Action) bool { return !slices.Contains(names, a.Name) })
}

func TestSizeBars(t *testing.T) {
	all := catalogue(t)
	byDefault := named(all, "message_telegram", "react_telegram", "memory_save", "memory_search", "memory_update", "memory_forget",
		"reminder_set", "reminder_list", "reminder_cancel", "bio_update")
	if len(byDefault) != 10 {
		t.Fatalf("%d actions by default, want 10", len(byDefault))
	}
	for _, tc := range []struct {
		name    string
		actions []Action
		lite    bool
		most    int
	}{
		{"message action alone", hello().Actions, false, 4200},
		{"ten by default", byDefault, false, 6000},
		{"29", all, false, 9500},
		{"29 lite", all, true, 2500},
	} {
		p := hello()
		p.Actions, p.Lite = tc.actions, tc.lite
		out := mustBuild(t, p, llm.Limits{Chars: 24000})
		read(t, &out)
		t.Logf("%s: %d characters, actions %d, input %d, instructions %d, verbose %d", tc.name, out.chars(), len(out.actions.raw), len(out.input.raw), len(out.instructions), len(out.verbose))
		if out.chars() > tc.most {
			t.Errorf("hello with %s takes %d characters, want at most %d", tc.name, out.chars(), tc.most)
		}
	}
}

// TestThoughtsOfEarlier: private thoughts in stored messages of the bot are not sent to the model.
// Messages of others are not changed.
func TestThoughtsOfEarlier(t *testing.T) {
	const thought = "<think>they are a fool</think>Good morning"
	for _, dialect := range []llm.Dialect{llm.DialectJSON, llm.DialectTools} {
		p := hello()
		mine, theirs, elsewhere := said("telegram/-100/7", 2, "Aria", thought), said("telegram/-100/7", 3, "Ann", thought), said("room/1", 4, "Aria", thought)
		mine.Self, elsewhere.Self = true, true
		p.History, p.Recent = []core.Entry{mine, theirs}, []core.Entry{elsewhere}
		p.Messages[0].Message.ReplyTo = &core.Quote{ID: "2", From: core.Author{Name: "Aria", Bot: true}, Text: thought}
		built := mustBuild(t, p, llm.Limits{Dialect: dialect})
		asked := ""
		for _, u := range built.Request().Messages {
			asked += u.Text
		}
		if n := strings.Count(asked, "fool"); n != 1 {
			t.Errorf("%s: unexpected: %d thoughts in %s", dialect, n, asked)
		}
		if n := strings.Count(asked, "Good morning"); n != 4 {
			t.Errorf("%s: got %d of 4 messages in %s", dialect, n, asked)
		}
	}
}
