package mcp

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"synthbot/core"
	"synthbot/core/coretest"
	"synthbot/plugins/plugintest"
)

// lent is an MCP client that uses the bot.
type lent struct {
	t       *testing.T
	stand   *plugintest.Harness
	session *mcp.ClientSession
	ended   chan error
}

// lend serves a bot's data to a client.
func lend(t *testing.T, o Options) *lent {
	t.Helper()
	p := &lent{t: t, stand: plugintest.NewHarness(t, "mcp"), ended: make(chan error, 1)}
	p.told("room/1", "jay", "The meeting is on Friday", false)
	p.told("room/1/7", "ann", "Friday is bad for me", false)
	p.told("room/2", "eve", "Friday is secret", false)
	p.told("room/jay", "jay", "My Friday PIN is 4711", true)
	for place, text := range map[string]string{"room/1": "Jay likes tea", "room/1/7": "Ann likes coffee", "room/2": "Eve likes gin", "room/jay": "Jay likes nobody"} {
		if _, err := p.stand.DB.SaveFact(t.Context(), core.Fact{Text: text, Origin: core.MustPath(place), About: []core.Path{core.MustPath("room/@user/jay")}}); err != nil {
			t.Fatal(err)
		}
	}
	o.Facts, o.Reader, o.Relay = p.stand.Facts, p.stand.Reader, p.stand.Tell
	o.Clock, o.Log = p.stand.Clock, discardLog()
	theirs, in := io.Pipe()
	out, ours := io.Pipe()
	go func() { p.ended <- Serve(context.Background(), o, theirs, ours) }()
	var err error
	client := mcp.NewClient(&mcp.Implementation{Name: "other", Version: "1"}, nil)
	if p.session, err = client.Connect(t.Context(), &mcp.IOTransport{Reader: out, Writer: in}, nil); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = p.session.Close() // the test may have closed it
		if err := <-p.ended; err != nil {
			t.Error(err)
		}
	})
	return p
}

func (p *lent) told(place, who, text string, private bool) {
	p.t.Helper()
	m := core.Message{
		Path: core.MustPath(place), ID: place + text, Text: text, Private: private, Time: p.stand.Clock(),
		Author: core.Author{ID: who, Name: who},
	}
	b := core.Batch{Append: []core.Entry{{Event: core.Event{Kind: core.KindMessage, Message: m}}}}
	if err := p.stand.DB.Commit(p.t.Context(), &b); err != nil {
		p.t.Fatal(err)
	}
}

// call returns a tool's text, or its error.
func (p *lent) call(tool string, args map[string]any) string {
	p.t.Helper()
	r, err := p.session.CallTool(p.t.Context(), &mcp.CallToolParams{Name: tool, Arguments: args})
	if err != nil {
		return "refused: " + err.Error()
	}
	var b strings.Builder
	for _, c := range r.Content {
		if c, ok := c.(*mcp.TextContent); ok {
			b.WriteString(c.Text)
		}
	}
	if r.IsError {
		return "error: " + b.String()
	}
	return b.String()
}

func rights(see, send string) Serving {
	s := Serving{As: core.MustPath("room/@user/boss")}
	for place := range strings.FieldsSeq(see) {
		s.See = append(s.See, core.MustPath(place))
	}
	for place := range strings.FieldsSeq(send) {
		s.Send = append(s.Send, core.MustPath(place))
	}
	return s
}

