package discord

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"synthbot/core"
	"synthbot/core/command"
	"synthbot/core/driver"
	"synthbot/interfaces/discord/discordtest"
	"synthbot/interfaces/discord/rest"
)

// syncCommands runs a driver until its commands are registered.
func (s *server) syncCommands(t *testing.T, state driver.State, change func(*Options)) {
	t.Helper()
	d, in := s.bot(t, func(o *Options) { o.State, o.Commands = state, registry; change(o) }), newInbox()
	stop := s.listen(t, d, in)
	until(t, "synchronised", func() bool {
		raw, _ := state.Get(context.Background(), syncKey)
		stored, want := map[string]string{}, map[string]string{}
		_ = json.Unmarshal(raw, &stored)
		for _, g := range append([]string{""}, d.set.CommandGuilds...) {
			if list := d.responder.list(g); len(list) > 0 {
				body, _ := json.Marshal(list)
				_, app := d.cache.bot()
				sum := sha256.Sum256(append(body, app...))
				want[g] = hex.EncodeToString(sum[:])
			}
		}
		return d.cache.known(guildID) && maps.Equal(stored, want)
	})
	if err := stop(); err != nil {
		t.Fatal(err)
	}
}

// TestCommandsAreSynchronisedWhenTheyChanged: commands are registered only if they changed.
func TestCommandsAreSynchronisedWhenTheyChanged(t *testing.T) {
	inBubble(t, checkSynchronised)
}

func checkSynchronised(t *testing.T, s *server) {
	state := newState()
	syncs := func() int { return len(s.Calls("PUT /applications/")) }
	same := func(*Options) {}
	for _, step := range []struct {
		what   string
		change func(*Options)
		more   int
	}{
		{"the first time", same, 1},
		{"the same", same, 0},
		{"for one guild", func(o *Options) { o.Config.CommandGuilds = []string{guildID} }, 2},
		{"the same for the guild", func(o *Options) { o.Config.CommandGuilds = []string{guildID} }, 0},
		{"for everywhere again", same, 2},
		{"other words", func(o *Options) { o.Commands = otherBriefs }, 1},
		{"none", func(o *Options) { o.Commands = nil }, 1},
		{"none again", func(o *Options) { o.Commands = nil }, 0},
	} {
		time.Sleep(time.Minute)
		before := syncs()
		s.syncCommands(t, state, step.change)
		if n := syncs() - before; n != step.more {
			t.Errorf("%s: registered %d times, want %d", step.what, n, step.more)
		}
	}
	if all := append(s.Commands(""), s.Commands(guildID)...); len(all) != 0 {
		t.Errorf("got %v, want no commands", all)
	}
}

// TestCommandsWhereTheyBelong: commands are registered globally or for one guild, and users see
// those that they may call in a place.
func TestCommandsWhereTheyBelong(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		guilds        []string
		global, guild string
	}{
		"everywhere": {nil, "forget,help,mine,remember,sleep,zone,> Remember this", ""},
		"one guild":  {[]string{guildID}, "forget,help,mine,remember,sleep,zone,> Remember this", "forget,help,remember,sleep,zone,> Remember this"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newServer(t)
			s.syncCommands(t, newState(), func(o *Options) {
				mine := command.Spec{Name: "mine", Brief: "Show what is kept of you", Private: true}
				o.Commands = func() []command.Spec { return append(registry(), mine) }
				o.Config.CommandGuilds = c.guilds
			})
			if got := strings.Join(s.Commands(""), ","); got != c.global {
				t.Errorf("globally: got %s, want %s", got, c.global)
			}
			if got := strings.Join(s.Commands(guildID), ","); got != c.guild {
				t.Errorf("in the guild: got %s, want %s", got, c.guild)
			}
			for channel, want := range map[string]string{hallID: "forget,help,remember", dmID: "forget,help,mine,remember,sleep,zone", groupID: "forget,help,remember,sleep,zone"} {
				var can []string
				for _, name := range []string{"forget", "help", "mine", "remember", "sleep", "zone"} {
					if _, err := s.Command(channel, annID, name, map[string]string{"what": "x"}); err == nil {
						can = append(can, name)
					}
				}
				if got := strings.Join(can, ","); got != want {
					t.Errorf("%s: got %s, want %s", channel, got, want)
				}
			}
			if _, err := s.Command(hallID, bobID, "sleep", nil); err != nil {
				t.Errorf("a moderator cannot call sleep: %v", err)
			}
		})
	}
}

// TestCommandsAreWrittenAsThePlatformWants: commands have the options, permissions, languages and
// contexts of the platform's format.
func TestCommandsAreWrittenAsThePlatformWants(t *testing.T) {
	d := offlineIntake(t).d
	raw, _ := json.Marshal(d.responder.list(""))
	var list []appCommand
	if err := json.Unmarshal(raw, &list); err != nil {
		t.Fatal(err)
	}
	if f := list[0].Options; !f[0].Required || f[0].Name != "what" || len(f[1].Choices) != 2 {
		t.Errorf("options of forget: got %+v, want what, required, before who with two choices", f)
	}
	if z := list[4]; !z.Options[0].Complete || len(z.Options[0].Choices) > 0 || *z.Permission != "8" || *list[3].Permission != "8192" || list[1].Permission != nil {
		t.Errorf("got %s, want a completed option of zone, and permissions for zone and sleep", raw)
	}
	if b := list[1].Briefs; b["it"] == "" || len(b) != 1 {
		t.Errorf("languages of help: got %v, want only it", b)
	}
	everywhere := []int{inGuilds, inDirect, inGroups}
	if m := list[5]; m.Name != menuName || m.Type != typeMessage || !slices.Equal(m.Contexts, everywhere) {
		t.Errorf("message command: got %+v", m)
	}
}

