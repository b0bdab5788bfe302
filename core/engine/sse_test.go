package engine

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/iotest"
	"time"
)

func TestReadEvents(t *testing.T) {
	for name, tc := range map[string]struct{ in, want string }{
		"plain":            {"data: {\"a\":1}\n\ndata: [DONE]\n\n", `:{"a":1}|:[DONE]`},
		"no space":         {"data:{}\n\n", ":{}"},
		"names":            {"event: ping\ndata: {}\n\nevent: x\n\ndata: {}\n\n", "ping:{}|:{}"},
		"comments":         {": hello\n\n:\ndata: {}\n\n", ":{}"},
		"crlf":             {"event: a\r\ndata: {}\r\n\r\n", "a:{}"},
		"no blank line":    {"data: {\"a\":1}\ndata: {\"b\":2}\n", `:{"a":1}|:{"b":2}`},
		"several lines":    {"data: {\"a\":\ndata: 1}\n\n", ":{\"a\":\n1}"},
		"no end":           {"data: {}", ":{}"},
		"other fields":     {"id: 1\nretry: 5\ndata: {}\n\nnonsense\n\n", ":{}"},
		"not json":         {"data: pong\n\ndata: {}\n\n", ":pong|:{}"},
		"nothing":          {"", ""},
		"blank data":       {"data:\n\ndata: {}\n\n", ":{}"},
		"a colon in value": {"data: {\"a\":\"b: c\"}\n\n", `:{"a":"b: c"}`},
	} {
		var got []string
		err := readEvents(iotest.OneByteReader(strings.NewReader(tc.in)), func(name string, data []byte) error {
			got = append(got, name+":"+string(data))
			return nil
		})
		if err != nil || strings.Join(got, "|") != tc.want {
			t.Errorf("%s: got %q, %v", name, got, err)
		}
	}
}

func TestReadEventsStopsAndIsBounded(t *testing.T) {
	n := 0
	err := readEvents(strings.NewReader("data: 1\n\ndata: 2\n\n"), func(string, []byte) error { n++; return errStop })
	if !errors.Is(err, errStop) || n != 1 {
		t.Errorf("got %d events, %v", n, err)
	}
	long := "data: \"" + strings.Repeat("x", maxEvent+100)
	for _, in := range []string{long, "data: [\n" + strings.Repeat("data: 1,\n", maxEvent/2)} {
		err := readEvents(strings.NewReader(in), func(string, []byte) error { return nil })
		if !errors.Is(err, errEvent) {
			t.Errorf("got %v", err)
		}
	}
	broken := iotest.ErrReader(errors.New("reset"))
	if err := readEvents(broken, func(string, []byte) error { return nil }); err == nil || !strings.Contains(err.Error(), "reset") {
		t.Errorf("got %v", err)
	}
}

// stream is a server that answers each request with it.
type stream string

func (s stream) RoundTrip(*http.Request) (*http.Response, error) {
	header, body := http.Header{"Content-Type": {"text/event-stream"}}, io.NopCloser(strings.NewReader(string(s)))
	return &http.Response{StatusCode: http.StatusOK, Header: header, Body: body}, nil
}

// streamed makes a call that is answered with a stream.
func streamed(ctx context.Context, w wire, in string, show func(piece string)) (*call, error) {
	server := &provider{preset: preset{wire: w}, transport: &transport{base: stream(in), clock: time.Now}}
	c := &call{provider: server, stream: show}
	_, err := c.GenerateContent(ctx, nil)
	return c, err
}

// FuzzStream checks that the shown text equals the answer and that tool calls are valid, whatever a server
// streams.
func FuzzStream(f *testing.F) {
	f.Add("data: {\"choices\":[{\"delta\":{\"content\":\"hi\",\"tool_calls\":[{\"index\":0,\"id\":\"a\",\"function\":{\"name\":\"n\",\"arguments\":\"{}\"}}]},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n", false)
	f.Add("event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"usage\":{\"input_tokens\":3}}}\n\ndata: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"x\"}}\n\ndata: {\"type\":\"message_stop\"}\n\n", true)
	f.Add(`{"choices":[null]}`, false)
	f.Add(`{"content":[{"type":"tool_use","input":[]}]}`, true)
	f.Fuzz(func(t *testing.T, in string, anthropic bool) {
		var w wire = openAI{}
		if anthropic {
			w = anthropicWire{}
		}
		var shown strings.Builder
		c, err := streamed(t.Context(), w, in, func(p string) { shown.WriteString(p) })
		if err != nil {
			return
		}
		r := c.got
		if !strings.HasPrefix(shown.String(), r.text) && !strings.Contains(in, "content_block") {
			t.Fatalf("shown %q, answered %q", shown.String(), r.text)
		}
		for i, made := range r.calls {
			if made = toolCall(made, i, nil); made.ID == "" || !json.Valid(made.Arguments) {
				t.Fatalf("%+v became %+v", r.calls[i], made)
			}
		}
	})
}
