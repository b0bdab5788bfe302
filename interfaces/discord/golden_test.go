package discord

import (
	"bytes"
	"encoding/json"
	"flag"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"synthbot/core"
	"synthbot/core/command"
	"synthbot/interfaces/discord/gateway"
)

var update = flag.Bool("update", false, "rewrite golden files")

// offlineIntake returns an intake that knows the guild of the tests and is not connected.
func offlineIntake(t testing.TB) *intake {
	t.Helper()
	config := defaultConfig("x")
	config.APIURL = "http://127.0.0.1:1"
	d, err := newDriver(Options{
		Name: "discord", Config: config, Log: slog.New(slog.DiscardHandler), State: newState(),
		Clock:    func() time.Time { return time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC) },
		Commands: registry,
	}, fastTimings)
	if err != nil {
		t.Fatal(err)
	}
	d.feed.shards = 1
	d.cache.setMe(user{ID: botID, Name: "aria"}, appID)
	raw, _ := json.Marshal(guildFixture(guildID))
	g := decode[guildPayload](raw)
	d.cache.setGuild(g)
	for _, c := range []channel{
		{ID: topicID, Guild: guildID, Parent: hallID, Type: threadPublic, Name: "topic"},
		{ID: "810000000000000005", Guild: guildID, Type: 2, Name: "voice"},
		{ID: "810000000000000006", Guild: guildID, Parent: forumID, Type: threadPublic, Name: "House rules"},
		{ID: dmID, Type: channelDirect}, {ID: groupID, Type: channelGroup},
	} {
		d.cache.setChannel(c)
	}
	d.tasks.Close() // nothing is answered
	in := newIntake(d, newInbox())
	in.listed[0] = map[string]bool{} // so that no commands are registered
	return in
}

// guildFixture returns the guild that the events of testdata belong to.
func guildFixture(id string) map[string]any {
	return map[string]any{
		"id": id, "name": "House", "owner_id": "700000000000000009", "joined_at": "2026-01-01T00:00:00Z",
		"roles": []any{
			map[string]any{"id": id, "name": "@everyone", "permissions": "1024"},
			map[string]any{"id": modRole, "name": "Keepers", "permissions": "8192"},
			map[string]any{"id": botRole, "name": "Aria", "permissions": "0", "tags": map[string]any{"bot_id": botID}},
		},
		"channels": []any{
			map[string]any{"id": catID, "type": 4, "name": "Ground floor"},
			map[string]any{"id": hallID, "type": 0, "name": "hall", "parent_id": catID},
			map[string]any{"id": roomID, "type": 0, "name": "room"},
			map[string]any{"id": forumID, "type": 15, "name": "forum"},
		},
		"threads": []any{},
		"members": []any{map[string]any{"user": map[string]any{"id": botID}, "roles": []any{botRole}}},
	}
}

// registry returns commands with every kind of argument and rank.
func registry() []command.Spec {
	return []command.Spec{
		{Name: "help", Brief: "Say what I can do", Briefs: map[string]string{"it": "Dire cosa so fare", "xx": "?"}},
		{Name: "forget", Brief: "Forget something", Args: []command.Arg{{Name: "who", Brief: "Whom", Choices: []string{"me", "all"}}, {Name: "what", Required: true, Rest: true}}},
		{Name: "sleep", Brief: "Sleep for a while", Rank: core.RankModerator, Args: []command.Arg{{Name: "time", Brief: "How long"}}},
		{Name: "remember", Brief: "Remember something", Args: []command.Arg{{Name: "what", Brief: "What", Required: true, Rest: true}}},
		{Name: "zone", Brief: "Set the time zone", Rank: core.RankAdmin, Args: []command.Arg{{Name: "zone", Brief: "Which", Choices: zones()}}},
	}
}

// zones returns more choices than a command may list.
func zones() (list []string) {
	for _, a := range []string{"Europe", "Asia", "America"} {
		for c := 'A'; c <= 'P'; c++ {
			list = append(list, a+"/"+string(c)+"town")
		}
	}
	return list
}

// envelope is an event as the gateway sends it.
type envelope struct {
	Type string          `json:"t"`
	Data json.RawMessage `json:"d"`
}

// TestEvents: each event in testdata converts to the events of its golden file.
func TestEvents(t *testing.T) {
	files, err := filepath.Glob("testdata/events/*.json")
	if err != nil || len(files) < 40 {
		t.Fatalf("got %d events, %v, want at least 40", len(files), err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".json"), func(t *testing.T) {
			raw, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var e envelope
			if err := json.Unmarshal(raw, &e); err != nil {
				t.Fatal(err)
			}
			in := offlineIntake(t)
			in.event(t.Context(), gatewayEvent{Event: gateway.Event{Type: e.Type, Data: e.Data}})
			var got bytes.Buffer
			enc := json.NewEncoder(&got)
			enc.SetEscapeHTML(false)
			enc.SetIndent("", " ")
			for _, event := range in.batch {
				if err := enc.Encode(event); err != nil {
					t.Fatal(err)
				}
			}
			compareGolden(t, strings.TrimSuffix(file, ".json")+".golden", got.Bytes())
		})
	}
}

// compareGolden compares text with a golden file, or rewrites the file with -update.
func compareGolden(t *testing.T, file string, got []byte) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s: got:\n%s\nwant:\n%s", file, got, want)
	}
}

