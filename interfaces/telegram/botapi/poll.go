package botapi

import (
	"context"
	"encoding/json"
	"log/slog"
	"time"

	"synthbot/core/driver"
)

const (
	pollSeconds = 50
	pollGrace   = 15 * time.Second // after which a poll without an answer is given up
	pollPause   = time.Second      // between two polls that confirm nothing
	rivalsAgain = 6 * time.Hour    // before admins read again that another process takes updates
)

// Intake takes updates in, in order.
type Intake interface {
	// Take returns the offset that confirms what is on disk; 0 if nothing is. After an
	// error the rest comes again.
	Take(ctx context.Context, raws []json.RawMessage) (offset int64, err error)
	// Pause is how long to wait before the next Take, because something held back
	// may still grow.
	Pause() time.Duration
	// Held reports whether an update is held back.
	Held(id int64) bool
}

// Poll asks for updates and hands them in, until ctx ends or the platform refuses the
// token. An update is confirmed by asking for the one after it, once it is on disk. Numbers
// of updates are not kept for longer than one answer: after a week of silence the platform
// begins anew, anywhere.
func (c *Client) Poll(ctx context.Context, in Intake, wanted string) error {
	var offset int64
	delay := newBackoff(time.Second, 30*time.Second)
	reported := ""
	c.health.Works(0)
	for ctx.Err() == nil {
		began := time.Now()
		raws, err := c.ask(ctx, offset, in.Pause(), wanted)
		switch {
		case ctx.Err() != nil || IsCode(err, 401, 404):
			return err
		case err != nil:
			c.fails(began, err)
			reported = c.pollFailed(ctx, err, reported)
			driver.Sleep(ctx, max(delay.NextBackOff(), RetryAfter(err)))
			continue
		}
		reported = ""
		if offset, err = in.Take(ctx, raws); err != nil && ctx.Err() == nil {
			c.fails(time.Now(), err)
			c.opt.Log.Error("updates not taken in; they stay with the platform", "err", err)
			driver.Sleep(ctx, delay.NextBackOff())
			continue
		}
		c.health.Works(0)
		delay.Reset()
		if offset == 0 { // nothing was confirmed: what is there comes again at once
			driver.Sleep(ctx, pollPause-time.Since(began))
		}
	}
	return ctx.Err()
}

// ask makes one getUpdates call. It gives up, with its connection, if the server does
// not answer in the time that it announced.
func (c *Client) ask(ctx context.Context, offset int64, pause time.Duration, wanted string) ([]json.RawMessage, error) {
	driver.Sleep(ctx, pause)
	limited, cancel := context.WithTimeout(ctx, pollSeconds*time.Second+pollGrace)
	defer cancel()
	params := Params{"allowed_updates": wanted, "offset": offset, "timeout": pollSeconds}
	raw, err := c.Call(limited, "getUpdates", params)
	if err != nil {
		return nil, err
	}
	var raws []json.RawMessage
	if err := json.Unmarshal(raw, &raws); err != nil {
		return nil, &NetError{Method: "getUpdates", Text: "no list of updates"}
	}
	return raws, nil
}

// pollFailed logs what is wrong, once until it changes.
func (c *Client) pollFailed(ctx context.Context, err error, reported string) string {
	text := err.Error()
	if IsCode(err, 409) {
		text = "another process asks for this bot's updates: stop it, or give this one a token of its own"
		if Says(err, "webhook") {
			text = "a webhook was set for this bot; it is removed, since this process asks for updates"
			_, err := c.Do(ctx, Request{Method: "deleteWebhook", Again: true})
			if err != nil && ctx.Err() == nil {
				c.opt.Log.Warn("webhook not removed", "err", err)
			}
		} else if time.Since(c.rival) > rivalsAgain { // they take turns, so it comes and goes
			c.rival = time.Now()
			c.opt.Hooks.Admin(c.opt.Name + ": " + text)
		}
	}
	level := slog.LevelDebug
	if text != reported {
		level = slog.LevelWarn
	}
	c.opt.Log.Log(ctx, level, "no updates", "reason", text)
	return text
}

// fails notes an attempt to get updates that began at that time. A wait that the platform
// asked for does not count.
func (c *Client) fails(began time.Time, err error) {
	if !IsCode(err, 429) {
		c.health.Fails(0, began, err)
	}
}

// Ready returns nil if updates come, or failed to for a short time only.
func (c *Client) Ready() error { return c.health.Ready() }
