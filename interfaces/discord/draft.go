package discord

import (
	"context"
	"crypto/rand"
	"sync"
	"time"

	"synthbot/core"
)

var _ core.Drafter = (*Driver)(nil)

// draft is a message that grows while it is being written.
type draft struct {
	end chan struct{} // closed when it is not to change any more

	mu      sync.Mutex
	text    string        // the newest
	shown   string        // the one that stands
	id      string        // of the message; "": none stands yet
	running chan struct{} // closed when nobody is writing it; nil: nobody is
	refused bool          // the platform lets none stand here
}

// drafts are those of all channels. Safe for concurrent use.
type drafts struct {
	mu  sync.Mutex
	all map[string]*draft

	notes sync.Mutex           // of reading and changing what the State has noted
	left  map[string]*leftover // those that may still stand, by channel; nil: not read yet
}

// Draft shows a text that is being written, as often as the platform allows.
func (d *Driver) Draft(place core.Path, text string) {
	channel, err := d.channelOf(place)
	if err != nil {
		return
	}
	if text == "" {
		d.busy.run(func() { d.withdraw(channel) })
		return
	}
	// A command shows by itself that it is being thought about.
	if _, ok := d.replies.find(func(p pending) bool { return p.Channel == channel }); ok {
		return
	}
	d.drafts.mu.Lock()
	a := d.drafts.all[channel]
	if a == nil {
		a = &draft{end: make(chan struct{})}
		d.drafts.all[channel] = a
	}
	d.drafts.mu.Unlock()
	a.mu.Lock()
	defer a.mu.Unlock()
	a.text = text
	if a.running == nil && !a.over() && !a.refused {
		done := make(chan struct{})
		// What is said in private is told by a sound at once: the answer makes none.
		silent := place.Elements()[1] != me
		if d.busy.run(func() { d.write(channel, a, silent, done) }) {
			a.running = done
		}
	}
}

// over reports whether the draft is not to change any more.
func (a *draft) over() bool {
	select {
	case <-a.end:
		return true
	default:
		return false
	}
}

// rest waits, unless the draft ends first.
func (a *draft) rest(wait time.Duration) {
	t := time.NewTimer(wait)
	defer t.Stop()
	select {
	case <-t.C:
	case <-a.end:
	}
}

// write brings a draft up to date until nothing new comes. It does not begin at
// once: what is whole in a moment needs no draft.
func (d *Driver) write(channel string, a *draft, silent bool, done chan struct{}) {
	defer close(done)
	if a.id == "" {
		a.rest(d.tempo.draft / 2)
	}
	for {
		a.mu.Lock()
		text := a.text
		if a.over() || a.refused || text == a.shown {
			a.running = nil
			a.mu.Unlock()
			return
		}
		a.mu.Unlock()
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		id, err := a.id, error(nil)
		if id == "" {
			id, err = d.show(ctx, channel, text, silent)
		} else {
			err = d.grow(ctx, channel, id, text)
		}
		cancel()
		a.mu.Lock()
		a.id, a.refused = id, id == "" && refuses(err)
		a.shown = text // what failed is not worth another try
		a.mu.Unlock()
		a.rest(d.tempo.draft)
	}
}

// show makes the message that a draft stands in. That it will is noted before;
// tried again, it is the same message, and where nobody knows whether it stands,
// it is looked for before the next one.
func (d *Driver) show(ctx context.Context, channel, text string, silent bool) (string, error) {
	if err := d.targets.refused(channel); err != nil {
		return "", err
	}
	d.clearOld(ctx, channel, "")
	note := draftNote{Sum: sumOf(single(text)), At: time.Now()}
	d.noteDraft(ctx, channel, note)
	body := map[string]any{"content": single(text), "allowed_mentions": nobody(), "nonce": rand.Text()[:25], "enforce_nonce": true}
	if silent {
		body["flags"] = flagSilent
	}
	var got created
	err := d.rest.do(ctx, request{method: "POST", route: "/channels/{}/messages", ids: []string{channel}, body: body, out: &got})
	switch {
	case err == nil:
		d.noteDraft(ctx, channel, draftNote{ID: got.ID})
	case refuses(err):
		d.forgetDraft(ctx, channel, note)
	default:
		d.leave(channel, note)
	}
	return got.ID, err
}

// refuses reports whether an error means that the platform did not take a
// message, and will not.
func refuses(err error) bool { return err != nil && !unsure(err) && !limited(err) }

// grow puts the newest text into a draft's message.
func (d *Driver) grow(ctx context.Context, channel, id, text string) error {
	return d.rest.do(ctx, request{
		method: "PATCH", route: "/channels/{}/messages/{}", ids: []string{channel, id}, once: true,
		body: map[string]any{"content": single(text), "allowed_mentions": nobody()},
	})
}

// takeDraft ends a channel's draft and returns its message; "" for none.
func (d *Driver) takeDraft(channel string) string {
	d.drafts.mu.Lock()
	a := d.drafts.all[channel]
	delete(d.drafts.all, channel)
	d.drafts.mu.Unlock()
	if a == nil {
		return ""
	}
	close(a.end)
	a.mu.Lock()
	running := a.running
	a.mu.Unlock()
	if running != nil {
		<-running
	}
	return a.id
}

// finish makes a message of the channel's draft, where there is one that can
// become it; else the draft goes away.
func (d *Driver) finish(ctx context.Context, channel string, m *outgoing) (id string, ok bool) {
	if id = d.takeDraft(channel); id == "" {
		return "", false
	}
	if m == nil || m.Reference != nil || len(m.files) > 0 || m.Poll != nil {
		if d.erase(ctx, channel, id) {
			d.forgetDraft(ctx, channel, draftNote{ID: id})
		}
		return "", false
	}
	// From here on it may be the answer, which nobody may take away.
	note := draftNote{ID: id, Final: sumOf(m.Content)}
	d.noteDraft(ctx, channel, note)
	body := map[string]any{"content": m.Content, "embeds": m.Embeds, "components": m.Components, "allowed_mentions": m.Mentions}
	err := d.rest.do(ctx, request{method: "PATCH", route: "/channels/{}/messages/{}", ids: []string{channel, id}, body: body})
	if err == nil || d.erase(ctx, channel, id) {
		d.forgetDraft(ctx, channel, note)
	} else {
		d.leave(channel, note) // whether it is the answer now, nobody knows
	}
	return id, err == nil
}

func (d *Driver) withdraw(channel string) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	d.finish(ctx, channel, nil)
}

// erase takes a draft's message away; true where it is gone.
func (d *Driver) erase(ctx context.Context, channel, id string) bool {
	err := d.rest.do(ctx, request{method: "DELETE", route: "/channels/{}/messages/{}", ids: []string{channel, id}})
	if err != nil && !notFound(err) {
		d.log.Warn("a draft is not gone", "channel", channel, "error", err)
		return false
	}
	return true
}
