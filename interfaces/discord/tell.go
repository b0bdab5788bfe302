package discord

import (
	"context"

	"synthbot/core"
	"synthbot/interfaces/discord/markup"
	"synthbot/interfaces/discord/rest"
)

var _ core.Teller = (*Driver)(nil)

// Tell writes to a place, or to a user in private. It tries once: what may have been sent
// is not sent again. It waits for rate limits.
func (d *Driver) Tell(ctx context.Context, to core.Path, text string) error {
	texts := markup.Messages(text)
	if !visible(text) || len(texts) > maxMessages {
		return core.Errorf(core.Invalid, "the text is empty, or too long")
	}
	channel, err := d.finder.reach(ctx, to)
	if err != nil {
		return err
	}
	if err := d.closed.refused(channel); err != nil {
		return err
	}
	leave, err := d.sendQueue.Enter(ctx, channel, normal)
	if err != nil {
		return rest.Failure("the message", err)
	}
	defer leave()
	d.sender.drafts.Clear(ctx, channel)
	for _, t := range texts {
		m := &outgoing{Content: t, Mentions: nobody(), Flags: d.set.plain(nil)}
		id, err := d.postMessage(ctx, channel, m, true)
		if err != nil {
			d.markClosed(channel, to, m, err)
			return rest.Failure("sending a message", err)
		}
		if to.IsPerson() { // an answer is found from now on, even if it comes while the bot is not connected
			d.cursors.expect(channel, place{Kind: channelDirect}, id, d.clock())
		}
		d.cursors.spoke(channel, id, d.clock())
	}
	return nil
}
