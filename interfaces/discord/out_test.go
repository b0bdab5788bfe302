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

// TestMessageWithEverything: buttons, embeds, a reply and mentions of a message action are sent as the
// platform expects.
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
			t.Errorf("got buttons %s, want rows of 5, 5 and 4", m.Components)
		}
		if got := m.Buttons(); got[0] != annID+":0" || got[11] != "https://example.org/rules" || got[12] != annID+":12" || got[13] != annID+":13" {
			t.Errorf("got buttons %q", got)
		}
		if !strings.Contains(string(m.Embeds), `"title":"Rome"`) || m.ReplyTo != to || m.Silent != (i == 1) {
			t.Errorf("got %+v, want a reply with an embed, silent: %v", m, i == 1)
		}
		// Only the user replied to is pinged, and nobody if it is silent.
		if got := string(m.Mentions); got != []string{`{"parse":[],"replied_user":true}`, `{"parse":[]}`}[i] {
			t.Errorf("got mentions %s", got)
		}
	}
}

// TestButtonsOfTheBotsOwnTurn: the buttons of a turn that no user caused are for everyone.
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
			t.Errorf("got buttons %q, want one for everyone", got)
		}
	}
}

// TestButtonsOfSeveralPeople: the buttons of a turn that several users caused are for those users. If
// there are too many to name in a button, there are none.
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
		t.Errorf("got buttons %q, want one for both", got)
	}
	if got := s.Messages(hallID)[1].Buttons(); len(got) != 0 {
		t.Errorf("for ten users got buttons %q, want none", got)
	}
	if !d.responder.mayPress(custom, annID) || !d.responder.mayPress(custom, bobID) || d.responder.mayPress(custom, "700000000000000066") {
		t.Error("the button is not for exactly those two")
	}
}

// TestButtonsElsewhere: everybody may press the buttons of a message that was sent to another place than its turn's.
func TestButtonsElsewhere(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	d := s.bot(t)
	for where, want := range map[string]string{hallID: annID + ":0", roomID: pressAnyone + ":0"} {
		payload := map[string]any{
			"text": "Who comes?", "buttons": []any{map[string]any{"label": "I do"}}, "interface_path": "discord/" + guildID + "/" + where,
		}
		if _, err := act(t, d, "message_discord", payload); err != nil {
			t.Fatal(err)
		}
		if got := s.Messages(where)[0].Buttons(); !slices.Equal(got, []string{want}) {
			t.Errorf("got buttons %q, want %q", got, want)
		}
	}
}

// TestTargetsThatAreGone: after a 404 or 403 for a channel, nothing is sent there for a while. An error
// about the message does not close the channel.
func TestTargetsThatAreGone(t *testing.T) {
	for name, c := range map[string]struct {
		fault   discordtest.Fault
		calls   int // requests to the channel
		notices int // to admins
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
				notices := 0
				d := s.bot(t, func(o *Options) { o.Admin = func(string) { notices++ } })
				s.Fail(func(discordtest.Call) discordtest.Fault { return c.fault })
				for range 3 {
					if _, err := act(t, d, "message_discord", map[string]any{"text": "x"}); err == nil {
						t.Fatal("the message was sent, want an error")
					}
				}
				if n := len(s.Calls("POST /channels/" + hallID)); n != c.calls || notices != c.notices {
					t.Errorf("got %d requests and %d notices, want %d and %d", n, notices, c.calls, c.notices)
				}
				// After a while, the channel is tried again.
				s.Fail(nil)
				time.Sleep(refusalAge + time.Second)
				if _, err := act(t, d, "message_discord", map[string]any{"text": "x"}); err != nil {
					t.Errorf("an hour later: %v", err)
				}
			})
		})
	}
}

// TestPaceOfThePlatform: bursts in several channels at once stay within the platform's rate limits and
// arrive in order.
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
				t.Errorf("%s: got %s, want 0 to 11", id, got)
			}
		}
		if took := time.Since(began); hits+early > 0 || took > 15*time.Second {
			t.Errorf("got %d exceeded limits and %d early requests in %v, want none within 15s", hits, early, took)
		}
	})
}

