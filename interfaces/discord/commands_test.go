package discord

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
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
		told, want := map[string]string{}, map[string]string{}
		_ = json.Unmarshal(raw, &told)
		for _, g := range append([]string{""}, d.set.CommandGuilds...) {
			if list := d.responder.list(g); len(list) > 0 {
				body, _ := json.Marshal(list)
				_, app := d.cache.bot()
				sum := sha256.Sum256(append(body, app...))
				want[g] = hex.EncodeToString(sum[:])
			}
		}
		return d.cache.known(guildID) && maps.Equal(told, want)
	})
	if err := stop(); err != nil {
		t.Fatal(err)
	}
}

func TestCommandsAreSynchronisedWhenTheyChanged(t *testing.T) {
	inBubble(t, testSynchronised)
}

func testSynchronised(t *testing.T, s *server) {
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
			t.Errorf("%s: told %d times, want %d", step.what, n, step.more)
		}
	}
	if all := append(s.Commands(""), s.Commands(guildID)...); len(all) != 0 {
		t.Errorf("left: %v", all)
	}
}

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
				t.Errorf("everywhere: %s", got)
			}
			if got := strings.Join(s.Commands(guildID), ","); got != c.guild {
				t.Errorf("in the guild: %s", got)
			}
			for channel, want := range map[string]string{hallID: "forget,help,remember", dmID: "forget,help,mine,remember,sleep,zone", groupID: "forget,help,remember,sleep,zone"} {
				var can []string
				for _, name := range []string{"forget", "help", "mine", "remember", "sleep", "zone"} {
					if _, err := s.Command(channel, annID, name, map[string]string{"what": "x"}); err == nil {
						can = append(can, name)
					}
				}
				if got := strings.Join(can, ","); got != want {
					t.Errorf("in %s one can call %s, want %s", channel, got, want)
				}
			}
			if _, err := s.Command(hallID, bobID, "sleep", nil); err != nil {
				t.Errorf("a moderator: %v", err)
			}
		})
	}
}

func TestCommandsAreWrittenAsThePlatformWants(t *testing.T) {
	d := offlineIntake(t).d
	raw, _ := json.Marshal(d.responder.list(""))
	var list []appCommand
	if err := json.Unmarshal(raw, &list); err != nil {
		t.Fatal(err)
	}
	if f := list[0].Options; !f[0].Required || f[0].Name != "what" || len(f[1].Choices) != 2 {
		t.Errorf("options of forget: %+v", f)
	}
	if z := list[4]; !z.Options[0].Complete || len(z.Options[0].Choices) > 0 || *z.Permission != "8" || *list[3].Permission != "8192" || list[1].Permission != nil {
		t.Errorf("commands: %s", raw)
	}
	if b := list[1].Briefs; b["it"] == "" || len(b) != 1 {
		t.Errorf("languages of help: %v", b)
	}
	everywhere := []int{inGuilds, inDirect, inGroups}
	if m := list[5]; m.Name != menuName || m.Type != typeMessage || !slices.Equal(m.Contexts, everywhere) {
		t.Errorf("the menu: %+v", m)
	}
}

// A guild that does not let the bot offer commands costs that guild, and the
// admins hear of it once.
func TestCommandsOfAClosedGuild(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	told := make(chan string, 10)
	s.Fail(func(c discordtest.Call) discordtest.Fault {
		if c.Is("PUT /applications/" + appID + "/guilds/5/") {
			return discordtest.Fault{Kind: discordtest.Refused, Status: 403, Code: 50001}
		}
		return discordtest.Fault{}
	})
	s.up(t, func(o *Options) {
		o.Commands, o.Config.CommandGuilds = registry, []string{"5", guildID}
		o.Admin = func(text string) { told <- text }
	})
	until(t, "the other guild's", func() bool { return len(s.Commands(guildID)) > 0 })
	if text := <-told; !strings.Contains(text, "applications.commands") {
		t.Errorf("admins were told %q", text)
	}
}

// What is refused when the bot connects is registered later, also in a guild
// that the bot comes to later.
func TestCommandsAreToldUntilTheyAreTaken(t *testing.T) {
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
				t.Errorf("those for everywhere were told %d times", n)
			}
		})
	}
}

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
		t.Errorf("the words are %+v", theirs)
	}
	if e.Command.Name != "remember" || len(e.Command.Args) > 0 || e.Message.Text != "/remember" || e.Target != said || e.Message.Author.ID != annID {
		t.Errorf("called %+v with %+v", e, e.Command)
	}
	s.awaitAnswer(t, id, discordtest.AnswerLater)
}

func onlyHelp() []command.Spec { return []command.Spec{{Name: "help", Brief: "Say what can be done"}} }

func otherBriefs() []command.Spec {
	list := registry()
	list[0].Brief = "Say it"
	return list
}

// TestCommandsChange: what is registered follows while the bot is connected.
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
		t.Errorf("it connected %d times", n)
	}
}
