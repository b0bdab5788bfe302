package discord

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"synthbot/core"
	"synthbot/core/markdown"
	"synthbot/interfaces/discord/discordtest"
	"synthbot/interfaces/discord/markup"
	"synthbot/interfaces/discord/rest"
)

// kind returns the kind of an action's error, or "" for nil.
func kind(err error) core.ErrorKind {
	var e *core.Error
	if errors.As(err, &e) {
		return e.Kind
	}
	if err != nil {
		return core.ErrorKind(err.Error())
	}
	return ""
}

// TestLongMessage: a long message is split without breaking code blocks. The first part is the reply, and
// the last part has the buttons.
func TestLongMessage(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	d := s.bot(t)
	id := s.Say(hallID, annID, "tell me")
	long := "# Title\n\n" + strings.Repeat("A sentence of some words. ", 100) + "\n\n```go\n" + strings.Repeat("x := 1\n", 400) + "```\nThe end."
	if _, err := act(t, d, "message_discord", map[string]any{"text": long, "reply_to_message_id": id, "buttons": []any{map[string]any{"label": "More"}}}); err != nil {
		t.Fatal(err)
	}
	all := s.Messages(hallID)
	if len(all) < 3 {
		t.Fatalf("got %d messages, want at least 3", len(all))
	}
	for i, m := range all {
		if strings.Count(m.Text, "```")%2 != 0 {
			t.Errorf("part %d has an open code block", i)
		}
		if (m.ReplyTo != "") != (i == 0) || (len(m.Buttons()) > 0) != (i == len(all)-1) {
			t.Errorf("part %d of %d: replies to %q, buttons %s", i, len(all), m.ReplyTo, m.Components)
		}
	}
	if !strings.HasSuffix(all[len(all)-1].Text, "The end.") {
		t.Error("the end of the text is missing")
	}
}

// TestBoundOfAMessage: a split loses nothing and cuts no grapheme or code block.
func TestBoundOfAMessage(t *testing.T) {
	family := "👩‍👩‍👧‍👦"
	for name, c := range map[string]struct {
		text  string
		parts int
	}{
		"2000 letters":      {strings.Repeat("x", 2000), 1},
		"2001 letters":      {strings.Repeat("x", 2001), 2},
		"1000 emoji":        {strings.Repeat("😀", 1000), 1},
		"1001 emoji":        {strings.Repeat("😀", 1001), 2},
		"families":          {strings.Repeat(family, 400), 3},
		"flags":             {strings.Repeat("🇮🇹", 1000), 2},
		"a fence that fits": {"```\n" + strings.Repeat("x", 1991) + "\n```", 1},
		"a fence too long":  {"```\n" + strings.Repeat("x", 1993) + "\n```", 2},
	} {
		got := markup.Messages(c.text)
		whole := ""
		for i, p := range got {
			if n := markdown.UTF16(p); n > markup.MaxContent || strings.ContainsRune(p, '\uFFFD') || strings.Count(p, "```")%2 != 0 {
				t.Errorf("%s: part %d with %d characters is too long or broken: %.40q", name, i, n, p)
			}
			whole += p
		}
		for _, sign := range []string{"x", "😀", family, "🇮🇹"} {
			if strings.Count(whole, sign) != strings.Count(c.text, sign) {
				t.Errorf("%s: got %d of %s, want %d", name, strings.Count(whole, sign), sign, strings.Count(c.text, sign))
			}
		}
		if len(got) != c.parts {
			t.Errorf("%s: got %d parts, want %d", name, len(got), c.parts)
		}
	}
}

// TestThreadOfAnnouncements: threads can be opened in announcement channels, which require a type of their own.
func TestThreadOfAnnouncements(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	news := s.AddChannel(discordtest.Channel{Guild: guildID, Name: "news", Type: discordtest.News})
	d, _ := s.up(t)
	for _, place := range []string{news, hallID} {
		if _, err := act(t, d, "thread_discord", map[string]any{"name": "x", "interface_path": "discord/" + guildID + "/" + place}); err != nil {
			t.Errorf("in %s: %v", place, err)
		}
	}
}

