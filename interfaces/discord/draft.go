package discord

import (
	"context"
	"errors"
	"time"

	"synthbot/core"
	"synthbot/core/draft"
	"synthbot/interfaces/discord/markup"
	"synthbot/interfaces/discord/rest"
)

const draftKey = "drafts"

// draftPlatform shows drafts on Discord. A place is a channel's id.
type draftPlatform struct{ *sender }

func newDrafts(s *sender) *draft.Drafts {
	p := draftPlatform{s}
	return draft.New(draft.Options{
		Platform: p, Reader: p, State: s.state, Key: draftKey, Log: s.log,
		Start: func(f func(context.Context)) bool { return s.tasks.Go(func() { f(context.Background()) }) },
		First: s.timings.draft / 2, Every: func(string) time.Duration { return s.timings.draft }, Left: s.timings.left,
	})
}

// Draft shows a text that is being written, as often as the platform allows.
func (d *Driver) Draft(place core.Path, text string) {
	channel, err := d.channelOf(place)
	if err != nil {
		return
	}
	if text == "" {
		d.sender.drafts.Withdraw(channel)
		return
	}
	// A command shows by itself that it is being thought about.
	_, command := d.replies.find(func(p pending) bool { return p.Channel == channel && !p.Answered })
	if !command {
		// In private the first text notifies, the answer does not.
		d.sender.drafts.Show(channel, text, place.Elements()[1] != me)
	}
}

// Enter waits in the send queue with a new message, so that nothing else is sent there
// meanwhile.
func (p draftPlatform) Enter(ctx context.Context, channel, message string) (leave func(), ok bool) {
	if message != "" {
		return func() {}, true
	}
	leave, err := p.sendQueue.Enter(ctx, channel, low)
	return leave, err == nil
}

// Fit returns what one message shows of a text. It is never what an answer says: so nobody takes a draft
// for an answer that was sent, or an answer for a draft that is to be deleted.
func (draftPlatform) Fit(text string) string {
	if !visible(text) {
		return ""
	}
	return markup.Growing(text)
}

// Post sends the message. Discord sends it once for each nonce.
func (p draftPlatform) Post(ctx context.Context, post draft.Post) (string, error) {
	if err := p.closed.refused(post.Place); err != nil {
		return "", err
	}
	flags := p.set.plain(nil)
	if post.Silent {
		flags |= flagSilent
	}
	m := &outgoing{Content: post.Text, Mentions: nobody(), Nonce: post.Nonce, Enforce: true, Flags: flags}
	return p.postMessage(ctx, post.Place, m, false)
}

// Edit changes the text of the message, once: the next text, or the answer, follows.
func (p draftPlatform) Edit(ctx context.Context, channel, message, text string) error {
	return p.changeMessage(ctx, channel, message, map[string]any{"content": text}, true)
}

// Delete deletes the message.
func (p draftPlatform) Delete(ctx context.Context, channel, message string) error {
	return p.rest.Delete(ctx, "/channels/{}/messages/{}", channel, message)
}

// Outcome tells what became of a request that failed.
func (p draftPlatform) Outcome(err error) draft.Outcome {
	var own *core.Error
	switch {
	case rest.Refused(err), errors.As(err, &own): // by Discord, or by the driver itself
		return draft.Refused
	case rest.OutcomeUnknown(err):
		return draft.Unknown
	}
	return draft.NotDone
}

// NonceAge implements draft.Reader.
func (draftPlatform) NonceAge() time.Duration { return nonceAge }

// Newest returns the newest message of a channel that the driver knows.
func (p draftPlatform) Newest(channel string) string {
	cur, _ := p.cursors.get(channel)
	return cur.newest()
}

// Search finds a message of the bot's own.
func (p draftPlatform) Search(
	ctx context.Context, channel string, since time.Time, after string, fits func(string) bool,
) (string, error) {
	return p.search(ctx, channel, since, func(m *message) bool { return newer(m.ID, after) && fits(m.Content) })
}

// Read returns the text of a message.
func (p draftPlatform) Read(ctx context.Context, channel, id string) (text string, ok bool, err error) {
	var m message
	err = p.rest.Get(ctx, &m, "/channels/{}/messages/{}", channel, id)
	if rest.NotFound(err) || closedTo(err) {
		return "", false, nil
	}
	return m.Content, err == nil, err
}

// answer is a message as what a channel's draft can become, unless it replies to
// another message or carries a file or a poll.
func (s *sender) answer(channel string, m *outgoing) draft.Answer {
	a := draft.Answer{Key: m.Nonce, Text: m.Content}
	if m.Reference != nil || len(m.files) > 0 || m.Poll != nil {
		return a
	}
	a.Edit = func(ctx context.Context, id string) error {
		return s.changeMessage(ctx, channel, id, map[string]any{
			"content": m.Content, "embeds": m.Embeds, "components": m.Components, "allowed_mentions": m.Mentions,
			"flags": m.Flags & flagPlain,
		}, false)
	}
	return a
}
