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

// failOnError is a log handler that fails the test if an error is logged, as for an event whose
// conversion panics.
type failOnError struct{ t *testing.T }

func (s failOnError) Enabled(context.Context, slog.Level) bool { return true }
func (s failOnError) WithAttrs([]slog.Attr) slog.Handler       { return s }
func (s failOnError) WithGroup(string) slog.Handler            { return s }
func (s failOnError) Handle(_ context.Context, r slog.Record) error {
	if r.Level >= slog.LevelError {
		s.t.Errorf("%s", r.Message)
		r.Attrs(func(a slog.Attr) bool { s.t.Log(a.String()); return true })
	}
	return nil
}

// FuzzEvent: the intake panics at no event, and the results stay within the limits.
func FuzzEvent(f *testing.F) {
	files, _ := filepath.Glob("testdata/events/*.json")
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		e := decode[envelope](raw)
		f.Add(e.Type, []byte(e.Data))
	}
	f.Add("READY", []byte(`{"user":null,"guilds":[null]}`))
	f.Add("GUILD_CREATE", []byte(`{"id":"5","roles":[null],"channels":[null],"members":[null,{"user":null}]}`))
	gone, cancel := context.WithCancel(context.Background())
	cancel()
	f.Fuzz(func(t *testing.T, kind string, data []byte) {
		in := offlineIntake(t)
		in.d.log = slog.New(failOnError{t})
		in.d.responder.handleArrival(gone, data)
		in.event(gone, gatewayEvent{Event: gateway.Event{Type: kind, Data: data}})
		in.jobs.Wait()
		for _, e := range in.batch {
			m := e.Message
			if m.Path.IsZero() || m.ID == "" || len(m.Text) > core.MaxText || len(m.Author.Name) > core.MaxName || len(m.Author.Tag) > core.MaxName ||
				m.ReplyTo != nil && len(m.ReplyTo.Text) > core.MaxQuote {
				t.Errorf("got %+v, which lacks an identity or exceeds a limit", e)
			}
			if strings.ContainsAny(m.Author.Name+m.Author.Tag, "\n\r\x00") {
				t.Errorf("got name %q, want one line", m.Author.Name)
			}
		}
	})
}

// TestPanicInBacklog: fetched or waiting messages whose conversion panics are skipped.
func TestPanicInBacklog(t *testing.T) {
	in := offlineIntake(t)
	in.d.cache.locales = nil // so the conversion of any message panics
	m := message{ID: "1", Channel: roomID, Author: &user{ID: annID, Name: "ann"}, Content: "hello"}
	b := &backlog{channel: roomID, place: place{Guild: guildID}, missed: []message{m}, events: []gatewayEvent{
		{Event: gateway.Event{Type: "MESSAGE_CREATE", Data: core.JSON(m)}},
		{Event: gateway.Event{Type: "MESSAGE_DELETE", Data: []byte(`{"id":"1","channel_id":"` + roomID + `"}`)}},
	}}
	in.finish(t.Context(), b)
	if len(in.batch) != 1 || in.batch[0].Kind != core.KindDeletion {
		t.Errorf("got %+v, want only the deletion", in.batch)
	}
}