// TestDeletionAfterListen: the history learns of a deletion that a turn makes while the driver stops.
func TestDeletionAfterListen(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	d, in := s.bot(t), newInbox()
	stop := s.listen(t, d, in)
	until(t, "connected", func() bool { return s.Live() > 0 && d.cache.known(guildID) })
	if _, err := act(t, d, "message_discord", map[string]any{"text": "one"}); err != nil {
		t.Fatal(err)
	}
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	mine := s.Messages(hallID)[0].ID
	if _, err := act(t, d, "delete_discord", map[string]any{"message_id": mine}); err != nil {
		t.Fatal(err)
	}
	if e := in.wait(t, core.KindDeletion, 1)[0]; e.Target != mine || e.Message.Path != core.MustPath("discord/"+guildID+"/"+hallID) {
		t.Errorf("event %+v", e)
	}
}

// TestPostInAForumThatIsUnknown: what the gateway has not sent yet is looked up.
func TestPostInAForumThatIsUnknown(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	d := s.bot(t)
	forum := func(c *core.Call) { c.Path = core.MustPath("discord/" + guildID + "/" + forumID) }
	if _, err := act(t, d, "thread_discord", map[string]any{"name": "Rules"}, forum); kind(err) != core.Invalid {
		t.Errorf("without a text: %v", err)
	}
	if _, err := act(t, d, "thread_discord", map[string]any{"name": "Rules", "text": "be kind"}, forum); err != nil {
		t.Error(err)
	}
	unknown := func(c *core.Call) { c.Path = core.MustPath("discord/" + guildID + "/5") }
	if _, err := act(t, d, "thread_discord", map[string]any{"name": "Rules"}, unknown); kind(err) != core.Broken {
		t.Errorf("in a channel that does not exist: %v", err)
	}
}

// TestLongAnswerAsFile: with LongAnswers "file", a long answer is one message with a file.
func TestLongAnswerAsFile(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	d := s.bot(t, func(o *Options) { o.Config.LongAnswers, o.Config.LongParts = "file", 2 })
	if _, err := act(t, d, "message_discord", map[string]any{"text": strings.Repeat("A sentence of some words. ", 400)}); err != nil {
		t.Fatal(err)
	}
	all := s.Messages(hallID)
	if len(all) != 1 || len(all[0].Files) != 1 || all[0].Files[0].Name != "answer.md" || len(all[0].Files[0].Data) < 9000 {
		t.Errorf("got %+v, want one message with the whole text in answer.md", all)
	}
}

// TestLongAnswerWhereNoFilesMayBe: in a channel that refuses files, a long answer is sent as several
// messages, also if sending fails between two of them.
func TestLongAnswerWhereNoFilesMayBe(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	d := s.bot(t, func(o *Options) { o.Config.LongAnswers, o.Config.LongParts = "file", 2 })
	s.ChangeChannel(hallID, func(c *discordtest.Channel) {
		c.Over = []discordtest.Overwrite{{ID: guildID, Deny: discordtest.MayAttach}}
	})
	parts := &journal{base: "long"}
	posts := 0
	s.Fail(func(c discordtest.Call) discordtest.Fault {
		if c.Is("POST /channels/"+hallID+"/messages") && len(c.Files) == 0 {
			if posts++; posts == 3 {
				return discordtest.Fault{Kind: discordtest.Refused, Status: 400}
			}
		}
		return discordtest.Fault{}
	})
	payload := map[string]any{
		"text": strings.Repeat("A sentence of some words. ", 300), "buttons": []map[string]any{{"label": "More"}}, "embeds": []map[string]any{{"description": "a_b"}},
	}
	again := func(c *core.Call) { c.Deliveries = parts }
	if _, err := act(t, d, "message_discord", payload, again); kind(err) != core.Invalid {
		t.Fatalf("the first time: got %v, want an invalid request", err)
	}
	if _, err := act(t, d, "message_discord", payload, again); err != nil {
		t.Fatal(err)
	}
	all := s.Messages(hallID)
	if len(all) != 4 || strings.Count(strings.Join(s.Texts(hallID), " "), "sentence") != 300 {
		t.Fatalf("got %d messages, want the whole answer in 4", len(all))
	}
	if last := all[3]; len(last.Buttons()) != 1 || !strings.Contains(string(last.Embeds), `"a\\_b"`) {
		t.Errorf("last message: got buttons %v, embeds %s", last.Buttons(), last.Embeds)
	}
}

