package discord

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"synthbot/core"
)

// interact tells the gateway of an interaction of Ann's in the hall.
func (s *server) interact(id string, change map[string]any) {
	d := map[string]any{
		"id": id, "application_id": appID, "token": "token-" + id, "type": interactCommand, "guild_id": guildID, "channel_id": hallID, "locale": "it",
		"member": map[string]any{"user": person(annID), "permissions": "1024", "roles": []any{}}, "channel": map[string]any{"id": hallID, "type": 0, "name": "hall"},
	}
	for k, v := range change {
		d[k] = v
	}
	s.tell(guildID, "INTERACTION_CREATE", d)
}

// answered waits for n answers to interactions.
func (s *server) answered(t *testing.T, n int) []asked {
	t.Helper()
	var got []asked
	until(t, "answers", func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		got = append([]asked(nil), s.answers...)
		return len(got) >= n
	})
	return got
}

func TestPress(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	_, in := s.up(t)
	question := map[string]any{"id": "5", "channel_id": hallID, "author": map[string]any{"id": botID}}
	s.interact("100", map[string]any{"type": interactPress, "message": question, "data": map[string]any{"custom_id": annID + ":yes"}})
	p := in.wait(t, core.KindPress, 1)[0]
	if p.Target != "5" || p.Data != "yes" || p.Message.Author.ID != annID {
		t.Errorf("press: %+v", p)
	}
	got := s.answered(t, 2)
	if got[0].body["type"] != 6.0 || got[1].method != "PATCH" || len(got[1].body["components"].([]any)) != 0 {
		t.Errorf("answered with %v, %v", got[0].body, got[1].body)
	}
}

func TestStrangersPress(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	_, in := s.up(t, func(o *Options) { o.Admins = []core.Path{core.MustPath("discord/@user/" + bobID)} })
	question := map[string]any{"id": "5", "channel_id": hallID}
	press := func(id, who string) {
		s.interact(id, map[string]any{"type": interactPress, "message": question, "data": map[string]any{"custom_id": annID + ":yes"},
			"member": map[string]any{"user": person(who), "permissions": "0"}})
	}
	press("100", "700000000000000066")
	refusal := s.answered(t, 1)[0]
	data := refusal.body["data"].(map[string]any)
	if refusal.body["type"] != 4.0 || data["flags"] != 64.0 {
		t.Errorf("refused with %v", refusal.body)
	}
	press("101", bobID)
	if got := in.wait(t, core.KindPress, 1); len(got) != 1 || got[0].Message.Author.ID != bobID {
		t.Errorf("presses: %+v", got)
	}
}

func TestSlowDiskDefersAllTheSame(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	d := s.bot(t)
	d.tempo.defers = 50 * time.Millisecond
	in := newInbox()
	hang := make(chan struct{})
	in.answer = func(e core.Event) {
		if e.Kind == core.KindCommand {
			<-hang
		}
	}
	s.listening(t, d, in)
	until(t, "connected", func() bool { return d.book.known(guildID) })
	s.interact("100", map[string]any{"data": map[string]any{"name": "help", "type": 1}})
	if got := s.answered(t, 1); got[0].body["type"] != 5.0 {
		t.Errorf("answered with %v", got[0].body)
	}
	close(hang)
}

func TestCommandIsAnsweredInItsPlace(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	d, in := s.up(t, func(o *Options) { o.Commands = registry() })
	s.interact("100", map[string]any{"data": map[string]any{"name": "help", "type": 1}})
	in.wait(t, core.KindCommand, 1)
	s.answered(t, 1)
	if _, err := act(t, d, "message_discord", map[string]any{"text": "I can do this."}); err != nil {
		t.Fatal(err)
	}
	got := s.answered(t, 2)
	if got[1].method != "PATCH" || got[1].body["content"] != "I can do this." || len(s.texts(hallID)) != 0 {
		t.Errorf("answered with %s %v, said %q", got[1].method, got[1].body, s.texts(hallID))
	}
	if _, err := act(t, d, "message_discord", map[string]any{"text": "And more."}); err != nil {
		t.Fatal(err)
	}
	if got := s.texts(hallID); len(got) != 1 {
		t.Errorf("said %q", got)
	}
}

func TestCommandWithoutAnswer(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	d, in := s.up(t)
	s.interact("100", map[string]any{"data": map[string]any{"name": "help", "type": 1}})
	in.wait(t, core.KindCommand, 1)
	s.answered(t, 1)
	d.Observe(core.TurnEnd{Messages: []string{"100"}})
	if got := s.answered(t, 2); got[1].method != "DELETE" {
		t.Errorf("then %s %s", got[1].method, got[1].path)
	}
}

func TestCompletion(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	_, in := s.up(t, func(o *Options) { o.Commands = registry() })
	s.interact("100", map[string]any{"type": interactComplete, "data": map[string]any{"name": "zone", "type": 1,
		"options": []any{map[string]any{"name": "zone", "type": 3, "value": "asia", "focused": true}}}})
	got := s.answered(t, 1)[0]
	list := got.body["data"].(map[string]any)["choices"].([]any)
	if got.body["type"] != 8.0 || len(list) != 16 || list[0].(map[string]any)["value"] != "Asia/Atown" {
		t.Errorf("completed with %v", got.body)
	}
	if n := len(in.all()); n != 0 {
		t.Errorf("%d events", n)
	}
}

// shelf is a State that outlives drivers.
func shelf() State { return &brief{values: map[string][]byte{}} }

func TestCommandsAreSynchronisedWhenTheyChanged(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	state := shelf()
	syncs := func() int { return len(s.requests("PUT /applications/")) }
	run := func(change func(*Options)) {
		t.Helper()
		d, in := s.bot(t, func(o *Options) { o.State, o.Commands = state, registry(); change(o) }), newInbox()
		stop := s.listening(t, d, in)
		// The next message is taken in behind READY; the sync ends before Listen does.
		until(t, "connected", func() bool { return d.book.known(guildID) })
		until(t, "synchronised", func() bool {
			raw, _ := state.Get(context.Background(), "commands/"+strings.Join(d.set.CommandGuilds, ""))
			return raw != nil
		})
		if err := stop(); err != nil {
			t.Fatal(err)
		}
	}
	run(func(*Options) {})
	run(func(*Options) {})
	if syncs() != 1 {
		t.Fatalf("synchronised %d times", syncs())
	}
	run(func(o *Options) { o.Config.CommandGuilds = []string{guildID} })
	if got := s.requests("PUT /applications/" + appID + "/guilds/" + guildID + "/commands"); len(got) != 1 {
		t.Errorf("for the guild: %d times", len(got))
	}
	var list []appCommand
	if err := json.Unmarshal(s.stored["applications/"+appID+"/commands"], &list); err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, c := range list {
		names = append(names, c.Name)
	}
	if got := strings.Join(names, ","); got != "forget,help,remember,sleep,zone,Remember this" {
		t.Errorf("commands: %s", got)
	}
	if f := list[0].Options; !f[0].Required || f[0].Name != "what" || len(f[1].Choices) != 2 {
		t.Errorf("options of forget: %+v", f)
	}
	if z := list[4]; !z.Options[0].Complete || *z.Permission != "8" || *list[3].Permission != "8192" || list[1].Permission != nil || list[1].Briefs["it"] == "" || len(list[1].Briefs) != 1 {
		t.Errorf("commands: %+v", list)
	}
}
