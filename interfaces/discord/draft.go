package discord

import (
	"context"
	"errors"
	"time"

	"synthbot/core"
	"synthbot/core/draft"
	"synthbot/core/txt"
	"synthbot/interfaces/discord/markup"
	"synthbot/interfaces/discord/rest"
)

const draftKey = "drafts"

// draftPlatform shows drafts on Discord. A place is a channel's id.
type draftPlatform struct{ *account }

func newDrafts(a *account) *draft.Drafts {
	p := draftPlatform{a}
	return draft.New(draft.Options{
		Platform: p, Reader: p, State: a.opt.State, Key: draftKey, Log: a.log,
		Start: func(f func(context.Context)) bool { return a.tasks.Go(func() { f(context.Background()) }) },
		First: a.timings.draft / 2, Every: func(string) time.Duration { return a.timings.draft },
		Left: a.timings.leftover,
	})
}

// Draft shows a text that is being written, as often as the platform allows.
func (d *Driver) Draft(place core.Path, text string) {
	channel, err := d.channelOf(place)
	unanswered := func(p pending) bool { return p.Channel == channel && !p.Answered }
	switch {
	case err != nil:
	case text == "":
		d.drafts.Withdraw(channel)
	case len(d.replies.list(unanswered)) == 0: // for a command, Discord itself shows that the bot is thinking
		// In private, the draft notifies instead of the answer.
		d.drafts.Show(channel, text, place.Elements()[1] != me)
	}
}

// Enter waits in the send queue if it is for a new message, so that nothing else is sent meanwhile.
func (p draftPlatform) Enter(ctx context.Context, channel, message string) (leave func(), ok bool) {
	if message != "" {
		return func() {}, true
	}
	leave, err := p.sendQueue.Enter(ctx, channel, priorityLow)
	return leave, err == nil
}

// Fit returns as much of a text as fits into one message. It differs from any answer, so that drafts and
// answers cannot be confused.
func (draftPlatform) Fit(text string) string {
	if !txt.HasVisible(text) {
		return ""
	}
	return markup.Growing(text)
}

// Post sends the message. Discord ignores repetitions with the same nonce.
func (p draftPlatform) Post(ctx context.Context, post draft.Post) (string, error) {
	if err := p.closed.refused(post.Place); err != nil {
		return "", err
	}
	flags := p.set.previewFlag(nil)
	if post.Silent {
		flags |= flagSilentMessage
	}
	m := &outgoing{Content: post.Text, Mentions: noMentions(), Nonce: post.Nonce, Enforce: true, Flags: flags}
	return p.requestID(ctx, sendRequest(post.Place, m, false))
}

// Edit changes the text of the message. It does not retry, because another edit follows.
func (p draftPlatform) Edit(ctx context.Context, channel, message, text string) error {
	return p.changeMessage(ctx, channel, message, map[string]any{"content": text}, true)
}

func (p draftPlatform) Delete(ctx context.Context, channel, message string) error {
	return p.rest.Delete(ctx, "/channels/{}/messages/{}", channel, message)
}

func (p draftPlatform) Outcome(err error) draft.Outcome {
	_, own := errors.AsType[*core.Error](err)
	switch {
	case rest.Refused(err), own: // by Discord, or by the driver itself
		return draft.Refused
	case rest.OutcomeUnknown(err):
		return draft.Unknown
	}
	return draft.NotDone
}

func (draftPlatform) NonceAge() time.Duration { return rest.NonceAge }

// Newest returns the newest message of a channel that the driver knows.
func (p draftPlatform) Newest(channel string) string {
	cur, _ := p.cursors.get(channel)
	return cur.newest()
}

func (p draftPlatform) Search(
	ctx context.Context, channel string, since time.Time, after string, fits func(string) bool,
) (string, error) {
	return p.search(ctx, channel, since, func(m *message) bool { return newer(m.ID, after) && fits(m.Content) })
}

func (p draftPlatform) Read(ctx context.Context, channel, id string) (text string, ok bool, err error) {
	var m message
	err = p.rest.Get(ctx, &m, "/channels/{}/messages/{}", channel, id)
	if rest.NotFound(err) {
		return "", false, nil
	}
	return m.Content, err == nil, err
}

// answer describes a message for Drafts. A draft cannot become a message that replies to another one, or that
// has a file or a poll.
func (a *account) answer(channel string, m *outgoing) draft.Answer {
	d := draft.Answer{Key: m.Nonce, Text: m.Content}
	if m.Reference != nil || len(m.files) > 0 || m.Poll != nil {
		return d
	}
	d.Edit = func(ctx context.Context, id string) error {
		return a.changeMessage(ctx, channel, id, map[string]any{
			"content": m.Content, "embeds": m.Embeds, "components": m.Components, "allowed_mentions": m.Mentions,
			"flags": m.Flags & flagNoPreviews,
		}, false)
	}
	return d
}