// TestRepeatedSendIsOneMessage: after failed requests, a message arrives once.
func TestRepeatedSendIsOneMessage(t *testing.T) {
	for name, fault := range map[string]discordtest.Fault{
		"answer lost": {Kind: discordtest.ResetAfter}, "never came": {Kind: discordtest.Reset}, "502": {Kind: discordtest.Broken},
		"500": {Kind: discordtest.Broken, Status: 500}, "503": {Kind: discordtest.Refused, Status: 503},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newServer(t)
			d := s.bot(t)
			s.FailNext("POST", fault, fault)
			if _, err := act(t, d, "message_discord", map[string]any{"text": "once"}); err != nil {
				t.Fatal(err)
			}
			if got := s.Texts(hallID); len(got) != 1 {
				t.Errorf("sent %d times, want 1", len(got))
			}
		})
	}
}

// TestRefusals: invalid messages are refused with the same kind of error when they are checked and when
// they are sent.
func TestRefusals(t *testing.T) {
	for name, c := range map[string]struct {
		payload map[string]any
		want    core.ErrorKind
	}{
		"empty":             {map[string]any{"text": "  "}, core.Invalid},
		"elsewhere":         {map[string]any{"text": "x", "interface_path": "telegram/1"}, core.Invalid},
		"a person":          {map[string]any{"text": "x", "interface_path": "discord/@user/1"}, core.Invalid},
		"too deep":          {map[string]any{"text": "x", "interface_path": "discord/1/2/3/4"}, core.Invalid},
		"a guild":           {map[string]any{"text": "x", "interface_path": "discord/1"}, core.Invalid},
		"embed without":     {map[string]any{"embeds": []any{map[string]any{}}}, core.Invalid},
		"embed address":     {map[string]any{"embeds": []any{map[string]any{"title": "x", "url": "javascript:x"}}}, core.Invalid},
		"button address":    {map[string]any{"text": "x", "buttons": []any{map[string]any{"label": "x", "url": "file:///etc"}}}, core.Invalid},
		"buttons too many":  {map[string]any{"text": "x", "buttons": make([]map[string]any, 30)}, core.Invalid},
		"channel not there": {map[string]any{"text": "x", "interface_path": "discord/" + guildID + "/5"}, core.Broken},
	} {
		s := newServer(t)
		d := s.bot(t)
		call := core.Call{Path: hall(), Payload: core.JSON(c.payload), Deliveries: &journal{}}
		if err := d.checkMessage(t.Context(), call); kind(err) != c.want {
			t.Errorf("%s: check: got %v, want %s", name, err, c.want)
		}
		if _, err := actionOf(d, d.sendMessage)(t.Context(), call); kind(err) != c.want {
			t.Errorf("%s: send: got %v, want %s", name, err, c.want)
		}
	}
}

// TestLimitsAreObeyed: requests stay within the rate limit of a channel.
func TestLimitsAreObeyed(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	s.Limit(5, 300*time.Millisecond, 0)
	d := s.bot(t)
	for range 17 {
		if _, err := act(t, d, "message_discord", map[string]any{"text": "x"}); err != nil {
			t.Fatal(err)
		}
	}
	if hits, early := s.Hits(); len(s.Texts(hallID)) != 17 || hits+early > 0 {
		t.Errorf("got %d messages, %d exceeded limits, %d early requests, want 17 and none", len(s.Texts(hallID)), hits, early)
	}
}

// TestUnforeseenLimits: after any kind of 429, a message is sent once, and not too early.
func TestUnforeseenLimits(t *testing.T) {
	for name, fault := range map[string]discordtest.FaultKind{
		"HTML": discordtest.Cloudflare, "shared": discordtest.Shared, "route": discordtest.Limited, "global": discordtest.Global,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newServer(t)
			d := s.bot(t)
			s.FailNext("POST", discordtest.Fault{Kind: fault})
			if _, err := act(t, d, "message_discord", map[string]any{"text": "x"}); err != nil {
				t.Fatal(err)
			}
			if _, early := s.Hits(); len(s.Texts(hallID)) != 1 || early > 0 {
				t.Errorf("got %d messages and %d early requests, want 1 and 0", len(s.Texts(hallID)), early)
			}
		})
	}
}

