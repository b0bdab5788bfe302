package commands

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"synthbot/core/coretest"
	"synthbot/interfaces/discord/discordtest"
)

// onDiscord returns a configuration with one Discord account and a model at the URL, followed by more.
func onDiscord(s *discordtest.Server, model, more string) string {
	return fmt.Sprintf(`
[bot]
data_dir = "data"
attention = "0s"
admins = ["discord/@user/%s"]
[[engine]]
provider = "vllm"
model = "m"
base_url = %q
stream = false
[access]
per_minute = 0
[budget]
person_tokens = 0
bot_tokens = 0
[plugins.memory]
extract = false
%s%s`, discordtest.OwnerID, model, discordTable(s), more)
}

// discordTable returns the configuration of a Discord account.
func discordTable(s *discordtest.Server) string {
	return fmt.Sprintf("[interfaces.discord]\ntoken = %q\napi_url = %q\ncdn_url = %q\npace = \"off\"\n",
		discordtest.Token, s.URL, s.URL)
}

// awaitText waits until the bot has sent the text to a channel.
func awaitText(t *testing.T, s *discordtest.Server, channel, text string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), coretest.Patience)
	defer cancel()
	if !s.Await(ctx, func() bool { return slices.Contains(s.Texts(channel), text) }) {
		t.Fatalf("channel %s: got %q, want %q among them", channel, s.Texts(channel), text)
	}
}

// TestDiscordWhenToAnswer checks which messages the program answers on Discord, by guild, category, channel,
// thread, author and mention. A second account lacks the message content intent.
func TestDiscordWhenToAnswer(t *testing.T) {
	first, second := discordtest.New(t), discordtest.New(t)
	const (
		other, lobby = "800000000000000077", "800000000000000078"
		side         = "800000000000000079" // in the category of HallID
		mention      = " <@" + discordtest.BotID + ">"
		role         = " <@&" + discordtest.BotRole + ">"
	)
	first.AddGuild(other, nil)
	first.AddChannel(discordtest.Channel{ID: lobby, Guild: other, Name: "lobby"})
	first.AddChannel(discordtest.Channel{ID: side, Guild: discordtest.GuildID, Parent: discordtest.CategoryID, Name: "side"})
	first.AddPerson(discordtest.Person{ID: "71", Bot: true})
	second.Gateway(func(g *discordtest.Settings) { g.Intents = (1<<26 - 1) &^ (1 << 15) })
	d := startDaemon(t, onDiscord(first, newEchoModel(t), fmt.Sprintf(`
[interfaces.second]
type = "discord"
token = %q
api_url = %q
cdn_url = %q
pace = "off"
[[override]]
path = "discord/%s"
activation = "always"
[[override]]
path = "discord/%[4]s/%s"
activation = "mention"
[[override]]
path = "discord/%[4]s/%[6]s/%[7]s"
activation = "never"
[[override]]
path = "discord/%[4]s/%[8]s"
activation = "always"
`, discordtest.Token, second.URL, second.URL, discordtest.GuildID, discordtest.CategoryID, discordtest.HallID, discordtest.TopicID, side)))
	d.awaitNotice("READY")
	for _, s := range []*discordtest.Server{first, second} {
		ctx, cancel := context.WithTimeout(t.Context(), coretest.Patience)
		defer cancel()
		if !s.Await(ctx, func() bool { return s.Live() > 0 }) {
			t.Fatal("an account does not connect")
		}
	}
	for _, c := range []struct {
		name    string
		server  *discordtest.Server
		channel string
		who     string
		text    string
		answers bool
	}{
		{"a guild where everything is answered", first, discordtest.VoiceID, discordtest.AnnID, "m1", true},
		{"another bot there", first, discordtest.VoiceID, "71", "m2", false},
		{"and a person again", first, discordtest.VoiceID, discordtest.AnnID, "m3", true},
		{"a channel of a category that wants mentions", first, discordtest.HallID, discordtest.AnnID, "m4", false},
		{"a channel of that category that is itself named", first, side, discordtest.AnnID, "m20", true},
		{"a mention", first, discordtest.HallID, discordtest.AnnID, "m5" + mention, true},
		{"a role", first, discordtest.HallID, discordtest.AnnID, "m6" + role, true},
		{"everyone", first, discordtest.HallID, discordtest.AnnID, "m7 @everyone", false},
		{"its name", first, discordtest.HallID, discordtest.AnnID, "Aria, m8", true},
		{"a thread where nothing is answered", first, discordtest.TopicID, discordtest.AnnID, "m9" + mention, false},
		{"another guild", first, lobby, discordtest.AnnID, "m10", false},
		{"a mention there", first, lobby, discordtest.AnnID, "m11" + mention, true},
		{"in private", first, discordtest.DirectID, discordtest.AnnID, "m12", true},
		{"a group", first, discordtest.GroupID, discordtest.AnnID, "m13", false},
		{"a mention in it", first, discordtest.GroupID, discordtest.AnnID, "m14" + mention, true},
		{"the other account, blind", second, discordtest.HallID, discordtest.AnnID, "Aria, m15", false},
		{"a mention of it", second, discordtest.HallID, discordtest.AnnID, "m16" + mention, true},
		{"it in private", second, discordtest.DirectID, discordtest.AnnID, "m17", true},
	} {
		word := messageNames(c.text)[0]
		c.server.Say(c.channel, c.who, c.text)
		if c.answers {
			awaitText(t, c.server, c.channel, "re "+word)
		}
		for _, s := range []*discordtest.Server{first, second} {
			for _, channel := range []string{c.channel, discordtest.TopicID, discordtest.VoiceID} {
				if text := strings.Join(s.Texts(channel), "\n") + "\n"; strings.Contains(text, word+"\n") && (!c.answers || s != c.server) {
					t.Errorf("%s: answered = %t: account and channel have %q", c.name, !c.answers, text)
				}
			}
		}
	}
	id := second.Say(discordtest.HallID, discordtest.AnnID, "m18", discordtest.Saying{ReplyTo: second.Messages(discordtest.HallID)[0].ID})
	awaitText(t, second, discordtest.HallID, "re m18")
	if last := second.Messages(discordtest.HallID); len(last) != 2 {
		t.Errorf("the reply to %s: messages %+v, want two", id, last)
	}
	told := strings.Join(first.Texts(first.DirectOf(discordtest.OwnerID)), "\n")
	if strings.Count(told, "message content intent") != 1 {
		t.Errorf("the admin was sent %q, want one mention of the message content intent", told)
	}
	d.end()
}