// TestServeSees checks that a search covers what the rights allow: the named places and those below them, but
// private places only if they are named themselves.
func TestServeSees(t *testing.T) {
	for see, want := range map[string]string{
		"room/1":          "tea coffee | meeting bad",
		"room/1/7":        "tea coffee | bad",
		"room":            "tea coffee gin | meeting bad secret",
		"room/jay":        "nobody | PIN",
		"room/2 room/jay": "gin nobody | secret PIN",
		"room/9":          " | ",
	} {
		p := lend(t, Options{Rights: rights(see, "")})
		facts := p.call("memory_search", map[string]any{"query": "likes"})
		talk := p.call("history_search", map[string]any{"query": "FRIDAY"})
		wantFacts, wantTalk, _ := strings.Cut(want, " | ")
		for _, word := range []string{"tea", "coffee", "gin", "nobody"} {
			if strings.Contains(facts, word) != strings.Contains(wantFacts, word) {
				t.Errorf("%s: memories %s, want %s", see, facts, wantFacts)
			}
		}
		for _, word := range []string{"meeting", "bad", "secret", "PIN"} {
			if strings.Contains(talk, word) != strings.Contains(wantTalk, word) {
				t.Errorf("%s: history %s, want %s", see, talk, wantTalk)
			}
		}
	}
}

// TestServeAnswersBadLines checks that a line that is not a message is answered with an error, and that the next one
// gets its answer.
func TestServeAnswersBadLines(t *testing.T) {
	h := plugintest.NewHarness(t, "mcp")
	theirs, in := io.Pipe()
	out, ours := io.Pipe()
	ended := make(chan error, 1)
	o := Options{Rights: rights("room", ""), Facts: h.Facts, Reader: h.Reader, Clock: h.Clock, Log: discardLog()}
	go func() { ended <- Serve(context.Background(), o, theirs, ours) }()
	answers := bufio.NewScanner(out)
	const ping = `{"jsonrpc":"2.0","id":7,"method":"ping"}`
	for _, tc := range [][2]string{
		{"not json", `"id":null,"error":{"code":-32700,`}, {`{"jsonrpc":"2.0",`, `"code":-32700,`}, {ping + ping, `"code":-32700,`},
		{"{}", `"code":-32600,`}, {"[]", `"code":-32600,`}, {"[1]", `"code":-32600,`}, {"1", `"code":-32600,`}, {"null", `"code":-32600,`},
		{"\n \r\n" + ping, `"id":7,"result":{}`},
		{strings.Replace(ping, ",", strings.Repeat(" ", maxLine-len(ping))+",", 1), `"id":7,"result":{}`},
		{strings.Replace(ping, ",", strings.Repeat(" ", maxLine-len(ping)+1)+",", 1), `"code":-32600,"message":"this line is longer than 1048576 bytes"`},
		{strings.Repeat("x", 5*maxLine), `"message":"this line is longer`}, {ping, `"id":7,"result":{}`},
		{strings.Repeat(" ", 3*maxLine), `"message":"this line is longer`}, {ping, `"id":7,"result":{}`},
	} {
		if _, err := io.WriteString(in, tc[0]+"\n"); err != nil {
			t.Fatal(err)
		}
		if answers.Scan(); !strings.Contains(answers.Text(), tc[1]) || !json.Valid(answers.Bytes()) {
			t.Errorf("%.100s: got %s, want %s", tc[0], answers.Text(), tc[1])
		}
	}
	in.Close()
	if err := waitFor(ended); err != nil {
		t.Error(err)
	}
}

func TestServeHistory(t *testing.T) {
	p := lend(t, Options{Rights: rights("room", "")})
	for args, want := range map[string]string{
		`{"query":"friday meeting"}`:         "meeting",
		`{"query":"friday","limit":1}`:       "secret",
		`{"query":"","place":"room/1/7"}`:    "bad",
		`{"query":"","place":"room/jay"}`:    `{"entries":[]}`,
		`{"query":"friday","place":"no//p"}`: "error: bad path",
	} {
		var m map[string]any
		if err := json.Unmarshal([]byte(args), &m); err != nil {
			t.Fatal(err)
		}
		if got := p.call("history_search", m); !strings.Contains(got, want) || strings.Count(got, `"place"`) > 1 {
			t.Errorf("%s: got %s, want %s", args, got, want)
		}
	}
	if got := p.call("message_send", map[string]any{"place": "room/1", "text": "x"}); !strings.HasPrefix(got, "refused: ") {
		t.Errorf("the tools include one that is not allowed: %s", got)
	}
}

