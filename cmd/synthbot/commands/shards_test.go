package commands

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"synthbot/core/coretest"
	"synthbot/interfaces/discord/discordtest"
)

const (
	swarmShards = 16
	swarmGuilds = 32
)

// shardedPlatform is a Discord server on which the bot's account has 16 shards.
type shardedPlatform struct {
	*discordtest.Server
	channels []string // in guilds on all shards, and direct messages
	said     []string // the channel of each message
}

func newShardedPlatform(t *testing.T) *shardedPlatform {
	t.Helper()
	p := &shardedPlatform{Server: discordtest.New(t), channels: []string{discordtest.HallID, discordtest.DirectID}}
	p.Gateway(func(g *discordtest.Settings) { g.Shards, g.Concurrency = swarmShards, swarmShards })
	for n := range swarmGuilds {
		guild := fmt.Sprint(uint64(700_000_000_000_000_000) + uint64(n)<<22)
		p.AddGuild(guild, nil)
		p.channels = append(p.channels, p.AddChannel(discordtest.Channel{Guild: guild, Name: "room"}))
	}
	return p
}

// table returns the configuration of the account.
func (p *shardedPlatform) table() string {
	return discordTable(p.Server) + fmt.Sprintf("shards = \"%d\"\n", swarmShards)
}

// sayIn sends the next message to a channel.
func (p *shardedPlatform) sayIn(channel string) {
	p.Say(channel, discordtest.AnnID, fmt.Sprintf("<@%s> m%d", discordtest.BotID, len(p.said)))
	p.said = append(p.said, channel)
}

// say sends the next n messages to random channels.
func (p *shardedPlatform) say(n int) {
	for range n {
		p.sayIn(p.channels[rand.IntN(len(p.channels))])
	}
}

// answers returns, for each message, how many answers in its channel name it. It ignores drafts: a draft that
// is left over is deleted some minutes later.
func (p *shardedPlatform) answers() []int {
	words := make(map[string]int)
	for _, channel := range p.channels {
		for _, text := range p.Texts(channel) {
			if strings.HasSuffix(text, " ▍") {
				continue
			}
			for _, word := range strings.Fields(text) {
				words[channel+word]++
			}
		}
	}
	all := make([]int, len(p.said))
	for n, channel := range p.said {
		all[n] = words[fmt.Sprintf("%sm%d", channel, n)]
	}
	return all
}

// unanswered lists the messages that no answer names.
func (p *shardedPlatform) unanswered() (left []string) {
	for n, times := range p.answers() {
		if times == 0 {
			left = append(left, fmt.Sprintf("m%d in channel %s", n, p.said[n]))
		}
	}
	return left
}

// checkAnswers fails the test unless each message has exactly one answer. Discord knows idempotency keys.
func (p *shardedPlatform) checkAnswers(t *testing.T) {
	t.Helper()
	for n, times := range p.answers() {
		if times != 1 {
			t.Errorf("m%d has %d answers, want one", n, times)
		}
	}
}

// shardSwarm is several workers with one database, which share the shards of a Discord account.
type shardSwarm struct {
	*testing.T
	*shardedPlatform
	workers []*swarmWorker
}

func newShardSwarm(t *testing.T, workers int) *shardSwarm {
	t.Helper()
	s := &shardSwarm{T: t, shardedPlatform: newShardedPlatform(t)}
	t.Setenv("DATABASE_URL", coretest.StartPostgres(t).URL)
	model := newEchoModel(t)
	for n := range workers {
		k := newKillTest(t, model)
		config := onDiscord(s.Server, model, fmt.Sprintf("shards = \"%d\"\n", swarmShards)) + storeTable()
		write(t, k.file, strings.Replace(config, `worker = "first"`, fmt.Sprintf("worker = \"w%d\"", n), 1))
		s.workers = append(s.workers, &swarmWorker{killTest: k})
	}
	return s
}

func (s *shardSwarm) answered() {
	s.Helper()
	s.workers[0].waitForZero("messages are not answered", 50*time.Millisecond, func() int { return len(s.unanswered()) })
}

// serving returns how many shards a worker serves, according to its log.
func (w *swarmWorker) serving() int {
	log := logOf(w.T, w)[w.began:]
	return strings.Count(log, `"serving"`) - strings.Count(log, "handing over to another")
}

// TestShards checks that workers share the shards of a Discord account evenly. When one is killed, frozen or
// stopped, the others answer its messages, each exactly once.
func TestShards(t *testing.T) {
	s := newShardSwarm(t, 2)
	s.workers[0].start()
	until(t, func() bool { return s.LiveShards() == swarmShards })
	s.say(20)
	s.answered()
	s.workers[1].start()
	until(t, func() bool { return s.workers[0].serving() == swarmShards/2 && s.workers[1].serving() == swarmShards/2 })
	s.say(100)
	s.answered()
	s.say(40)
	s.workers[0].stop(os.Kill)
	s.say(40)
	s.answered()
	s.workers[0].start()
	until(t, func() bool { return s.workers[1].serving() == swarmShards/2 })
	s.say(40)
	if err := s.workers[1].process.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	s.say(40)
	<-s.workers[1].ended
	s.answered()
	s.workers[1].start()
	until(t, func() bool { return s.workers[0].serving() == swarmShards/2 })
	s.say(40)
	s.workers[1].freeze()
	s.say(40)
	s.answered()
	s.checkAnswers(t)
	if status := s.workers[0].chat("/status"); !strings.Contains(status, "/16: running") {
		t.Error(status)
	}
}

// TestShardsShareLimits checks that a user's rate limit does not grow with the number of workers.
func TestShardsShareLimits(t *testing.T) {
	const limit = 5
	for name, set := range map[string]*strings.Replacer{
		"a minute": strings.NewReplacer("per_minute = 0", fmt.Sprint("per_minute = ", limit)),
		"an hour":  strings.NewReplacer("[plugins.memory]", fmt.Sprintf("[plugins.moderation]\ngroup = \"%d/1h\"\n[plugins.memory]", limit)),
	} {
		t.Run(name, func(t *testing.T) { shareLimit(t, limit, set) })
	}
}

func shareLimit(t *testing.T, limit int, set *strings.Replacer) {
	s := newShardSwarm(t, 2)
	for _, w := range s.workers {
		raw, err := os.ReadFile(w.file)
		if err != nil {
			t.Fatal(err)
		}
		write(t, w.file, set.Replace(string(raw)))
		w.start()
	}
	until(t, func() bool { return s.workers[0].serving() == swarmShards/2 && s.workers[1].serving() == swarmShards/2 })
	until(t, func() bool { return s.LiveShards() == swarmShards })
	answered := func() int { return len(s.said) - len(s.unanswered()) }
	for n := range 4 * limit {
		s.sayIn(s.channels[2+n/2+n%2*swarmShards/2]) // the workers take turns
		if n < limit {
			until(t, func() bool { return answered() == n+1 })
		}
		time.Sleep(50 * time.Millisecond) // the other worker needs time to learn of the answer
	}
	if n := answered(); n > limit+1 {
		t.Errorf("%d messages were answered within a few seconds, want at most %d", n, limit+1)
	}
}