// TestGlobalLimit: all messages arrive if the global rate limit delays them. None is begun while the driver must wait.
func TestGlobalLimit(t *testing.T) {
	inBubble(t, func(t *testing.T, s *server) {
		s.Limit(0, 0, 20)
		d := s.bot(t)
		var wait sync.WaitGroup
		for i := range 40 {
			wait.Go(func() {
				channel := []string{hallID, roomID}[i%2]
				if _, err := act(t, d, "message_discord", map[string]any{"text": "x", "interface_path": "discord/" + guildID + "/" + channel}); err != nil {
					t.Error(err)
				}
			})
		}
		wait.Wait()
		if n := len(s.Texts(hallID)) + len(s.Texts(roomID)); n != 40 {
			t.Errorf("got %d messages, want 40", n)
		}
		// A request of the other channel may be on its way when the limit is exceeded, each time.
		if hits, early := s.Hits(); hits == 0 || early > hits {
			t.Errorf("the limit was exceeded %d times, and then %d requests came too early", hits, early)
		}
	})
}

// TestOtherActions: each action sends its request or fails with an error of the right kind.
func TestOtherActions(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	d, in := s.up(t)
	theirs := s.Say(hallID, annID, "hello")
	in.wait(t, core.KindMessage, 1)
	if _, err := act(t, d, "message_discord", map[string]any{"text": "first"}); err != nil {
		t.Fatal(err)
	}
	mine := s.Messages(hallID)[0].ID
	s.ChangeGuild(guildID, func(g *discordtest.Guild) { g.Roles[2].Power = discordtest.MayManage })
	forum := func(c *core.Call) { c.Path = core.MustPath("discord/" + guildID + "/" + forumID) }
	moderator := func(c *core.Call) { c.Author.Rank = core.RankModerator }
	for _, c := range []struct {
		name, action string
		payload      map[string]any
		want         core.ErrorKind
		request      string
		change       []func(*core.Call)
	}{
		{"edit", "edit_discord", map[string]any{"message_id": mine, "text": "**second**"}, "", "PATCH /channels/" + hallID + "/messages/" + mine, nil},
		{"edit another's", "edit_discord", map[string]any{"message_id": theirs, "text": "x"}, core.Broken, "", nil},
		{"edit too long", "edit_discord", map[string]any{"message_id": mine, "text": strings.Repeat("word ", 900)}, core.Invalid, "", nil},
		{"react", "react_discord", map[string]any{"message_id": theirs, "emoji": "👍"}, "", "PUT /channels/" + hallID + "/messages/" + theirs + "/reactions/👍/@me", nil},
		{"react with a server's", "react_discord", map[string]any{"message_id": theirs, "emoji": "<:wave:771234567890123456>"}, "", "PUT /channels/" + hallID + "/messages/" + theirs + "/reactions/wave:771234567890123456/@me", nil},
		{"react to nothing", "react_discord", map[string]any{"message_id": "5", "emoji": "👍"}, core.Broken, "", nil},
		{"delete another's", "delete_discord", map[string]any{"message_id": theirs}, core.Forbidden, "", nil},
		{"delete what is not a message", "delete_discord", map[string]any{"message_id": ".."}, core.Invalid, "", []func(*core.Call){moderator}},
		{"delete as moderator", "delete_discord", map[string]any{"message_id": theirs}, "", "DELETE /channels/" + hallID + "/messages/" + theirs, []func(*core.Call){moderator}},
		{"delete", "delete_discord", map[string]any{"message_id": mine}, "", "DELETE /channels/" + hallID + "/messages/" + mine, nil},
		{"file", "file_discord", map[string]any{"name": "../../etc/a b.py", "content": "print(1)", "text": "here"}, "", "POST /channels/" + hallID + "/messages", nil},
		{"poll", "poll_discord", map[string]any{"question": "Which?", "answers": []string{"a", "b"}, "hours": 2}, "", "POST /channels/" + hallID + "/messages", nil},
		{"thread", "thread_discord", map[string]any{"name": "Trip", "text": "go"}, "", "POST /channels/" + hallID + "/threads", nil},
		{"post", "thread_discord", map[string]any{"name": "Rules", "text": "be kind"}, "", "POST /channels/" + forumID + "/threads", []func(*core.Call){forum}},
		{"post without text", "thread_discord", map[string]any{"name": "Rules"}, core.Invalid, "", []func(*core.Call){forum}},
		{"thread in private", "thread_discord", map[string]any{"name": "x", "interface_path": "discord/@me/" + dmID}, core.Invalid, "", nil},
		{"reply to what is not a message", "message_discord", map[string]any{"text": "x", "reply_to_message_id": "the last one"}, "", "POST /channels/" + hallID + "/messages", nil},
	} {
		before := len(s.Calls(c.request))
		got, err := act(t, d, c.action, c.payload, c.change...)
		if kind(err) != c.want {
			t.Errorf("%s: got %v, want %q", c.name, err, c.want)
		}
		if c.request != "" && len(s.Calls(c.request)) == before {
			t.Errorf("%s: no request %s", c.name, c.request)
		}
		if c.name == "thread" && (len(got.Next) != 1 || !strings.Contains(string(got.Output), hallID)) {
			t.Errorf("thread: got %+v, want a path within the channel", got)
		}
	}
	if sent := s.Messages(hallID)[0]; len(sent.Files) != 1 || sent.Files[0].Name != "a_b.py" || sent.Text != "here" {
		t.Errorf("file: got %+v", sent)
	}
	if closed := d.closed.refused(hallID); closed != nil {
		t.Errorf("the channel counts as closed: %v", closed)
	}
}