func TestServeSends(t *testing.T) {
	p := lend(t, Options{Rights: rights("", "room/1 room/jay")})
	for place, want := range map[string]string{
		"room/1": "", "room/1/7": "", "room/jay": "",
		"room/2": "you may not", "room": "you may not", "": "you may not", "room/jay/1": "you may not", "room/1/99": "you may not", "room/@user/jay": "you may not",
	} {
		got := p.call("message_send", map[string]any{"place": place, "text": "hello"})
		if want == "" && got != `{"sent":true}` || want != "" && !strings.Contains(got, want) {
			t.Errorf("%q: got %s", place, got)
		}
	}
	if n := len(p.stand.Sent()); n != 3 {
		t.Errorf("got %d messages: %v", n, p.stand.Sent())
	}
	for args, want := range map[string]string{" ": "no text", strings.Repeat("x", maxMessage+1): "at most"} {
		if got := p.call("message_send", map[string]any{"place": "room/1", "text": args}); !strings.Contains(got, want) {
			t.Error(got)
		}
	}
	for range sendCount - 3 {
		p.call("message_send", map[string]any{"place": "room/1", "text": "more"})
	}
	if got := p.call("message_send", map[string]any{"place": "room/1", "text": "more"}); !strings.Contains(got, "too often") {
		t.Error(got)
	}
	p.stand.Advance(sendPer)
	if got := p.call("message_send", map[string]any{"place": "room/1", "text": "later"}); got != `{"sent":true}` {
		t.Error(got)
	}
	p.stand.Deaf = errors.New("the token 4711 is wrong")
	if got := p.call("message_send", map[string]any{"place": "room/1", "text": "more"}); got != "error: that did not work" {
		t.Error(got)
	}
}

// TestServeAdmits checks that revoked rights apply at once.
func TestServeAdmits(t *testing.T) {
	var may bool
	p := lend(t, Options{Rights: rights("room", "room"), Admits: func(who core.Path) bool { return may && who.String() == "room/@user/boss" }})
	for _, tool := range []string{"memory_search", "history_search"} {
		may = true
		if got := p.call(tool, map[string]any{"query": ""}); strings.HasPrefix(got, "error") {
			t.Error(got)
		}
		may = false
		if got := p.call(tool, map[string]any{"query": ""}); got != "error: you may not use the bot" {
			t.Error(got)
		}
	}
	if got := p.call("message_send", map[string]any{"place": "room/1", "text": "x"}); got != "error: you may not use the bot" || len(p.stand.Sent()) > 0 {
		t.Error(got)
	}
}

func TestServeNobody(t *testing.T) {
	in, _ := io.Pipe()
	_, out := io.Pipe()
	if err := Serve(t.Context(), Options{}, in, out); err == nil || !strings.Contains(err.Error(), "plugins.mcp.serve") {
		t.Errorf("got %v", err)
	}
}

// TestServeEnds checks that the server ends with its context, also after invalid input.
func TestServeEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	theirs, in := io.Pipe()
	out, ours := io.Pipe()
	go func() { _, _ = io.Copy(io.Discard, out) }()
	ended := make(chan error, 1)
	go func() { ended <- Serve(ctx, Options{Rights: rights("room", "")}, theirs, ours) }()
	cancel()
	if err := waitFor(ended); err != nil {
		t.Error(err)
	}
	_ = in.Close()
	theirs, in = io.Pipe()
	out2, ours2 := io.Pipe()
	go func() { _, _ = io.Copy(io.Discard, out2) }()
	go func() { ended <- Serve(t.Context(), Options{Rights: rights("room", "")}, theirs, ours2) }()
	if _, err := io.WriteString(in, strings.Repeat(" ", maxLine+1)); err != nil { // the line does not end
		t.Error(err)
	}
	_ = in.Close()
	if err := waitFor(ended); err != nil {
		t.Error(err)
	}
}

func waitFor(ended chan error) error {
	select {
	case err := <-ended:
		return err
	case <-time.After(coretest.Patience):
		return errors.New("it does not end")
	}
}
