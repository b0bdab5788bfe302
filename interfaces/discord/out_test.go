package discord

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"synthbot/core"
	"synthbot/interfaces/discord/discordtest"
)

// What the message action offers reaches the platform as it should.
func TestMessageWithEverything(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	d := s.bot(t)
	to := s.Say(hallID, annID, "show me")
	var buttons []map[string]any
	for i := range 11 {
		buttons = append(buttons, map[string]any{"label": fmt.Sprint("Choice ", i)})
	}
	buttons = append(buttons, map[string]any{"label": "Rules", "url": "https://example.org/rules"}, map[string]any{"label": "Plain"})
	for _, silent := range []bool{false, true} {
		_, err := act(t, d, "message_discord", map[string]any{
			"text": "# All\n@everyone <@&" + modRole + ">", "reply_to_message_id": json.Number(to), "silent": silent, "buttons": buttons, "suggestions": []string{"Tell me more"},
			"embeds": []any{map[string]any{"title": "Rome", "description": "**19** °C", "color": 255, "fields": []any{map[string]any{"name": "Wind", "value": "none", "inline": true}}}},
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	all := s.Messages(hallID)
	for i, m := range all {
		var rows []struct{ Components []any }
		_ = json.Unmarshal(m.Components, &rows)
		if len(rows) != 3 || len(rows[0].Components) != 5 || len(rows[2].Components) != 4 || len(m.Buttons()) != 14 {
			t.Errorf("buttons: %s", m.Components)
		}
		if got := m.Buttons(); got[0] != annID+":0" || got[11] != "https://example.org/rules" || got[12] != annID+":12" || got[13] != annID+":13" {
			t.Errorf("buttons: %q", got)
		}
		if !strings.Contains(string(m.Embeds), `"title":"Rome"`) || m.ReplyTo != to || m.Silent != (i == 1) {
			t.Errorf("message: %+v", m)
		}
		// Only the user replied to is pinged, and nobody if it is silent.
		if got := string(m.Mentions); got != []string{`{"parse":[],"replied_user":true}`, `{"parse":[]}`}[i] {
			t.Errorf("mentions: %s", got)
		}
	}
}

// In turns that nobody caused, buttons are for everyone.
func TestButtonsOfTheBotsOwnTurn(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	d := s.bot(t)
	for _, who := range []core.Author{{}, {ID: botID, Rank: core.RankBot}} {
		if _, err := act(t, d, "message_discord", map[string]any{"text": "Who plays?", "buttons": []any{map[string]any{"label": "Me"}}}, func(c *core.Call) { c.Author, c.Authors = who, []core.Author{who} }); err != nil {
			t.Fatal(err)
		}
	}
	for _, m := range s.Messages(hallID) {
		if got := m.Buttons(); len(got) != 1 || got[0] != "*:0" {
			t.Errorf("buttons %q", got)
		}
	}
}

// In turns that several people caused, buttons are for those people; where they are too
// many for a button to name, there is none.
func TestButtonsOfSeveralPeople(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	d := s.bot(t)
	two := []core.Author{{ID: annID}, {ID: bobID}}
	many := slices.Repeat(two, 5)
	for _, authors := range [][]core.Author{two, many} {
		with := func(c *core.Call) { c.Author, c.Authors = core.Author{}, authors }
		payload := map[string]any{"text": "Shall I?", "buttons": []any{map[string]any{"label": "Yes"}}}
		if _, err := act(t, d, "message_discord", payload, with); err != nil {
			t.Fatal(err)
		}
	}
	custom := annID + "," + bobID + ":0"
	if got := s.Messages(hallID)[0].Buttons(); !slices.Equal(got, []string{custom}) {
		t.Errorf("buttons %q", got)
	}
	if got := s.Messages(hallID)[1].Buttons(); len(got) != 0 {
		t.Errorf("buttons of many: %q", got)
	}
	if !d.responder.mayPress(custom, annID) || !d.responder.mayPress(custom, bobID) || d.responder.mayPress(custom, "700000000000000066") {
		t.Error("the buttons are not for those two")
	}
}

// What is refused by 404 is left alone like what is refused by 403; an error that
// is about the message says nothing of the channel.
func TestTargetsThatAreGone(t *testing.T) {
	for name, c := range map[string]struct {
		fault discordtest.Fault
		asked int // times that the channel was asked
		told  int // times that the admins were informed
	}{
		"unknown channel":    {discordtest.Fault{Kind: discordtest.Refused, Status: 404, Code: 10003}, 1, 1},
		"missing access":     {discordtest.Fault{Kind: discordtest.Refused, Status: 403, Code: 50001}, 1, 1},
		"missing permission": {discordtest.Fault{Kind: discordtest.Refused, Status: 403, Code: 50013}, 1, 1},
		"takes no messages":  {discordtest.Fault{Kind: discordtest.Refused, Status: 403, Code: 50007}, 1, 1},
		"moderation":         {discordtest.Fault{Kind: discordtest.Refused, Status: 403, Code: 200000}, 3, 0},
		"a bad form":         {discordtest.Fault{Kind: discordtest.Refused, Status: 400, Code: 50035}, 3, 0},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, s *server) {
				told := 0
				d := s.bot(t, func(o *Options) { o.Admin = func(string) { told++ } })
				s.Fail(func(discordtest.Call) discordtest.Fault { return c.fault })
				for range 3 {
					if _, err := act(t, d, "message_discord", map[string]any{"text": "x"}); err == nil {
						t.Fatal("sent")
					}
				}
				if n := len(s.Calls("POST /channels/" + hallID)); n != c.asked || told != c.told {
					t.Errorf("asked %d times, admins were told %d times", n, told)
				}
				// It may be open again after a while.
				s.Fail(nil)
				time.Sleep(refusalAge + time.Second)
				if _, err := act(t, d, "message_discord", map[string]any{"text": "x"}); err != nil {
					t.Errorf("an hour later: %v", err)
				}
			})
		})
	}
}