// TestInvalidPaths: no channel can be reached by a path with its id below another channel or in another
// guild, in whatever way a message is sent.
func TestInvalidPaths(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	d, _ := s.up(t)
	for path, ok := range map[string]bool{
		guildID + "/" + roomID: true, guildID + "/" + hallID + "/" + topicID: true, "@me/" + dmID: true,
		guildID + "/" + hallID + "/" + roomID: false, guildID + "/" + roomID + "/" + topicID: false, guildID + "/" + topicID: false,
		"5/" + roomID: false, "@me/" + roomID: false, "@me/" + dmID + "/" + roomID: false, guildID + "/" + hallID + "/" + dmID: false, guildID + "/" + dmID: false,
	} {
		path := core.MustPath("discord/" + path)
		_, acted := act(t, d, "message_discord", map[string]any{"text": "acted", "interface_path": path.String()})
		_, reacted := act(t, d, "react_discord", map[string]any{"message_id": "5", "emoji": "👍", "interface_path": path.String()})
		notified := d.Tell(t.Context(), path, "notice")
		sent := d.SendFile(t.Context(), &journal{base: path.String()[:3]}, 1, core.Sent{Path: path}, core.Upload{Name: "x.txt", Data: []byte("x")})
		for way, err := range map[string]error{"action": acted, "message outside of turns": notified, "file": sent} {
			if ok != (err == nil) || !ok && kind(err) != core.Invalid {
				t.Errorf("%s to %s: got %v, want success: %v", way, path, err, ok)
			}
		}
		if !ok && kind(reacted) != core.Invalid {
			t.Errorf("reaction in %s: got %v, want an invalid request", path, reacted)
		}
	}
	if n := len(s.Calls("GET /channels/" + dmID)); n > 2 { // the intake asks as well
		t.Errorf("the private channel was requested %d times, want at most 2", n)
	}
}

// TestEditJoinsTheHistory: an edit of the bot's own message is received as an event with the text as the
// model wrote it.
func TestEditJoinsTheHistory(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	d, in := s.up(t)
	if _, err := act(t, d, "message_discord", map[string]any{"text": "on snake_day"}); err != nil {
		t.Fatal(err)
	}
	mine := s.Messages(hallID)[0].ID
	if _, err := act(t, d, "edit_discord", map[string]any{"message_id": mine, "text": "on snake_night "}); err != nil {
		t.Fatal(err)
	}
	if m := in.wait(t, core.KindEdit, 1)[0].Message; m.ID != mine || m.Path != hall() || m.Text != "on snake_night" {
		t.Errorf("got %+v, want the edited text", m)
	}
	if _, err := act(t, d, "edit_discord", map[string]any{"message_id": "5", "text": "x"}); err == nil || len(in.wait(t, core.KindEdit, 1)) != 1 {
		t.Errorf("an unknown message: got %v, want an error and no event", err)
	}
}

// TestActionsAreWellFormed: every action has a short description, examples and instructions.
func TestActionsAreWellFormed(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	for _, a := range s.bot(t).Actions() {
		if len(a.Brief) >= 100 || len(a.Examples.Examples) == 0 || a.Examples.Instructions.WhenToUse == "" || a.Do == nil {
			t.Errorf("%s: the description is too long, or something is missing: %+v", a.Name, a.Examples)
		}
	}
}

