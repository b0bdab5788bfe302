package discord

import (
	"bytes"
	"context"
	"log/slog"
	"sync"
	"testing"
	"time"

	"synthbot/core/driver"

	"synthbot/core"
	"synthbot/core/coretest"
	"synthbot/core/markdown"
	"synthbot/interfaces/discord/discordtest"
	"synthbot/interfaces/discord/markup"
)

func TestInterface(t *testing.T) {
	coretest.TestInterface(t, func(t *testing.T) coretest.World {
		t.Parallel()
		return &world{s: newServer(t), state: newState()}
	})
}

// world adapts a server to the conformance suite.
type world struct {
	s     *server
	state driver.State

	mu      sync.Mutex
	log     bytes.Buffer
	running int // drivers that were started and have not ended
}

func (w *world) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.log.Write(b)
}

// countedDriver is a driver that is counted as running until it ends.
type countedDriver struct {
	*Driver
	w *world
}

func (g countedDriver) Listen(ctx context.Context, in core.Inbox) error {
	defer g.w.count(-1)
	return g.Driver.Listen(ctx, in)
}

func (w *world) count(n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.running += n
}

func (w *world) Start(t testing.TB) core.Interface {
	d := w.s.bot(t, func(o *Options) {
		o.State = w.state
		o.Log = slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{Level: slog.LevelDebug}))
	})
	d.timings.typing = 8 * time.Second
	t.Cleanup(d.rest.Close)
	w.count(1)
	return countedDriver{d, w}
}

func (w *world) Places() []coretest.Place {
	return []coretest.Place{
		{Path: core.MustPath("discord/" + guildID + "/" + hallID)},
		{Path: core.MustPath("discord/@me/" + dmID), Private: true},
		{Path: core.MustPath("discord/" + guildID + "/" + hallID + "/" + topicID)},
		{Path: core.MustPath("discord/@me/" + groupID)},
	}
}

func channelOf(p coretest.Place) string {
	e := p.Path.Elements()
	return e[len(e)-1]
}

func (w *world) Say(t testing.TB, p coretest.Place, say coretest.Say) string {
	until(t, "the bot is connected", func() bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		return w.running == 0 || w.s.Live() > 0
	})
	who := say.Person
	if who == "" {
		who = annID
	}
	text := say.Text
	if say.Mention {
		text = "<@" + botID + "> " + text
	}
	return w.s.Say(channelOf(p), who, text, discordtest.Saying{ReplyTo: say.ReplyTo})
}

func (w *world) Shown(t testing.TB, p coretest.Place) []coretest.Shown {
	var list []coretest.Shown
	for _, m := range w.s.Messages(channelOf(p)) {
		list = append(list, coretest.Shown{ID: m.ID, Text: markdown.Plain(markdown.Parse(m.Text)), ReplyTo: m.ReplyTo})
	}
	return list
}

func (w *world) Fail(_ testing.TB, p coretest.Place, faults ...coretest.SendFault) {
	kinds := map[coretest.SendFault]discordtest.FaultKind{
		coretest.SendLimited: discordtest.Shared, coretest.SendBroken: discordtest.Broken,
		coretest.SendReset: discordtest.Reset,
	}
	var list []discordtest.Fault
	for _, f := range faults {
		list = append(list, discordtest.Fault{Kind: kinds[f]})
	}
	w.s.FailNext("POST /channels/"+channelOf(p)+"/messages", list...)
}

func (w *world) Thinking(_ testing.TB, p coretest.Place) int {
	return w.s.Typing(channelOf(p))
}

func (w *world) Limit() int              { return markup.MaxContent }
func (w *world) Measure(text string) int { return markdown.UTF16(text) }
func (w *world) Secrets() []string       { return []string{discordtest.Token} }

func (w *world) Log() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.log.String()
}
