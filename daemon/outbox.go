package daemon

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"synthbot/core"
)

// Bounds of what admins are told outside of any conversation.
const (
	tellTime  = 30 * time.Second
	tellAgain = time.Hour // the same is not told again before
	tellMax   = 256       // texts that are remembered for it
)

// desk passes on what plugins and drivers want of the bot's interfaces.
type desk struct {
	b   *Bot
	log *slog.Logger
}

func (b *Bot) Desk(log *slog.Logger) *desk { return &desk{b, log} }

// interfaceOf is the interface that serves a path.
func (d *desk) interfaceOf(path core.Path) core.Interface {
	d.b.mu.Lock()
	defer d.b.mu.Unlock()
	if d.b.parts == nil {
		return nil
	}
	return d.b.parts.at(path)
}

// Tell implements core.Desk.
func (d *desk) Tell(ctx context.Context, to core.Path, text string) error {
	t, ok := d.interfaceOf(to).(core.Teller)
	if !ok {
		return core.Errorf(core.Broken, "nobody there can be written to")
	}
	return t.Tell(ctx, to, text)
}

// Carry implements core.Desk.
func (d *desk) Carry(ctx context.Context, parts core.Parts, n int, what core.Sent, f core.Upload) error {
	c, ok := d.interfaceOf(what.Path).(core.Carrier)
	if !ok {
		return core.Errorf(core.Broken, "files cannot be sent here")
	}
	return c.Carry(ctx, parts, n, what, f)
}

// Fetch implements core.Desk.
func (d *desk) Fetch(ctx context.Context, place core.Path, a core.Attachment, max int64) ([]byte, error) {
	f, ok := d.interfaceOf(place).(core.Fetcher)
	if !ok {
		return nil, core.Errorf(core.Broken, "files cannot be fetched here")
	}
	return f.Fetch(ctx, a, max)
}

// Admin implements core.Desk.
func (d *desk) Admin(person core.Path) bool {
	for _, admin := range d.admins() {
		if admin == person {
			return true
		}
	}
	return false
}

func (d *desk) admins() []core.Path {
	d.b.mu.Lock()
	defer d.b.mu.Unlock()
	if d.b.parts == nil {
		return nil
	}
	return d.b.admins(d.b.parts.Config)
}

// Admins implements core.Desk: each admin is told on his own platform, and the
// log is in any case.
func (d *desk) Admins(text string) {
	if d.b.told.fresh(text, d.b.env.Clock()) {
		d.announce(text)
	}
}

// announce tells the admins, however lately they were told the same.
func (d *desk) announce(text string) {
	d.log.Warn(text)
	for _, admin := range d.admins() {
		if t, ok := d.interfaceOf(admin).(core.Teller); ok {
			d.b.others.Go(func() {
				ctx, cancel := context.WithTimeout(context.Background(), tellTime)
				defer cancel()
				if err := t.Tell(ctx, admin, text); err != nil {
					d.log.Warn("admin not told", "admin", admin, "err", err)
				}
			})
		}
	}
}

// told remembers what admins were told not long ago.
type told struct {
	mu   sync.Mutex
	when map[string]time.Time
}

// fresh reports whether the text is worth telling now, and notes it.
func (t *told) fresh(text string, now time.Time) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if at, ok := t.when[text]; ok && now.Sub(at) < tellAgain {
		return false
	}
	if t.when == nil || len(t.when) >= tellMax {
		t.when = make(map[string]time.Time)
	}
	t.when[text] = now
	return true
}