// TestTyping: typing is shown again and again until the context ends.
func TestTyping(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	d := s.bot(t)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { d.ShowTyping(ctx, core.MustPath("discord/"+guildID+"/"+hallID)); close(done) }()
	until(t, "typing is kept up", func() bool { return s.Typing(hallID) > 2 })
	cancel()
	<-done
	n := s.Typing(hallID)
	d.ShowTyping(ctx, core.MustPath("discord/"+guildID+"/"+hallID))
	if got := s.Typing(hallID); got != n {
		t.Errorf("got %d typing requests after the end, want 0", got-n)
	}
}

// TestFetch: attachments are fetched from the platform only, with a new signature if theirs has expired.
func TestFetch(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	d := s.bot(t)
	ref := strings.TrimPrefix(s.AddFile("a.txt", []byte("a file")), s.URL)
	got, err := d.Fetch(t.Context(), core.Attachment{Name: "a", Ref: ref}, 100)
	if err != nil || string(got) != "a file" {
		t.Errorf("got %q, %v", got, err)
	}
	for _, ref := range []string{"", "http://evil/attachments/1", "//evil/attachments/1", "attachments/1", "/attachments/../api/v9/users/@me"} {
		if _, err := d.Fetch(t.Context(), core.Attachment{Ref: ref}, 100); kind(err) != core.Invalid {
			t.Errorf("%q: got %v, want an invalid request", ref, err)
		}
	}
	if _, err := d.Fetch(t.Context(), core.Attachment{Ref: ref}, 3); kind(err) != core.Invalid {
		t.Errorf("too large: got %v, want an invalid request", err)
	}
	old, _, _ := strings.Cut(ref, "?")
	if got, err := d.Fetch(t.Context(), core.Attachment{Ref: old + "?ex=1&is=1&hm=1"}, 100); err != nil || string(got) != "a file" {
		t.Errorf("with an expired signature: got %q, %v", got, err)
	}
	if _, err := d.Fetch(t.Context(), core.Attachment{Ref: "/attachments/1/2/gone.txt"}, 100); kind(err) != core.Broken {
		t.Errorf("a deleted file: got %v, want an error of the interface", err)
	}
}

// TestTokenNeverShows: errors contain neither the bot token nor the token of an interaction.
func TestTokenNeverShows(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	d := s.bot(t)
	d.rest.API, _ = url.Parse("http://127.0.0.1:1")
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	err := d.rest.Do(ctx, rest.Request{Method: "POST", Route: "/interactions/{}/{}/callback", IDs: []string{"1", "SECRET"}, Body: 1, Fast: true, Once: true})
	if err == nil || strings.Contains(err.Error(), "SECRET") || strings.Contains(err.Error(), "T0ken") {
		t.Errorf("got %v, want an error without tokens", err)
	}
}

// TestSuggestionsAreButtons: suggested replies become buttons, without doubles, blank and overlong ones.
func TestSuggestionsAreButtons(t *testing.T) {
	s := messagePayload{Buttons: []button{{Label: "Yes"}}, Suggest: []string{"Yes", "Tell me  more", " ", strings.Repeat("long ", 20)}}
	want := []button{{Label: "Yes"}, {Label: "Tell me more"}}
	if got := s.buttons(); !slices.Equal(got, want) {
		t.Errorf("got buttons %+v, want %+v", got, want)
	}
}

