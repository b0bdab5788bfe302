package discord

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"synthbot/core"
)

var _ core.Drafter = (*Driver)(nil)

// draftKey is the State's key of the drafts that stand.
const draftKey = "drafts"

// draft is a message that grows while it is being written.
type draft struct {
	mu      sync.Mutex
	text    string        // the newest
	shown   string        // the one that stands
	id      string        // of the message; "": none stands yet
	over    bool          // it is not to change any more
	running chan struct{} // closed when nobody is writing it; nil: nobody is
}

// drafts are those of all channels. Safe for concurrent use.
type drafts struct {
	mu  sync.Mutex
	all map[string]*draft

	notes    sync.Mutex
	noted    map[string]string    // as the State has them; nil: not read yet
	leftover map[string]*leftover // those of a former life that still stand
}

// leftover is a draft that a crash left standing.
type leftover struct {
	id   string
	done chan struct{} // nil: nobody takes it away yet; closed when it is gone
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
	if _, ok := d.replies.find(func(p pending) bool { return p.channel == channel }); ok {
		return
	}
	d.drafts.mu.Lock()
	a := d.drafts.all[channel]
	if a == nil {
		a = &draft{}
		d.drafts.all[channel] = a
	}
	d.drafts.mu.Unlock()
	a.mu.Lock()
	defer a.mu.Unlock()
	a.text = text
	if a.running == nil && !a.over {
		done := make(chan struct{})
		if d.busy.run(func() { d.write(channel, a, done) }) {
			a.running = done
		}
	}
}

// write brings a draft up to date until nothing new comes.
func (d *Driver) write(channel string, a *draft, done chan struct{}) {
	defer close(done)
	for {
		a.mu.Lock()
		text := a.text
		if a.over || text == a.shown {
			a.running = nil
			a.mu.Unlock()
			return
		}
		a.mu.Unlock()
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		id, err := d.show(ctx, channel, a.id, text)
		cancel()
		a.mu.Lock()
		if err == nil {
			a.id = id
		}
		a.shown = text // what failed is not worth another try
		a.mu.Unlock()
		d.pause(a)
	}
}

// pause waits as long as the platform wants between two edits.
func (d *Driver) pause(a *draft) {
	for end := time.Now().Add(d.tempo.draft); time.Now().Before(end); {
		a.mu.Lock()
		over := a.over
		a.mu.Unlock()
		if over || !sleep(context.Background(), d.tempo.draft/10) {
			return
		}
	}
}

// show puts a draft's text into its message, which it makes first.
func (d *Driver) show(ctx context.Context, channel, id, text string) (string, error) {
	body := map[string]any{"content": single(text), "allowed_mentions": nobody(), "flags": flagSilent}
	if id != "" {
		delete(body, "flags")
		return id, d.rest.do(ctx, request{method: "PATCH", route: "/channels/{}/messages/{}", ids: []string{channel, id}, body: body, once: true})
	}
	if err := d.targets.refused(channel); err != nil {
		return "", err
	}
	d.clearOld(ctx, channel)
	var got created
	err := d.rest.do(ctx, request{method: "POST", route: "/channels/{}/messages", ids: []string{channel}, body: body, out: &got, once: true})
	if err == nil {
		d.noteDraft(ctx, channel, got.ID)
	}
	return got.ID, err
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
	a.mu.Lock()
	a.over = true
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
	defer d.noteDraft(ctx, channel, "")
	if m == nil || m.Reference != nil || len(m.files) > 0 || m.Poll != nil {
		d.erase(ctx, channel, id)
		return "", false
	}
	body := map[string]any{"content": m.Content, "embeds": m.Embeds, "components": m.Components, "allowed_mentions": m.Mentions}
	err := d.rest.do(ctx, request{method: "PATCH", route: "/channels/{}/messages/{}", ids: []string{channel, id}, body: body})
	if err != nil {
		d.erase(ctx, channel, id)
	}
	return id, err == nil
}

func (d *Driver) withdraw(channel string) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	d.finish(ctx, channel, nil)
}

func (d *Driver) erase(ctx context.Context, channel, id string) {
	err := d.rest.do(ctx, request{method: "DELETE", route: "/channels/{}/messages/{}", ids: []string{channel, id}})
	if err != nil && !notFound(err) {
		d.log.Warn("a draft is not gone", "channel", channel, "error", err)
	}
}

// noteDraft keeps in mind which drafts stand, so that a crash leaves none.
func (d *Driver) noteDraft(ctx context.Context, channel, id string) {
	d.drafts.notes.Lock()
	defer d.drafts.notes.Unlock()
	d.recallDrafts(ctx)
	d.setNote(ctx, channel, id)
}

// setNote notes a channel's draft; "" for none. The notes are locked.
func (d *Driver) setNote(ctx context.Context, channel, id string) {
	if id == "" {
		delete(d.drafts.noted, channel)
	} else {
		d.drafts.noted[channel] = id
	}
	raw, err := json.Marshal(d.drafts.noted)
	if err == nil {
		err = d.state.Put(ctx, draftKey, raw)
	}
	if err != nil {
		d.log.Error("a draft is not noted", "error", err)
	}
}

// recallDrafts reads what a former life noted, once. The notes are locked.
func (d *Driver) recallDrafts(ctx context.Context) {
	if d.drafts.noted != nil {
		return
	}
	all := make(map[string]string)
	if raw, err := d.state.Get(ctx, draftKey); err == nil && raw != nil {
		_ = json.Unmarshal(raw, &all) // what cannot be read is not there
	}
	d.drafts.noted, d.drafts.leftover = all, make(map[string]*leftover, len(all))
	for channel, id := range all {
		d.drafts.leftover[channel] = &leftover{id: id}
	}
}

// clearOld takes away what a crash left standing in a channel, before anything
// else is said there.
func (d *Driver) clearOld(ctx context.Context, channel string) {
	d.drafts.notes.Lock()
	d.recallDrafts(ctx)
	old := d.drafts.leftover[channel]
	mine := old != nil && old.done == nil
	if mine {
		old.done = make(chan struct{})
	}
	d.drafts.notes.Unlock()
	switch {
	case old == nil:
	case !mine:
		received(ctx, old.done)
	default:
		defer close(old.done)
		d.erase(ctx, channel, old.id)
		d.drafts.notes.Lock()
		defer d.drafts.notes.Unlock()
		delete(d.drafts.leftover, channel)
		d.setNote(ctx, channel, "")
	}
}

// clearDrafts takes away what a crash left standing anywhere.
func (d *Driver) clearDrafts(ctx context.Context) error {
	d.drafts.notes.Lock()
	d.recallDrafts(ctx)
	var channels []string
	for channel := range d.drafts.leftover {
		channels = append(channels, channel)
	}
	d.drafts.notes.Unlock()
	for _, channel := range channels {
		d.clearOld(ctx, channel)
	}
	return nil
}