// TestDraftKeepsToTheLimits: a draft is edited at most every 1.5 s, which stays within the rate limits.
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
			t.Errorf("got %q after %d edits and %d exceeded limits, want the answer after 15 to 21 and none", got, edits, hits+early)
		}
		d.tasks.Close()
	})
}

// TestNoMoreSessionsToday: when the platform allows no more sessions today, the bot waits, because the
// platform would revoke its token, and admins are notified.
func TestNoMoreSessionsToday(t *testing.T) {
	inBubble(t, func(t *testing.T, s *server) {
		s.Gateway(func(g *discordtest.Settings) { g.Remaining, g.Reset = 0, 3*time.Hour })
		notices := make(chan string, 10)
		began := time.Now()
		d, in := s.bot(t, func(o *Options) { o.Admin = func(text string) { notices <- text } }), newInbox()
		s.listen(t, d, in)
		within(t, 4*time.Hour, "connected", func() bool { return d.cache.known(guildID) })
		if took := time.Since(began); took < 3*time.Hour || !strings.Contains(<-notices, "3h0m0s") {
			t.Errorf("connected after %v, want at least 3h and a notice with the time", took)
		}
	})
}

// TestFewerSessionsThanShards: when the platform allows fewer sessions than there are shards, the
// remaining shards wait.
func TestFewerSessionsThanShards(t *testing.T) {
	inBubble(t, func(t *testing.T, s *server) {
		s.Gateway(func(g *discordtest.Settings) { g.Remaining, g.Shards, g.Reset = 2, 4, 3*time.Hour })
		began := time.Now()
		s.listen(t, s.bot(t), newInbox())
		within(t, 4*time.Hour, "all shards", func() bool { return s.Live() == 4 })
		if took := time.Since(began); took < 3*time.Hour {
			t.Errorf("connected after %v, want at least 3h", took)
		}
	})
}

// TestChangesComeIn: edits, reactions and deletions of messages are received as events.
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
		t.Errorf("edit: got %+v", e)
	}
	if r := in.wait(t, core.KindReaction, 2); r[0].Data != "👍" || r[1].Data != "-👍" || r[0].Target != first || r[0].Message.Author.Rank != core.RankModerator {
		t.Errorf("reactions: got %+v, want one added and removed by a moderator", r)
	}
	d := in.wait(t, core.KindDeletion, 3)
	if d[0].Target != first || d[1].Target != others[0] || d[2].Target != others[1] {
		t.Errorf("deletions: got %+v", d)
	}
}

// TestGuildsComeAndGo: joining and leaving a guild are received as events, and a left guild is forgotten.
func TestGuildsComeAndGo(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	d, in := s.up(t)
	const other = "800000000000000077"
	s.AddGuild(other, nil)
	s.AddChannel(discordtest.Channel{ID: "800000000000000078", Guild: other, Name: "lobby"})
	s.Say("800000000000000078", annID, hello())
	if m := in.wait(t, core.KindMessage, 1)[0].Message; m.Path.String() != "discord/"+other+"/800000000000000078" || m.Addressed != core.AddressedMention {
		t.Errorf("got %+v, want a mention in the new guild", m)
	}
	s.RemoveGuild(other)
	got := in.wait(t, core.KindMembership, 2)
	if got[0].Data != "added" || got[1].Data != "removed" || got[1].Message.Path.String() != "discord/"+other {
		t.Errorf("got %+v, want added and removed", got)
	}
	if _, ok := d.cursors.get("800000000000000078"); ok || d.cache.known(other) {
		t.Error("the guild was not forgotten")
	}
	s.RemoveGuild(guildID) // READY listed it
	s.AddGuild(guildID, nil)
	got = in.wait(t, core.KindMembership, 4)[2:]
	if got[0].Data != "removed" || got[1].Data != "added" || got[1].Message.Path.String() != "discord/"+guildID {
		t.Errorf("got %+v, want removed and added", got)
	}
}