// TestOutcomeOfAFailedRequest: a request that was only refused or rate limited was certainly not carried
// out. If an earlier attempt may have succeeded, the outcome is unknown.
func TestOutcomeOfAFailedRequest(t *testing.T) {
	for name, c := range map[string]struct {
		faults []discordtest.Fault
		once   bool
		unsure bool
	}{
		"limited for longer":     {[]discordtest.Fault{{Kind: discordtest.Limited, After: time.Minute}}, false, false},
		"globally, for longer":   {[]discordtest.Fault{{Kind: discordtest.Global, After: time.Minute}}, false, false},
		"refused":                {[]discordtest.Fault{{Kind: discordtest.Refused}}, false, false},
		"lost, then limited":     {[]discordtest.Fault{{Kind: discordtest.ResetAfter}, {Kind: discordtest.Limited, After: time.Minute}}, false, true},
		"lost, then refused":     {[]discordtest.Fault{{Kind: discordtest.ResetAfter}, {Kind: discordtest.Refused}}, false, true},
		"lost":                   {[]discordtest.Fault{{Kind: discordtest.ResetAfter}}, true, true},
		"no answer":              {[]discordtest.Fault{{Kind: discordtest.Hang}}, false, true},
		"a gateway, then forbid": {[]discordtest.Fault{{Kind: discordtest.Broken}, {Kind: discordtest.Refused}}, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, s *server) {
				s.FailNext("POST /channels/", c.faults...)
				ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
				defer cancel()
				err := s.bot(t).rest.Do(ctx, rest.Request{
					Method: "POST", Route: "/channels/{}/messages", IDs: []string{hallID}, Body: map[string]any{"content": "x", "allowed_mentions": noMentions()}, Once: c.once,
				})
				if err == nil || rest.OutcomeUnknown(err) != c.unsure {
					t.Errorf("got %v, outcome unknown: %v, want %v", err, rest.OutcomeUnknown(err), c.unsure)
				}
			})
		})
	}
	inBubble(t, func(t *testing.T, s *server) {
		d := s.bot(t, func(o *Options) {
			o.Dial = func(context.Context, string, string) (net.Conn, error) { return nil, errors.New("no way") }
		})
		if err := d.rest.Do(t.Context(), rest.Request{Method: "GET", Route: "/users/@me"}); rest.OutcomeUnknown(err) || rest.Refused(err) || !errors.Is(err, core.ErrAway) {
			t.Errorf("no connection: got %v, want an unreachable platform", err)
		}
	})
}

// TestSendThatIsRefusedAfterItWasLost: if an attempt to send may have succeeded, a later refusal leaves the
// outcome unknown and does not close the channel.
func TestSendThatIsRefusedAfterItWasLost(t *testing.T) {
	inBubble(t, func(t *testing.T, s *server) {
		s.FailNext("POST /channels/", discordtest.Fault{Kind: discordtest.ResetAfter}, discordtest.Fault{Kind: discordtest.Refused, Status: 403, Code: 50001})
		d := s.bot(t)
		if _, err := act(t, d, "message_discord", map[string]any{"text": "x"}); !rest.OutcomeUnknown(err) || kind(err) != core.Temporary {
			t.Errorf("got %v, want an unknown outcome", err)
		}
		if err := d.closed.refused(hallID); err != nil {
			t.Errorf("the channel counts as closed: %v", err)
		}
	})
}

// TestLinksAreNotUnfurled: link previews are off in every kind of message, unless the configuration turns
// them on, because the platform would fetch links that a model writes. The bot's embeds are always shown.
func TestLinksAreNotUnfurled(t *testing.T) {
	for _, previews := range []bool{false, true} {
		t.Run(fmt.Sprint(previews), func(t *testing.T) {
			inBubble(t, func(t *testing.T, s *server) {
				d := s.bot(t, func(o *Options) { o.Config.Previews, o.Config.LongAnswers, o.Config.LongParts = previews, "file", 3 })
				at := hall()
				link := "See https://example.org/?q=secret"
				rome := []any{map[string]any{"title": "Rome", "description": link}}
				d.Draft(at, link)
				within(t, time.Minute, "a draft", func() bool { return len(s.Messages(hallID)) == 1 })
				d.Draft(at, link+"!")
				within(t, time.Minute, "a longer draft", func() bool { return strings.HasSuffix(s.Texts(hallID)[0], "! ▍") })
				say := func(payload map[string]any) {
					t.Helper()
					if _, err := act(t, d, "message_discord", payload); err != nil {
						t.Fatal(err)
					}
				}
				say(map[string]any{"text": link})
				say(map[string]any{"text": strings.Repeat(link+"\n", 100), "silent": true})
				say(map[string]any{"text": link, "embeds": rome})
				say(map[string]any{"text": strings.Repeat(link+"\n", 100), "embeds": rome})
				say(map[string]any{"text": strings.Repeat(link+"\n", 1000), "embeds": rome})
				say(map[string]any{"text": "https://example.org/?q=secret" + strings.Repeat("x", 9000), "embeds": rome})
				say(map[string]any{"text": "Nothing to see.", "embeds": rome})
				say(map[string]any{"text": "Nothing to see."})
				for _, m := range s.Messages(hallID) {
					if m.Text != "Nothing to see." {
						continue
					}
					if _, err := act(t, d, "edit_discord", map[string]any{"message_id": m.ID, "text": "[Rome](https://example.org/?q=secret)"}); err != nil {
						t.Fatal(err)
					}
				}
				if err := d.Choose(t.Context(), &journal{base: "q"}, core.Sent{Path: at, Text: link}, nil); err != nil {
					t.Fatal(err)
				}
				if err := d.SendFile(t.Context(), &journal{base: "f"}, 1, core.Sent{Path: at, Text: link}, core.Upload{Name: "a.txt", Data: []byte("x")}); err != nil {
					t.Fatal(err)
				}
				if err := d.Tell(t.Context(), at, link); err != nil {
					t.Fatal(err)
				}
				all, embeds := s.Messages(hallID), 0
				for _, m := range all {
					// A question never has previews.
					if want := previews && strings.Contains(m.Text, "https://"); (len(m.Previews) > 0) != want {
						t.Errorf("previews %v: %q has the previews %q", previews, m.Text, m.Previews)
					}
					if strings.Contains(string(m.Embeds), "Rome") {
						if embeds++; m.Plain {
							t.Errorf("previews %v: the embeds of %q are hidden", previews, m.Text)
						}
					}
				}
				if n := strings.Count(strings.Join(s.Texts(hallID), " "), "secret"); embeds != 5 || n < 210 {
					t.Errorf("previews %v: got %d messages with embeds and %d links, want 5 and at least 210", previews, embeds, n)
				}
				d.tasks.Close()
			})
		})
	}
}

