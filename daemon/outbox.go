package daemon

import (
	"context"
	"slices"
	"sync"
	"time"

	"synthbot/core"
)

// sendTime is how long a message to an admin may take.
const sendTime = 30 * time.Second

// outbox sends what plugins, drivers and commands write outside of turns, by the
// interfaces in force.
type outbox struct {
	bot     *Bot
	sending sync.WaitGroup // messages to admins
}

// Tell implements core.Messenger.
func (o *outbox) Tell(ctx context.Context, to core.Path, text string) error {
	t, ok := o.bot.InForce().at(to).(core.Teller)
	if !ok {
		return core.Errorf(core.Broken, "cannot send messages there")
	}
	return t.Tell(ctx, to, text)
}

// SendFile implements core.Messenger.
func (o *outbox) SendFile(ctx context.Context, parts core.Deliveries, n int, what core.Sent, f core.Upload) error {
	c, ok := o.bot.InForce().at(what.Path).(core.FileSender)
	if !ok {
		return core.Errorf(core.Broken, "cannot send files here")
	}
	return c.SendFile(ctx, parts, n, what, f)
}

// Fetch implements core.Messenger.
func (o *outbox) Fetch(ctx context.Context, place core.Path, a core.Attachment, max int64) ([]byte, error) {
	f, ok := o.bot.InForce().at(place).(core.Fetcher)
	if !ok {
		return nil, core.Errorf(core.Broken, "cannot fetch files here")
	}
	return f.Fetch(ctx, a, max)
}

func (o *outbox) admins() []core.Path { return o.bot.admins(o.bot.InForce().Config) }

// IsAdmin implements core.Messenger.
func (o *outbox) IsAdmin(person core.Path) bool { return slices.Contains(o.admins(), person) }

// NotifyAdmins implements core.Messenger.
func (o *outbox) NotifyAdmins(text string) { o.bot.alerts.report(text) }

// sendAdmins sends a text to each admin on their own platform. It returns at once.
func (o *outbox) sendAdmins(text string) {
	for _, admin := range o.admins() {
		t, ok := o.bot.InForce().at(admin).(core.Teller)
		if !ok {
			continue
		}
		o.sending.Go(func() {
			ctx, cancel := context.WithTimeout(context.Background(), sendTime)
			defer cancel()
			if err := t.Tell(ctx, admin, text); err != nil {
				o.bot.log.Warn("alert not sent", "user", admin, "err", err)
			}
		})
	}
}