// TestDiscordKill kills the program after Discord has received a message and before its outcome is stored, and
// Discord forgets the nonce. After the restart the message appears exactly once.
func TestDiscordKill(t *testing.T) {
	if testing.Short() {
		t.Skip("kills the program")
	}
	const place = discordtest.DirectID
	say := func(text string) func(*discordtest.Server) error {
		return func(s *discordtest.Server) error { s.Say(place, discordtest.AnnID, text); return nil }
	}
	command := func(s *discordtest.Server) error {
		_, err := s.Command(place, discordtest.AnnID, "id", nil)
		return err
	}
	for name, c := range map[string]struct {
		say   func(*discordtest.Server) error
		route string
		nth   int      // the request that gets no response
		want  []string // texts that must appear exactly once
	}{
		"a word":                      {say("m0"), "POST /channels/" + place + "/messages", 1, []string{"re m0"}},
		"the middle of a long answer": {say("m1"), "POST /channels/" + place + "/messages", 2, []string{"re m1", "m1 part 1", "m1 part 2", "m1 part 3"}},
		"a command":                   {command, "PATCH /webhooks/" + discordtest.AppID, 1, []string{"discord/@me/" + place}},
	} {
		t.Run(name, func(t *testing.T) {
			s := discordtest.New(t)
			s.HonourNonces(0)
			k := newDiscordRun(t, s)
			kill := k.start()
			k.until("connected", func() bool { return s.Live() > 0 && len(s.Calls("PUT /applications/")) > 0 })
			seen, hangs := 0, make(chan struct{})
			s.Fail(func(call discordtest.Call) discordtest.Fault {
				if call.Is(c.route) {
					seen++
				}
				if seen != c.nth || !call.Is(c.route) {
					return discordtest.Fault{}
				}
				close(hangs)
				return discordtest.Fault{Kind: discordtest.HangAfter}
			})
			if err := c.say(s); err != nil {
				t.Fatal(err)
			}
			select {
			case <-hangs:
			case <-time.After(coretest.Patience):
				t.Fatal("the bot sends nothing")
			}
			k.until("the message has arrived", func() bool { return len(s.Texts(place)) == c.nth })
			kill()
			s.Fail(nil)
			time.Sleep(time.Second) // the bot must find a message that is some time old
			defer k.start()()
			all := func() string { return strings.Join(s.Texts(place), "\n") + "\n" }
			k.until("everything was sent", func() bool {
				return !slices.ContainsFunc(c.want, func(w string) bool { return !strings.Contains(all(), w) })
			})
			// A duplicate would arrive before the answer to the next message.
			s.Say(place, discordtest.AnnID, "m5")
			k.until("another answer", func() bool { return strings.HasSuffix(all(), "re m5\n") })
			if n := strings.Count(all(), "so"); n != 0 && n != 900 {
				t.Errorf("a long answer has %d of its 900 words", n)
			}
			for _, w := range c.want {
				if n := strings.Count(all(), w); n != 1 {
					t.Errorf("%q appears %d times in %.300q, want once", w, n, all())
				}
			}
		})
	}
}

// discordRun runs and kills the program on Discord.
type discordRun struct {
	*testing.T
	s    *discordtest.Server
	file string
	log  *os.File
}

func newDiscordRun(t *testing.T, s *discordtest.Server) *discordRun {
	t.Helper()
	dir := t.TempDir()
	k := &discordRun{T: t, s: s, file: filepath.Join(dir, "config.toml")}
	write(t, k.file, onDiscord(s, newMannersModel(t), ""))
	var err error
	if k.log, err = os.Create(filepath.Join(dir, "log")); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { k.log.Close() })
	return k
}

func (k *discordRun) start() (kill func()) {
	k.Helper()
	c := synthbotCommand(k, "run", "-c", k.file)
	c.Stdout, c.Stderr = k.log, k.log
	if err := c.Start(); err != nil {
		k.Fatal(err)
	}
	return func() {
		_ = c.Process.Kill()
		_ = c.Wait() // killed
	}
}

// until waits until a condition holds on the platform.
func (k *discordRun) until(what string, ok func() bool) {
	k.Helper()
	ctx, cancel := context.WithTimeout(k.Context(), coretest.Patience)
	defer cancel()
	if !k.s.Await(ctx, ok) {
		raw, _ := os.ReadFile(k.log.Name())
		k.Fatalf("not in time: %s\n%s", what, raw[max(0, len(raw)-4000):])
	}
}
