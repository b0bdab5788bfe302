package turn

import (
	"context"

	"synthbot/core"
	"synthbot/core/llm"
	"synthbot/core/prompt"
)

// Preview builds the prompt that a message would produce now, by the same steps as a turn, and changes nothing.
func (t *Turns) Preview(ctx context.Context, m core.Message, l llm.Limits) (prompt.Prompt, error) {
	with := t.setup.Load()
	with.raiseRank(&m)
	this := newTurn(t, m.Path, with)
	err := t.store.View(ctx, func(v core.View) error {
		head, err := v.Head(m.Path)
		if err != nil {
			return err
		}
		m.Seq = head.Last + 1
		this.last = m.Seq
		this.messages = []core.Entry{{Event: core.Event{Kind: core.KindMessage, Message: m}, Due: true}}
		this.who = whoCaused(this.messages)
		this.who.Private = this.who.Private || head.Private
		return this.input.load(v)
	})
	if err != nil {
		return prompt.Prompt{}, err
	}
	this.input.patience = openTime // plugins may take longer: no user waits
	this.input.gather(ctx)
	this.input.parts.Actions = this.input.offer(firstRound)
	return prompt.Build(&this.input.parts, l)
}
