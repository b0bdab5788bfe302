package discord

import (
	"strings"
	"testing"
	"time"

	"synthbot/core"
	"synthbot/interfaces/discord/discordtest"
	"synthbot/interfaces/discord/gateway"
)

// TestProbe: a probe reports the bot, its intents, sessions and clock, with fixes for problems, and does
// not connect to the gateway.
func TestProbe(t *testing.T) {
	for name, c := range map[string]struct {
		set   func(*server)
		what  string
		found string
		fix   string
	}{
		"who":         {func(*server) {}, "identity", "@aria (" + botID + ")", ""},
		"all talk":    {func(*server) {}, "content", "receives all messages", ""},
		"one shard":   {func(*server) {}, "gateway", "one connection is enough", ""},
		"clock":       {func(*server) {}, "clock", "0s from the platform's", ""},
		"no content":  {func(s *server) { s.Gateway(func(g *discordtest.Settings) { g.Intents = gateway.Intents }) }, "content", "only mentions", "developer portal"},
		"shards":      {func(s *server) { s.Gateway(func(g *discordtest.Settings) { g.Shards = 4 }) }, "gateway", "4 shards are recommended", ""},
		"no sessions": {func(s *server) { s.Gateway(func(g *discordtest.Settings) { g.Remaining, g.Reset = 0, time.Hour }) }, "gateway", "", "no more sessions for 1h0m0s"},
		"bad token":   {func(s *server) { s.Revoke() }, "identity", "unknown", "the token is refused"},
		"no platform": {func(s *server) {
			s.Fail(func(discordtest.Call) discordtest.Fault { return discordtest.Fault{Kind: discordtest.Broken} })
		}, "platform", "unavailable", "check the network"},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, s *server) {
				c.set(s)
				found := map[string]core.Finding{}
				for _, f := range s.bot(t).Probe(t.Context()) {
					found[f.What] = f
				}
				f := found[c.what]
				if !strings.Contains(f.Found, c.found) || f.Found == "" || (f.Fix == "") != (c.fix == "") || !strings.Contains(f.Fix, c.fix) {
					t.Errorf("got %+v, want %q with fix %q", f, c.found, c.fix)
				}
				if opened, _, _ := s.Counts(); opened > 0 {
					t.Error("the probe connected to the gateway")
				}
			})
		})
	}
}