// TestUnnamed: mentions by id are blanked out of the spoken text, and the same name as text is not.
func TestUnnamed(t *testing.T) {
	r := reader{users: []user{{ID: "7", Name: "Aria"}}, bare: true}
	for text, want := range map[string]string{"@Aria, greet <@7>!": "@Aria, greet  !", "<@7>": " ", "a < b": "a < b"} {
		if got := r.resolveReferences(text); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}

// TestNamesOfOthers: the name of a mentioned user is not part of what the author says. Neither is
// anything in a forwarded message.
func TestNamesOfOthers(t *testing.T) {
	for file, want := range map[string]string{"mention-person": " ask   about it", "plain": "", "forwarded-mention": ""} {
		raw, err := os.ReadFile("testdata/events/" + file + ".json")
		if err != nil {
			t.Fatal(err)
		}
		var e envelope
		if err := json.Unmarshal(raw, &e); err != nil {
			t.Fatal(err)
		}
		in := offlineIntake(t)
		in.event(t.Context(), gatewayEvent{Event: gateway.Event{Type: e.Type, Data: e.Data}})
		m := in.batch[0].Message
		if m.Spoken != want {
			t.Errorf("%s: got %q of %q, want %q", file, m.Spoken, m.Text, want)
		}
	}
}

// TestPollResultSaysNothing: the result of a poll, which the platform sends in the name of its author,
// is not a message of that user.
func TestPollResultSaysNothing(t *testing.T) {
	c := offlineIntake(t).d.cache
	p, _ := c.place(hallID)
	m := message{
		ID: "1300000000000000001", Channel: hallID, Type: messageResult,
		Content: "Aria, <@" + botID + "> come", Author: &user{ID: "700000000000000001", Name: "ann"},
	}
	if got, ok := c.toCore(&m, p); ok {
		t.Errorf("got %+v, want no message", got)
	}
}

// TestQuotesAreForeign: quoted lines are not the author's own. Neither they nor code address the bot.
func TestQuotesAreForeign(t *testing.T) {
	bot, role, fence := "<@"+botID+">", "<@&830000000000000002>", "```"
	for name, tc := range map[string]struct {
		content, text, quoted string
		addressed             core.Addressed
		spoken                string
	}{
		"no quote":         {content: "5 > 4, a->b, >c", text: "5 > 4, a->b, >c"},
		"one":              {content: "> Aria, come", quoted: "Aria, come"},
		"with a comment":   {content: "> Aria,\n> come\nhaha", text: "haha", quoted: "Aria,\ncome"},
		"the rest":         {content: "Bob said:\n>>> Aria,\ncome", text: "Bob said:", quoted: "Aria,\ncome"},
		"mention":          {content: "> " + bot + " come\nhaha", text: "haha", quoted: "@aria come"},
		"own mention":      {content: "> come\n" + bot, text: "@aria", quoted: "come", addressed: core.AddressedMention, spoken: " "},
		"role":             {content: "> " + role + "\nhaha", text: "haha", quoted: "@Aria"},
		"code":             {content: fence + "\n> Aria " + bot + "\n" + fence, text: fence + "\n> Aria @aria\n" + fence, spoken: " "},
		"words in code":    {content: "do `" + bot + "` and ``" + bot + "`` now", text: "do `@aria` and ``@aria`` now", spoken: "do   and   now"},
		"code in a quote":  {content: "> " + fence + "\n> Aria\n> " + fence + "\nAria", text: "Aria", quoted: fence + "\nAria\n" + fence},
		"code that is not": {content: "`" + bot, text: "`@aria", addressed: core.AddressedMention, spoken: "` "},
	} {
		c := offlineIntake(t).d.cache
		m := message{
			ID: "1300000000000000001", Channel: hallID, Content: tc.content,
			Author: &user{ID: "700000000000000001", Name: "ann"},
		}
		if strings.Contains(tc.content, role) {
			m.Roles = []string{"830000000000000002"}
		}
		p, _ := c.place(hallID)
		got, ok := c.toCore(&m, p)
		var want []core.Foreign
		if tc.quoted != "" {
			want = []core.Foreign{{Kind: core.ForeignQuote, Text: tc.quoted}}
		}
		if !ok || got.Text != tc.text || !slices.Equal(got.Foreign, want) || got.Addressed != tc.addressed ||
			strings.TrimSpace(got.Spoken) != strings.TrimSpace(tc.spoken) || (got.Spoken == "") != (tc.spoken == "") {
			t.Errorf("%s: got %q (spoken %q, addressed %q), %+v, %v", name, got.Text, got.Spoken, got.Addressed, got.Foreign, ok)
		}
		reply := message{ID: "1300000000000000002", Channel: hallID, Content: "this", Author: m.Author, Referenced: &m,
			Reference: &reference{Message: m.ID}, Type: messageReply}
		if got, _ := c.toCore(&reply, p); !slices.Equal(got.Foreign, want) {
			t.Errorf("%s, in a reply of its author: got %+v, want %+v", name, got.Foreign, want)
		}
	}
}

// TestForwardsNameTheirOriginal: a forward names the message that it copies and whether that is a
// voice message, which the sender did not speak.
func TestForwardsNameTheirOriginal(t *testing.T) {
	c := offlineIntake(t).d.cache
	copied := message{Content: "look", Flags: flagVoice}
	m := message{
		ID: "1300000000000000001", Channel: hallID, Author: &user{ID: "700000000000000001", Name: "ann"},
		Reference: &reference{Type: 1, Message: "1299999999999999995", Channel: topicID}, Snapshots: []snapshot{{copied}},
	}
	p, _ := c.place(hallID)
	got, ok := c.toCore(&m, p)
	want := core.MustPath("discord/" + guildID + "/" + hallID + "/" + topicID)
	if !ok || len(got.Foreign) != 1 || got.Foreign[0].Path != want ||
		got.Foreign[0].ID != m.Reference.Message || !got.Foreign[0].Voice || got.Voice {
		t.Errorf("got %+v, %v, want the original voice message in %s", got.Foreign, ok, want)
	}
}
