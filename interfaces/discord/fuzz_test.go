package discord

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"synthbot/core"
	"synthbot/interfaces/discord/gateway"
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
		if e, ok := decode[envelope](raw); ok {
			f.Add(e.Type, []byte(e.Data))
		}
	}
	f.Add("READY", []byte(`{"user":null,"guilds":[null]}`))
	f.Add("GUILD_CREATE", []byte(`{"id":"5","roles":[null],"channels":[null],"members":[null,{"user":null}]}`))
	gone, cancel := context.WithCancel(context.Background())
	cancel()
	f.Fuzz(func(t *testing.T, kind string, data []byte) {
		in := offlineIntake(t)
		in.d.log = slog.New(strict{t})
		in.d.responder.handleArrival(gone, data)
		in.event(gone, gatewayEvent{Event: gateway.Event{Type: kind, Data: data}})
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

// TestPanicInBacklog: messages whose conversion panics are skipped, also fetched ones and those that waited.
func TestPanicInBacklog(t *testing.T) {
	in := offlineIntake(t)
	in.d.cache.locales = nil // so the conversion of any message panics
	m := message{ID: "1", Channel: roomID, Author: &user{ID: annID, Name: "ann"}, Content: "hello"}
	in.backlogs[roomID] = &backlog{events: []gatewayEvent{
		{Event: gateway.Event{Type: "MESSAGE_CREATE", Data: core.JSON(m)}},
		{Event: gateway.Event{Type: "MESSAGE_DELETE", Data: []byte(`{"id":"1","channel_id":"` + roomID + `"}`)}},
	}}
	in.finish(t.Context(), fetched{channel: roomID, place: place{Guild: guildID}, missed: []message{m}})
	if len(in.batch) != 1 || in.batch[0].Kind != core.KindDeletion {
		t.Errorf("the intake has %+v, want only the deletion", in.batch)
	}
}
