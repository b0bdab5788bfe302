package discord

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"synthbot/core"
	"synthbot/core/command"
	"synthbot/interfaces/discord/rest"
)

// destination is where a message is sent, and what it answers.
type destination struct {
	channel string
	place   core.Path
	answers []string // ids of the messages and commands that its turn answers

	commands []pending // the commands among them, the oldest first, as of the message that is being sent
}

func (at *destination) answersCommand(p pending) bool {
	return p.Channel == at.channel && slices.Contains(at.answers, p.ID)
}

// command returns a command of the turn: one that was answered and accepts further answers, or one that was not
// answered yet. ok is false if there is none.
func (at *destination) command(answered bool) (p pending, ok bool) {
	i := slices.IndexFunc(at.commands, func(p pending) bool { return p.Answered == answered })
	if i < 0 {
		return p, false
	}
	return at.commands[i], true
}

// deliver sends the messages of a step to a channel, in order and without others in between. It blocks until they
// are sent. Every attempt at a message has the same nonce, so that Discord sends only one. If an attempt was too long
// ago for that, the channel is searched first. A follow-up to a command's answer has no nonce and cannot always be
// searched for, so it is not repeatable.
func (a *account) deliver(
	ctx context.Context, parts core.Deliveries, at destination, list []outgoing, priority int,
) (failed error) {
	leave, err := a.sendQueue.Enter(ctx, at.channel, priority)
	if err != nil {
		return rest.Failure("the message", err)
	}
	defer leave()
	for n := 0; len(list) > 0; {
		m := &list[0]
		n, list = cmp.Or(m.number, n+1), list[1:]
		began := parts.Since(n)
		at.commands = a.replies.list(at.answersCommand)
		_, command := at.command(true)
		what := core.Sent{Path: at.place, Text: m.text, Repeatable: !command || a.closed.refused(at.channel) == nil}
		err := parts.Send(ctx, n, what, func(ctx context.Context, key string) (string, error) {
			m.Nonce, m.Enforce = key, key != ""
			m.Flags |= a.set.previewFlag(m.Embeds)
			id, err := a.post(ctx, at, m, began)
			if err == nil {
				a.cursors.recordSent(at.channel, id, a.opt.Clock())
			}
			return id, sendError(err)
		})
		switch {
		case m.instead != nil && lacksPermission(err):
			list = m.instead
		case !core.SendsOn(&failed, err):
			return failed
		}
	}
	return failed
}

// post sends one message and returns its id. If there is an unanswered command, the message becomes its answer. If
// there is a draft, it becomes the message.
func (a *account) post(ctx context.Context, at destination, m *outgoing, began time.Time) (string, error) {
	a.drafts.Clear(ctx, at.channel)
	if id, ok, err := a.answerCommand(ctx, at, m); ok || err != nil {
		return id, err
	}
	answer := a.answer(at.channel, m)
	if id, done, err := a.drafts.Resume(ctx, at.channel, answer); done {
		return id, err
	}
	if !began.IsZero() {
		if id, err := a.findSent(ctx, at, m, began); err != nil || id != "" {
			return id, err
		}
	}
	if err := a.closed.refused(at.channel); err != nil {
		return a.followUp(ctx, at, m, err)
	}
	_, isCommand := at.command(true)
	if !isCommand && !command.IsContext(ctx) { // the draft of a channel is never a command's
		if id, done, err := a.drafts.Finish(ctx, at.channel, answer); done {
			return id, err
		}
	}
	id, err := a.sendWithRetries(ctx, at, m)
	if m.Reference != nil && rest.Refusal(err).Code == replyWithoutHistory {
		plain := *m
		plain.Reference, plain.Mentions = nil, noMentions()
		id, err = a.sendWithRetries(ctx, at, &plain)
	}
	if !closedTo(err) || rest.OutcomeUnknown(err) { // though another message may have found it closed meanwhile
		return id, err
	}
	a.markClosed(at.channel, at.place, m, err)
	return a.followUp(ctx, at, m, cmp.Or(a.closed.refused(at.channel), err))
}

// sendError turns an error of sending into a *core.Error. It wraps core.ErrUnknownOutcome if the message may have
// been sent.
func sendError(err error) error {
	_, own := errors.AsType[*core.Error](err)
	if err == nil || own {
		return err
	}
	if rest.OutcomeUnknown(err) {
		err = fmt.Errorf("%w: %w", core.ErrUnknownOutcome, err)
	}
	return rest.Failure("sending a message", err)
}

// followUp sends a message as a further answer to a command, because err says that the channel is closed. If there is
// no such command, it returns err. It makes only one attempt, because a follow-up has no nonce.
func (a *account) followUp(ctx context.Context, at destination, m *outgoing, err error) (string, error) {
	p, ok := at.command(true)
	if !ok {
		return "", err
	}
	return a.reply(ctx, p, m, rest.Request{Method: "POST", Route: webhook, Once: true})
}

// reply sends a message as an answer to a command. Such an answer has no nonce and no reference.
func (a *account) reply(ctx context.Context, p pending, m *outgoing, q rest.Request) (string, error) {
	body := *m
	body.Nonce, body.Enforce, body.Reference, body.Flags = "", false, nil, m.Flags&flagNoPreviews
	q.IDs, q.Body, q.Files = []string{p.App, p.Token}, &body, m.files
	return a.requestID(ctx, q)
}