// TestMessageIDs: a message id may be a number or a string. Other values become empty.
func TestMessageIDs(t *testing.T) {
	for raw, want := range map[string]messageID{
		`5`: "5", `"5"`: "5", `" 5 "`: "5", `"771234567890123456"`: "771234567890123456", `null`: "", `""`: "", `"the last"`: "", `1.5`: "", `-1`: "",
		`"123456789012345678901"`: "", `"../5"`: "", `{}`: "",
	} {
		got := messageID("before")
		if err := json.Unmarshal([]byte(raw), &got); err != nil || got != want {
			t.Errorf("%s: got %q, %v, want %q", raw, got, err, want)
		}
	}
}

// TestLocate: the place of a channel that the gateway did not announce is requested once, unless it is
// stored. The cache of such places is bounded.
func TestLocate(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	d := s.bot(t)
	asked := func(want int) {
		t.Helper()
		if n := len(s.Calls("GET /channels/")); n != want {
			t.Errorf("got %d requests, want %d", n, want)
		}
	}
	for range 2 {
		p, err := d.locate(t.Context(), topicID, rest.MaxTries)
		if err != nil || p.Guild != guildID || p.Parent != hallID || !p.thread() {
			t.Errorf("got %+v, %v, want a thread of #hall", p, err)
		}
		asked(1)
	}
	d.cursors.recordStored(roomID, place{Guild: "7"}, "5", time.Now(), false)
	if p, err := d.locate(t.Context(), roomID, rest.MaxTries); err != nil || p.Guild != "7" {
		t.Errorf("got %+v, %v, want the stored place", p, err)
	}
	asked(1)
	if _, err := d.locate(t.Context(), "5", rest.MaxTries); err == nil {
		t.Error("an unknown channel was located")
	}
	asked(2)
	for range 2 { // an invisible channel is requested once
		if _, err := d.checkedChannel(t.Context(), core.MustPath("discord/"+guildID+"/6")); kind(err) != core.Broken {
			t.Errorf("got %v, want an error of the interface", err)
		}
		asked(3)
	}
	for i := range 5 * maxRecent {
		d.cache.lookedUp.Put(fmt.Sprint("x", i), place{})
	}
	_, kept := d.cache.lookedUp.Get("x0")
	if _, err := d.locate(t.Context(), hallID, rest.MaxTries); err != nil || kept {
		t.Errorf("%v; the oldest of many places is still cached: %t", err, kept)
	}
}

// TestPings: a message pings only the user it replies to, and no one if it is silent.
func TestPings(t *testing.T) {
	d := offlineIntake(t).d
	for want, s := range map[string]messagePayload{
		"map[parse:[]]":                   {Text: "x"},
		"map[parse:[] replied_user:true]": {Text: "x", ReplyTo: "5"},
		"map[parse:[]] ":                  {Text: "x", ReplyTo: "5", Silent: true},
	} {
		list, err := d.compose(core.Call{}, &s)
		if err != nil || fmt.Sprint(list[0].Mentions) != strings.TrimSpace(want) {
			t.Errorf("%+v: got mentions %v, %v, want %s", s, list[0].Mentions, err, want)
		}
	}
}