// TestCommandsOfAClosedGuild: if one guild refuses commands, admins are notified, and the commands
// of other guilds are still registered.
func TestCommandsOfAClosedGuild(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	notices := make(chan string, 10)
	s.Fail(func(c discordtest.Call) discordtest.Fault {
		if c.Is("PUT /applications/" + appID + "/guilds/5/") {
			return discordtest.Fault{Kind: discordtest.Refused, Status: 403, Code: 50001}
		}
		return discordtest.Fault{}
	})
	s.up(t, func(o *Options) {
		o.Commands, o.Config.CommandGuilds = registry, []string{"5", guildID}
		o.Admin = func(text string) { notices <- text }
	})
	until(t, "the other guild's", func() bool { return len(s.Commands(guildID)) > 0 })
	if text := <-notices; !strings.Contains(text, "applications.commands") {
		t.Errorf("admins received %q, want a mention of the scope", text)
	}
}

// TestCommandsAreRegisteredUntilAccepted: commands that cannot be registered when the bot connects
// are registered later. Those that were accepted are not sent again.
func TestCommandsAreRegisteredUntilAccepted(t *testing.T) {
	for name, c := range map[string]struct {
		fault discordtest.Fault
		times int32
	}{
		"outage": {discordtest.Fault{Kind: discordtest.Broken}, rest.MaxTries}, "closed": {discordtest.Fault{Kind: discordtest.Refused, Code: 50001}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newServer(t)
			var tries atomic.Int32
			s.Fail(func(call discordtest.Call) discordtest.Fault {
				if call.Is("PUT /applications/"+appID+"/guilds/") && tries.Add(1) <= c.times {
					return c.fault
				}
				return discordtest.Fault{}
			})
			s.up(t, func(o *Options) { o.Commands, o.Config.CommandGuilds = registry, []string{guildID} })
			until(t, "the guild's", func() bool { return len(s.Commands(guildID)) > 0 })
			if n := len(s.Calls("PUT /applications/" + appID + "/commands")); n != 1 {
				t.Errorf("the global commands were registered %d times, want 1", n)
			}
		})
	}
}

// TestAsManyCommandsAsAllowed: Discord counts those of the context menu apart.
func TestAsManyCommandsAsAllowed(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	s.up(t, func(o *Options) {
		o.Commands = func() []command.Spec {
			all := []command.Spec{{Name: menuCommand, Brief: "Remember it"}}
			for n := range maxCommands {
				all = append(all, command.Spec{Name: fmt.Sprint("do", n), Brief: "Do it"})
			}
			return all
		}
	})
	until(t, "all commands", func() bool { return len(s.Commands("")) == 101 })
}

// TestMenuRemembers: the message command calls remember with the text of that message as foreign content.
func TestMenuRemembers(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	_, in := s.up(t, func(o *Options) { o.Commands = registry })
	said := s.Say(hallID, bobID, "Ann likes <#"+roomID+">")
	var id string
	until(t, "the menu", func() bool {
		var err error
		id, err = s.Menu(hallID, annID, menuName, said)
		return err == nil
	})
	e := in.wait(t, core.KindCommand, 1)[0]
	theirs := e.Message.Foreign
	if len(theirs) != 1 || theirs[0].Text != "Ann likes #room" || theirs[0].From.ID != bobID {
		t.Errorf("got foreign content %+v, want Bob's text", theirs)
	}
	if e.Command.Name != "remember" || len(e.Command.Args) > 0 || e.Message.Text != "/remember" || e.Target != said || e.Message.Author.ID != annID {
		t.Errorf("got %+v, command %+v, want remember of Ann", e, e.Command)
	}
	s.awaitAnswer(t, id, discordtest.AnswerLater)
}

func onlyHelp() []command.Spec { return []command.Spec{{Name: "help", Brief: "Say what can be done"}} }

func otherBriefs() []command.Spec {
	list := registry()
	list[0].Brief = "Say it"
	return list
}

// TestCommandsChange: changed commands are registered while the bot is connected, without a new connection.
func TestCommandsChange(t *testing.T) {
	s := newServer(t)
	var fewer atomic.Bool
	d, _ := s.up(t, func(o *Options) {
		o.Commands = func() []command.Spec {
			if fewer.Load() {
				return onlyHelp()
			}
			return registry()
		}
	})
	until(t, "all commands", func() bool { return len(s.Commands("")) > 1 })
	connections := len(s.Calls("GET /gateway"))
	fewer.Store(true)
	d.CommandsChanged()
	until(t, "the only command", func() bool { return strings.Join(s.Commands(""), ",") == "help" })
	if n := len(s.Calls("GET /gateway")); n != connections {
		t.Errorf("got %d connections, want %d", n, connections)
	}
}
