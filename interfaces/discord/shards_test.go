package discord

import (
	"log/slog"
	"testing"
	"time"

	"synthbot/core"
	"synthbot/interfaces/discord/discordtest"
)

// TestListenAgain: an account that another process served meanwhile is served as the first time.
func TestListenAgain(t *testing.T) {
	s := newServer(t)
	d := s.bot(t, func(o *Options) { o.Commands = registry() })
	for range 2 {
		stop := s.listening(t, d, newInbox())
		until(t, "connected", func() bool { return s.Live() == 1 })
		id := s.command(t, hallID, annID, "help", nil)
		s.answered(t, id, discordtest.AnswerLater)
		if err := stop(); err != nil {
			t.Fatal(err)
		}
		until(t, "disconnected", func() bool { return s.Live() == 0 })
	}
}

// TestShardsOfAnAccount: each place belongs to one shard, which begins with what the account kept
// before it was divided.
func TestShardsOfAnAccount(t *testing.T) {
	state := shelf()
	for key, value := range map[string]string{"old": "of the account", "shard 2/3 new": "of the shard"} {
		if err := state.Put(t.Context(), key, []byte(value)); err != nil {
			t.Fatal(err)
		}
	}
	config := usualConfig(discordtest.Token)
	config.Shards = "3"
	shards, err := NewShards(Options{Name: "discord", Config: config, Log: slog.New(slog.DiscardHandler), Clock: time.Now, State: state})
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		"discord/0/5": "shard 1/3", "discord/4194304/5": "shard 2/3", "discord/8388608/5": "shard 3/3",
		"discord/12582912": "shard 1/3", "discord/@me/7": "shard 1/3", "discord/@user/7": "shard 1/3", "discord": "shard 1/3",
		"telegram/4194304/5": "",
	} {
		got := ""
		for _, d := range shards {
			if d.Serves(core.MustPath(path)) {
				got += d.Part()
			}
		}
		if got != want {
			t.Errorf("%s belongs to %q, want %q", path, got, want)
		}
	}
	for key, want := range map[string]string{"old": "of the account", "new": "of the shard"} {
		if got, err := shards[1].state.Get(t.Context(), key); string(got) != want || err != nil {
			t.Errorf("%s is %q, %v", key, got, err)
		}
	}
	config.Shards = "auto"
	if shards, err = NewShards(Options{Name: "discord", Config: config, Log: slog.New(slog.DiscardHandler), Clock: time.Now, State: state}); err != nil {
		t.Fatal(err)
	}
	if len(shards) != 1 || shards[0].Part() != "" || !shards[0].Serves(core.MustPath("discord/4194304/5")) {
		t.Error("an account is divided that does not say into how many shards")
	}
}