// requestID makes a request and returns the id of the created object.
func (a *account) requestID(ctx context.Context, q rest.Request) (string, error) {
	var got named
	q.Out = &got
	err := a.rest.Do(ctx, q)
	return got.ID, err
}

// sendRequest returns the request that sends a message to a channel. once prevents retries after an attempt with
// an unknown outcome.
func sendRequest(channel string, m *outgoing, once bool) rest.Request {
	return rest.Request{
		Method: "POST", Route: "/channels/{}/messages", IDs: []string{channel}, Body: m, Files: m.files, Once: once,
	}
}

func (a *account) changeMessage(ctx context.Context, channel, id string, fields map[string]any, once bool) error {
	if fields["allowed_mentions"] == nil {
		fields["allowed_mentions"] = noMentions()
	}
	return a.rest.Do(ctx, rest.Request{
		Method: "PATCH", Route: "/channels/{}/messages/{}", IDs: []string{channel, id}, Body: fields, Once: once,
	})
}

// answerCommand sends a message as the first answer to the turn's command; ok is false if there is none, or if it
// can no longer be answered. It works even in channels that are closed to the bot. If the outcome is unknown, the
// command stays unanswered, and the next attempt replaces the same message.
func (a *account) answerCommand(ctx context.Context, at destination, m *outgoing) (id string, ok bool, err error) {
	p, ok := at.command(false)
	if !ok || !a.replies.acknowledged(ctx, p.ID) {
		return "", false, nil
	}
	id, err = a.reply(ctx, p, m, rest.Request{Method: "PATCH", Route: original})
	switch {
	case err == nil:
		a.replies.answer(p)
		return id, true, nil
	case rest.Refused(err):
		a.replies.drop(p)
		a.log.Warn("command can no longer be answered; sending a message instead", "err", err)
		return "", false, nil
	}
	return "", false, err
}

// Routes of the first answer to an interaction, and of further ones.
const (
	original = webhook + "/messages/@original"
	webhook  = "/webhooks/{}/{}"
)

// sendWithRetries sends a message to a channel, and retries without sending it twice: Discord remembers the nonce for
// some minutes. If an attempt with an unknown outcome is older, the channel is searched first.
func (a *account) sendWithRetries(ctx context.Context, at destination, m *outgoing) (string, error) {
	earlier := ""
	q := sendRequest(at.channel, m, false)
	q.Search = func(ctx context.Context, since time.Time) (found bool, err error) {
		earlier, err = a.findSent(ctx, at, m, since)
		return earlier != "", err
	}
	id, err := a.requestID(ctx, q)
	return cmp.Or(id, earlier), err
}

// Limits of the search for the bot's own messages.
const (
	searchPages = 10
	searchSlack = 5 * time.Second // the maximum error of what is known of Discord's clock
)

// findSent finds a message that an earlier attempt sent, even if it was first a draft or an unanswered command. It
// returns "" if there is none, or if the bot may not read the history. On an error, the outcome stays unknown.
func (a *account) findSent(ctx context.Context, at destination, m *outgoing, since time.Time) (string, error) {
	exact := since.Add(a.rest.Ahead() - searchSlack)
	id, err := a.search(ctx, at.channel, since.Add(-replyAge), func(there *message) bool {
		command := there.Interaction != nil && slices.Contains(at.answers, there.Interaction.ID)
		return (command || !idTime(there.ID).Before(exact) || there.Edited.After(exact)) && m.matches(there)
	})
	if err != nil {
		err = fmt.Errorf("%w: %w", core.ErrUnknownOutcome, err)
	}
	return id, err
}

// search returns the id of the bot's first message since a time that fits; "" if there is none.
func (a *account) search(
	ctx context.Context, channel string, since time.Time, fits func(*message) bool,
) (string, error) {
	after := idAt(since.Add(a.rest.Ahead() - searchSlack))
	self := a.selfID(ctx)
	for range searchPages {
		page, err := a.page(ctx, channel, after, pageSize, manyTries)
		switch {
		case closedTo(err):
			return "", nil
		case err != nil:
			return "", rest.Failure("looking for the message", err)
		}
		for i := range page {
			if page[i].Author != nil && page[i].Author.ID == self && fits(&page[i]) {
				return page[i].ID, nil
			}
			after = page[i].ID
		}
		if len(page) < pageSize {
			break
		}
	}
	return "", nil
}

func (m *outgoing) matches(there *message) bool {
	if strings.TrimSpace(there.Content) != strings.TrimSpace(m.Content) ||
		len(there.Attachments) != len(m.files) || len(there.Embeds) < len(m.Embeds) {
		return false
	}
	for i, f := range m.files {
		// Discord removes metadata from pictures, which changes their size.
		a := there.Attachments[i]
		if a.Size != int64(len(f.Data)) && a.Name != f.Name {
			return false
		}
	}
	for i, e := range m.Embeds {
		if there.Embeds[i].Title != e.Title || there.Embeds[i].Description != e.Description {
			return false
		}
	}
	return m.Poll == nil || there.Poll != nil && there.Poll.Question.Text == m.Poll.Question.Text
}
