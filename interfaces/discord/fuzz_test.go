package discord

import (
	"bufio"
	"bytes"
	"context"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"synthbot/core"
)

// strict fails the test for whatever is logged as an error: that is where an
// event that could not be digested would show.
type strict struct{ t *testing.T }

func (s strict) Enabled(context.Context, slog.Level) bool { return true }
func (s strict) WithAttrs([]slog.Attr) slog.Handler       { return s }
func (s strict) WithGroup(string) slog.Handler            { return s }
func (s strict) Handle(_ context.Context, r slog.Record) error {
	if r.Level >= slog.LevelError {
		s.t.Errorf("%s", r.Message)
		r.Attrs(func(a slog.Attr) bool { s.t.Log(a.String()); return true })
	}
	return nil
}

// FuzzEvent: no event makes the intake panic, and what comes of it stays within
// the limits.
func FuzzEvent(f *testing.F) {
	files, _ := filepath.Glob("testdata/events/*.json")
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		var e envelope
		if e, ok := decode[envelope](raw); ok {
			f.Add(strings.ToLower(e.Type), []byte(e.Data))
		}
		_ = e
	}
	f.Add("ready", []byte(`{"user":null,"guilds":[null]}`))
	f.Add("guild_create", []byte(`{"id":"5","roles":[null],"channels":[null],"members":[null,{"user":null}]}`))
	gone, cancel := context.WithCancel(context.Background())
	cancel()
	f.Fuzz(func(t *testing.T, kind string, data []byte) {
		in := still(t)
		in.d.log = slog.New(strict{t})
		in.d.arrive(gone, data)
		in.frame(gone, frame{kind: kind, data: data})
		in.jobs.Wait()
		for _, e := range in.batch {
			m := e.Message
			if m.Path.IsZero() || m.ID == "" || len(m.Text) > core.MaxText || len(m.Author.Name) > core.MaxName || len(m.Author.Tag) > core.MaxName ||
				m.ReplyTo != nil && len(m.ReplyTo.Text) > core.MaxQuote {
				t.Errorf("%+v", e)
			}
			if strings.ContainsAny(m.Author.Name+m.Author.Tag, "\n\r\x00") {
				t.Errorf("name %q", m.Author.Name)
			}
		}
	})
}

// FuzzWire: whatever a gateway sends, the library is given well-formed frames of
// known messages, or an error.
func FuzzWire(f *testing.F) {
	head := "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\r\n"
	for _, s := range []string{`{"op":10,"d":{"heartbeat_interval":41250}}`, `{"op":0,"s":1,"t":"READY","d":{}}`, `{"op":7}`, `{"op":9,"d":false}`, `null`, `{"op":11}`, `{}`} {
		f.Add([]byte(head + string(plain(frameText, []byte(s)))))
	}
	f.Add([]byte(" 101\n\r\r\n\x81\b\n"))
	f.Add([]byte("HTTP/1.1 403 Forbidden\r\n\r\nno"))
	f.Add([]byte(head + "\x88\x02\x0f\xa4"))
	f.Add([]byte(head + "\x01\x01{\x80\x01}"))
	f.Add([]byte(head + "\x81\x7f\xff\xff\xff\xff\xff\xff\xff\xff"))
	f.Fuzz(func(t *testing.T, data []byte) {
		w := newWire(&tape{Reader: *bytes.NewReader(data)}, "Bot x", nil, &stash{}, time.Second)
		var out bytes.Buffer
		if n, err := out.ReadFrom(w); err == nil && w.err == nil || n > int64(2*len(data)+4096) {
			t.Fatalf("%d bytes, %v", n, err)
		}
		if w.raw || !w.frame {
			return
		}
		r := bufio.NewReader(&out)
		for line := ""; line != "\r\n" && line != "\n"; {
			var err error
			if line, err = r.ReadString('\n'); err != nil {
				t.Fatalf("the handshake does not end: %v", err)
			}
		}
		for r.Buffered() > 0 || out.Len() > 0 {
			kind, final, payload, err := readFrame(r, 0, nil)
			if err != nil || !final {
				t.Fatalf("frame: %v", err)
			}
			e, ok := decode[envelope](payload)
			if kind == frameText && (!ok || e.Op == nil || *e.Op == opInvalid || *e.Op == opReconnect || e.Type != strings.ToLower(e.Type)) {
				t.Fatalf("the library is given %q", payload)
			}
		}
	})
}

// tape is a connection that was recorded.
type tape struct {
	bytes.Reader
	net.Conn
}

func (c *tape) Read(b []byte) (int, error)       { return c.Reader.Read(b) }
func (c *tape) Write(b []byte) (int, error)      { return len(b), nil }
func (c *tape) Close() error                     { return nil }
func (c *tape) SetReadDeadline(time.Time) error  { return nil }
func (c *tape) SetWriteDeadline(time.Time) error { return nil }

// FuzzUnmasked: a frame that we write reads back as what was written.
func FuzzUnmasked(f *testing.F) {
	f.Add([]byte(`{"op":1,"d":5}`))
	f.Add(bytes.Repeat([]byte("x"), 200))
	f.Fuzz(func(t *testing.T, text []byte) {
		if got, ok := unmasked(masked(frameText, text)); len(text) < 1<<16 && (!ok || !bytes.Equal(got, text)) {
			t.Errorf("%q reads as %q", text, got)
		}
		unmasked(text)
	})
}
