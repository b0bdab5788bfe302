package discord

import (
	"context"
	"crypto/rand"
	"sync"
	"time"

	"synthbot/core"
	"synthbot/interfaces/discord/rest"
)

var _ core.Drafter = (*Driver)(nil)

// draftPatience is how long the request that makes a draft may take.
const draftPatience = 5 * time.Second

// draft is a message that grows while it is being written.
type draft struct {
	live context.Context // ends when it is not to change any more
	end  context.CancelFunc

	silent bool

	mu      sync.Mutex
	text    string        // the newest
	shown   string        // the one that stands
	running chan struct{} // closed when nobody is writing it; nil: nobody is
	refused bool          // the platform lets none stand here

	// Of who writes it, and then of who ended it.
	id    string // of the message; "": none stands yet, as far as is known
	asked *asked // whether it stands is not known; nil: that is known
}

// asked is a request for a draft's message that may have worked. Made again, it makes
// no second message, as long as the platform knows its nonce.
type asked struct {
	text  string
	nonce string
	at    time.Time
}

// drafts are those of all channels. Safe for concurrent use.
type drafts struct {
	mu  sync.Mutex
	all map[string]*draft

	notes sync.Mutex           // of reading and changing what the State has noted
	left  map[string]draftNote // those that may still stand, by the key of the note; nil: not read yet
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
	if _, ok := d.replies.find(func(p pending) bool { return p.Channel == channel && !p.Answered }); ok {
		return
	}
	d.drafts.mu.Lock()
	a := d.drafts.all[channel]
	if a == nil {
		a = &draft{silent: place.Elements()[1] != me} // in private the first word makes the sound, the answer none
		a.live, a.end = context.WithCancel(context.Background())
		d.drafts.all[channel] = a
	}
	d.drafts.mu.Unlock()
	a.mu.Lock()
	defer a.mu.Unlock()
	a.text = text
	if a.running == nil && a.live.Err() == nil && !a.refused {
		done := make(chan struct{})
		if d.busy.run(func() { d.write(channel, a, done) }) {
			a.running = done
		}
	}
}

// write brings a draft up to date until nothing new comes. It does not begin at
// once: what is whole in a moment needs no draft.
func (d *Driver) write(channel string, a *draft, done chan struct{}) {
	defer close(done)
	if a.id == "" {
		rest.Sleep(a.live, d.tempo.draft/2)
	}
	for {
		a.mu.Lock()
		text := a.text
		if a.live.Err() != nil || a.refused || text == a.shown {
			a.running = nil
			a.mu.Unlock()
			return
		}
		a.mu.Unlock()
		if a.id == "" {
			text = d.show(channel, a, text)
		} else {
			d.grow(channel, a.id, text)
		}
		a.mu.Lock()
		a.shown = text // what failed is not worth another try
		a.mu.Unlock()
		rest.Sleep(a.live, d.tempo.draft)
	}
}

// show makes the message that a draft stands in, and returns its text. Nothing else
// is said in the channel meanwhile.
func (d *Driver) show(channel string, a *draft, text string) string {
	leave, err := d.lanes.enter(a.live, channel, low)
	if err != nil {
		return text
	}
	defer leave()
	ctx, cancel := context.WithTimeout(context.Background(), draftPatience)
	defer cancel()
	if err := d.targets.refused(channel); err != nil {
		a.refuse()
		return text
	}
	d.clearOld(ctx, channel)
	if a.asked == nil {
		a.asked = &asked{text, rand.Text()[:25], time.Now()}
	}
	text = a.asked.text
	d.ask(ctx, channel, a)
	return text
}

func (a *draft) refuse() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.refused = true
}

// ask asks for the draft's message, perhaps again. The note tells a later life of a
// message whose id is not known yet: it exists only while nothing else is said in the
// channel, so that an answer is never taken for the draft.
func (d *Driver) ask(ctx context.Context, channel string, a *draft) {
	q := a.asked
	if time.Since(q.at) > nonceAge {
		a.asked = nil // it may stand, and nobody can know
		a.refuse()
		return
	}
	cur, _ := d.cursors.get(channel)
	note := draftNote{Channel: channel, Sum: sumOf(single(q.text)), At: time.Now(), After: cur.newest()}
	d.noteDraft(ctx, note)
	body := map[string]any{"content": single(q.text), "allowed_mentions": nobody(), "nonce": q.nonce, "enforce_nonce": true}
	flags := d.set.plain(nil)
	if a.silent {
		flags |= flagSilent
	}
	body["flags"] = flags
	var got created
	err := d.rest.Do(ctx, rest.Request{Method: "POST", Route: "/channels/{}/messages", IDs: []string{channel}, Body: body, Out: &got})
	if err == nil {
		d.noteDraft(ctx, draftNote{Channel: channel, ID: got.ID})
		a.id = got.ID
	} else {
		d.forgetDraft(ctx, note)
	}
	if rest.Refused(err) {
		a.refuse()
	}
	if !rest.OutcomeUnknown(err) {
		a.asked = nil
	}
}

