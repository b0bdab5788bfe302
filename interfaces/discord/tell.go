package discord

import (
	"context"

	"synthbot/core"
	"synthbot/interfaces/discord/rest"
)

var _ core.Teller = (*Driver)(nil)

// Tell writes to a place, or to a person in private. It tries once: what may
// have been sent is not sent again. Limits of the platform are waited out.
func (d *Driver) Tell(ctx context.Context, to core.Path, text string) error {
	texts := parts(text)
	if !visible(text) || len(texts) > maxMessages {
		return core.Errorf(core.Invalid, "the text is empty, or too long")
	}
	channel, err := d.reach(ctx, to)
	if err != nil {
		return err
	}
	if err := d.targets.refused(channel); err != nil {
		return err
	}
	leave, err := d.lanes.enter(ctx, channel, normal)
	if err != nil {
		return rest.Failure("the message", err)
	}
	defer leave()
	d.drafts.Clear(ctx, channel)
	for _, t := range texts {
		m := &outgoing{Content: t, Mentions: nobody(), Flags: d.set.plain(nil)}
		var got created
		err := d.rest.Do(ctx, rest.Request{Method: "POST", Route: "/channels/{}/messages", IDs: []string{channel}, Body: m, Out: &got, Once: true})
		if err != nil {
			d.mark(channel, to, m, err)
			return rest.Failure("sending a message", err)
		}
		d.wrote(channel, to, got.ID)
	}
	return nil
}

// wrote notes where a person was told something: what he answers is found also
// when it comes while nobody listens.
func (d *Driver) wrote(channel string, to core.Path, id string) {
	if to.IsPerson() {
		d.cursors.expect(channel, place{Kind: channelDirect}, id, d.clock())
	}
	d.cursors.spoke(channel, id, d.clock())
}

// reach is the channel of a place, or of direct messages with a person, which is
// opened where there is none.
func (d *Driver) reach(ctx context.Context, to core.Path) (string, error) {
	if to.Interface() != d.name || !to.IsPerson() {
		channel, err := d.channelOf(to)
		if err == nil {
			err = d.stands(ctx, to, channel)
		}
		return channel, err
	}
	person := to.Elements()[2]
	d.mu.Lock()
	channel := d.direct[person]
	d.mu.Unlock()
	if channel != "" {
		return channel, nil
	}
	var made created
	err := d.rest.Do(ctx, rest.Request{Method: "POST", Route: "/users/@me/channels", Body: map[string]string{"recipient_id": person}, Out: &made})
	if err != nil || made.ID == "" {
		return "", rest.Failure("writing to that person", err)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.direct) >= maxDirect {
		clear(d.direct)
	}
	d.direct[person] = made.ID
	return made.ID, nil
}

// maxDirect is how many channels of direct messages are remembered by person;
// the platform tells again what is forgotten.
const maxDirect = 1000