// Below the platform's own limits, with a burst in several channels at once, no
// request is refused.
func TestPaceOfThePlatform(t *testing.T) {
	inBubble(t, func(t *testing.T, s *server) {
		s.Strict()
		ids := s.addChannels(20)
		d := s.bot(t, func(o *Options) { o.Config.Pace = "platform" })
		began := time.Now()
		done := make(chan struct{})
		for _, id := range ids {
			go func() {
				defer func() { done <- struct{}{} }()
				for i := range 12 {
					if _, err := act(t, d, "message_discord", map[string]any{"text": fmt.Sprint(i), "interface_path": "discord/" + guildID + "/" + id}); err != nil {
						t.Error(err)
					}
				}
			}()
		}
		for range ids {
			<-done
		}
		hits, early := s.Hits()
		for _, id := range ids {
			if got := strings.Join(s.Texts(id), " "); got != "0 1 2 3 4 5 6 7 8 9 10 11" {
				t.Errorf("%s: %s", id, got)
			}
		}
		if took := time.Since(began); hits+early > 0 || took > 15*time.Second {
			t.Errorf("%d limits run into, %d requests too early, %v", hits, early, took)
		}
	})
}

// A text that grows is shown at most every 1.5 s, which the platform allows.
func TestDraftKeepsToTheLimits(t *testing.T) {
	inBubble(t, func(t *testing.T, s *server) {
		s.Limit(5, 5*time.Second, 50)
		d := s.bot(t)
		for i := range 300 {
			d.Draft(hall(), strings.Repeat("word ", i+1))
			time.Sleep(100 * time.Millisecond)
		}
		if _, err := act(t, d, "message_discord", map[string]any{"text": "The whole text."}); err != nil {
			t.Fatal(err)
		}
		hits, early := s.Hits()
		edits := len(s.Calls("PATCH /channels/"))
		if got := s.Texts(hallID); len(got) != 1 || got[0] != "The whole text." || hits+early > 0 || edits < 15 || edits > 21 {
			t.Errorf("stands %q after %d edits, %d limits run into", got, edits, hits+early)
		}
		d.tasks.Close()
	})
}

// Where the platform allows no more sessions today, the bot waits: one more would
// cost it its token.
func TestNoMoreSessionsToday(t *testing.T) {
	inBubble(t, func(t *testing.T, s *server) {
		s.Gateway(func(g *discordtest.Settings) { g.Remaining, g.Reset = 0, 3*time.Hour })
		told := make(chan string, 10)
		began := time.Now()
		d, in := s.bot(t, func(o *Options) { o.Admin = func(text string) { told <- text } }), newInbox()
		s.listen(t, d, in)
		within(t, 4*time.Hour, "connected", func() bool { return d.cache.known(guildID) })
		if took := time.Since(began); took < 3*time.Hour || !strings.Contains(<-told, "3h0m0s") {
			t.Errorf("connected after %v", took)
		}
	})
}

// Where the platform allows fewer sessions than there are shards, the others wait.
func TestFewerSessionsThanShards(t *testing.T) {
	inBubble(t, func(t *testing.T, s *server) {
		s.Gateway(func(g *discordtest.Settings) { g.Remaining, g.Shards, g.Reset = 2, 4, 3*time.Hour })
		began := time.Now()
		s.listen(t, s.bot(t), newInbox())
		within(t, 4*time.Hour, "all shards", func() bool { return s.Live() == 4 })
		if took := time.Since(began); took < 3*time.Hour {
			t.Errorf("connected after %v", took)
		}
	})
}

func TestChangesComeIn(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	_, in := s.up(t)
	first := s.Say(hallID, annID, "helo")
	others := []string{s.Say(hallID, bobID, "a"), s.Say(hallID, bobID, "b")}
	s.Edit(hallID, first, "hello <@"+bobID+">")
	s.React(hallID, first, bobID, "👍", true)
	s.React(hallID, first, bobID, "👍", false)
	s.Delete(hallID, first)
	s.Delete(hallID, others...)
	if e := in.wait(t, core.KindEdit, 1)[0]; e.Message.ID != first || e.Message.Text != "hello @Bob" {
		t.Errorf("edit: %+v", e)
	}
	if r := in.wait(t, core.KindReaction, 2); r[0].Data != "👍" || r[1].Data != "-👍" || r[0].Target != first || r[0].Message.Author.Rank != core.RankModerator {
		t.Errorf("reactions: %+v", r)
	}
	d := in.wait(t, core.KindDeletion, 3)
	if d[0].Target != first || d[1].Target != others[0] || d[2].Target != others[1] {
		t.Errorf("deletions: %+v", d)
	}
}

func TestGuildsComeAndGo(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	d, in := s.up(t)
	const other = "800000000000000077"
	s.AddGuild(other, nil)
	s.AddChannel(discordtest.Channel{ID: "800000000000000078", Guild: other, Name: "lobby"})
	s.Say("800000000000000078", annID, hello())
	if m := in.wait(t, core.KindMessage, 1)[0].Message; m.Path.String() != "discord/"+other+"/800000000000000078" || m.Addressed != core.AddressedMention {
		t.Errorf("came in: %+v", m)
	}
	s.RemoveGuild(other)
	got := in.wait(t, core.KindMembership, 2)
	if got[0].Data != "added" || got[1].Data != "removed" || got[1].Message.Path.String() != "discord/"+other {
		t.Errorf("membership: %+v", got)
	}
	if _, ok := d.cursors.get("800000000000000078"); ok || d.cache.known(other) {
		t.Error("the guild is remembered")
	}
}