// grow puts the newest text into a draft's message.
func (d *Driver) grow(channel, id, text string) {
	ctx, cancel := context.WithTimeout(context.Background(), draftPatience)
	defer cancel()
	_ = d.rest.Do(ctx, rest.Request{ // the next text, or the answer, says it
		Method: "PATCH", Route: "/channels/{}/messages/{}", IDs: []string{channel, id}, Once: true,
		Body: map[string]any{"content": single(text), "allowed_mentions": nobody()},
	})
}

// takeDraft ends a channel's draft and returns it; nil for none.
func (d *Driver) takeDraft(channel string) *draft {
	d.drafts.mu.Lock()
	a := d.drafts.all[channel]
	delete(d.drafts.all, channel)
	d.drafts.mu.Unlock()
	if a == nil {
		return nil
	}
	a.end()
	a.mu.Lock()
	running := a.running
	a.mu.Unlock()
	if running != nil {
		<-running
	}
	return a
}

// finish makes a message of the channel's draft, where there is one that can become
// it; else the draft goes away. "" without an error: the message is still to be made.
// The channel's lane is held.
func (d *Driver) finish(ctx context.Context, channel string, m *outgoing) (id string, err error) {
	a := d.takeDraft(channel)
	if a == nil {
		return "", nil
	}
	if a.asked != nil {
		d.ask(ctx, channel, a)
	}
	switch {
	case a.id == "":
		return "", nil
	case m.Reference != nil || len(m.files) > 0 || m.Poll != nil:
		d.eraseDraft(ctx, draftNote{Channel: channel, ID: a.id})
		return "", nil
	}
	n := draftNote{Channel: channel, ID: a.id, Key: m.Nonce, At: time.Now(), Final: sumOf(m.Content)}
	if !d.noteDraft(ctx, n) { // then it might be taken for a draft later
		d.eraseDraft(ctx, n)
		return "", nil
	}
	return d.become(ctx, n, m)
}

// become makes a draft the answer that it is noted to become. From then on nobody takes it away, and while it is
// not known whether it worked, another try of the same part does the same again.
func (d *Driver) become(ctx context.Context, n draftNote, m *outgoing) (id string, err error) {
	body := map[string]any{"content": m.Content, "embeds": m.Embeds, "components": m.Components, "allowed_mentions": m.Mentions, "flags": m.Flags & flagPlain}
	err = d.rest.Do(ctx, rest.Request{Method: "PATCH", Route: "/channels/{}/messages/{}", IDs: []string{n.Channel, n.ID}, Body: body})
	switch {
	case err == nil:
		d.forgetDraft(ctx, n)
		return n.ID, nil
	case !rest.Refused(err):
		d.leave(n)
		return "", sendError(err)
	}
	d.eraseDraft(ctx, n)
	return "", nil
}

// withdraw takes the channel's draft away.
func (d *Driver) withdraw(channel string) {
	ctx, cancel := context.WithTimeout(context.Background(), draftPatience)
	defer cancel()
	a := d.takeDraft(channel)
	if a == nil {
		return
	}
	if a.asked != nil {
		leave, err := d.lanes.enter(ctx, channel, low)
		if err != nil {
			return
		}
		d.ask(ctx, channel, a)
		leave()
	}
	if a.id != "" {
		d.eraseDraft(ctx, draftNote{Channel: channel, ID: a.id})
	}
}

// eraseDraft deletes a draft's message, or leaves that for later.
func (d *Driver) eraseDraft(ctx context.Context, n draftNote) {
	err := d.rest.Do(ctx, rest.Request{Method: "DELETE", Route: "/channels/{}/messages/{}", IDs: []string{n.Channel, n.ID}})
	if err != nil && !rest.NotFound(err) {
		d.log.Warn("a draft is not gone", "channel", n.Channel, "err", err)
		d.leave(n)
		return
	}
	d.forgetDraft(ctx, n)
}
