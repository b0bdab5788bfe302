package turn

import (
	"context"

	"synthbot/core"
	"synthbot/core/prompt"
)

// Preview builds the prompt that a message would produce now, by the very steps
// of a turn, and changes nothing.
func (t *Turns) Preview(ctx context.Context, m core.Message, l core.Limits) (prompt.Prompt, error) {
	with := t.setup.Load()
	with.rank(&m)
	this := &turn{place: &place{turns: t, lane: lane{path: m.Path}}, with: with, snapshot: with.Catalogue.Load(), log: with.Log}
	err := t.store.View(ctx, func(v core.View) error {
		head, err := v.Head(m.Path)
		if err != nil {
			return err
		}
		m.Seq = head.Last + 1
		this.last = m.Seq
		this.messages = []core.Entry{{Event: core.Event{Kind: core.KindMessage, Message: m}, Due: true}}
		this.who = caused(this.messages)
		this.who.Private = this.who.Private || head.Private
		return this.read(v)
	})
	if err != nil {
		return prompt.Prompt{}, err
	}
	this.gather(ctx)
	this.parts.Actions = this.offer(1)
	return prompt.Build(this.parts, l)
}
