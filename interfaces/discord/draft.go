package discord

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"synthbot/core"
)

var _ core.Drafter = (*Driver)(nil)

// draftKey is the State's key of the drafts that stand.
const draftKey = "drafts"

// draft is a message that grows while it is being written.
type draft struct {
	end chan struct{} // closed when it is not to change any more

	mu      sync.Mutex
	text    string        // the newest
	shown   string        // the one that stands
	id      string        // of the message; "": none stands yet
	running chan struct{} // closed when nobody is writing it; nil: nobody is
}

// drafts are those of all channels. Safe for concurrent use.
type drafts struct {
	mu  sync.Mutex
	all map[string]*draft

	notes    sync.Mutex
	noted    map[string]draftNote // as the State has them, by channel; nil: not read yet
	leftover map[string]*leftover // those of a former life that may still stand
}

// draftNote is what is kept in mind of a draft: its message, and before that is known,
// what it says.
type draftNote struct {
	ID  string    `json:"id,omitempty"`
	Sum string    `json:"sum,omitempty"`
	At  time.Time `json:"at,omitzero"`
}

// sumOf stands for a text.
func sumOf(text string) string {
	sum := sha256.Sum256([]byte(strings.TrimSpace(text)))
	return hex.EncodeToString(sum[:])
}

// leftover is a draft that a crash left standing.
type leftover struct {
	draftNote
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
		a = &draft{end: make(chan struct{})}
		d.drafts.all[channel] = a
	}
	d.drafts.mu.Unlock()
	a.mu.Lock()
	defer a.mu.Unlock()
	a.text = text
	if a.running == nil && !a.over() {
		done := make(chan struct{})
		if d.busy.run(func() { d.write(channel, a, done) }) {
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
func (d *Driver) write(channel string, a *draft, done chan struct{}) {
	defer close(done)
	if a.id == "" {
		a.rest(d.tempo.draft / 2)
	}
	for {
		a.mu.Lock()
		text := a.text
		if a.over() || text == a.shown {
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
		a.rest(d.tempo.draft)
	}
}

// show puts a draft's text into its message, which it makes first. That it will
// is noted before.
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
	d.noteDraft(ctx, channel, &draftNote{Sum: sumOf(single(text)), At: time.Now()})
	var got created
	err := d.rest.do(ctx, request{method: "POST", route: "/channels/{}/messages", ids: []string{channel}, body: body, out: &got, once: true})
	if err == nil {
		d.noteDraft(ctx, channel, &draftNote{ID: got.ID})
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
	defer d.noteDraft(ctx, channel, nil)
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

// noteDraft keeps in mind which drafts stand, so that a crash leaves none; nil: it
// stands no more.
func (d *Driver) noteDraft(ctx context.Context, channel string, n *draftNote) {
	d.drafts.notes.Lock()
	defer d.drafts.notes.Unlock()
	d.recallDrafts(ctx)
	d.setNote(ctx, channel, n)
}

// setNote notes a channel's draft; nil for none. The notes are locked.
func (d *Driver) setNote(ctx context.Context, channel string, n *draftNote) {
	delete(d.drafts.noted, channel)
	if n != nil {
		d.drafts.noted[channel] = *n
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
	d.drafts.noted, d.drafts.leftover = make(map[string]draftNote), make(map[string]*leftover)
	if raw, err := d.state.Get(ctx, draftKey); err == nil && raw != nil {
		_ = json.Unmarshal(raw, &d.drafts.noted) // what cannot be read is not there
	}
	for channel, n := range d.drafts.noted {
		d.drafts.leftover[channel] = &leftover{draftNote: n}
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
		d.clear(ctx, channel, old.draftNote)
		d.drafts.notes.Lock()
		defer d.drafts.notes.Unlock()
		delete(d.drafts.leftover, channel)
		d.setNote(ctx, channel, nil)
	}
}

// clear takes a draft of a former life away; where its message was not known
// yet, it is the one that says what was noted.
func (d *Driver) clear(ctx context.Context, channel string, n draftNote) {
	id := n.ID
	if id == "" {
		var err error
		id, err = d.search(ctx, channel, n.At, func(m *message) bool { return sumOf(m.Content) == n.Sum })
		if err != nil {
			d.log.Warn("whether a draft was left is not known", "channel", channel, "error", err)
		}
	}
	if id != "" {
		d.erase(ctx, channel, id)
	}
}

// clearDrafts takes away what a crash left standing anywhere.
func (d *Driver) clearDrafts(ctx context.Context) error {
	d.drafts.notes.Lock()
	d.recallDrafts(ctx)
	channels := slices.Collect(maps.Keys(d.drafts.leftover))
	d.drafts.notes.Unlock()
	for _, channel := range channels {
		d.clearOld(ctx, channel)
	}
	return nil
}
