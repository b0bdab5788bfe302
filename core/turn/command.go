package turn

import (
	"context"
	"errors"

	"synthbot/core"
	"synthbot/core/action"
	"synthbot/core/command"
)

// commandCall is one call of a chat command.
type commandCall struct {
	turn  *turn
	entry *core.Entry
	files []core.Upload // of its answer
}

// run calls the command and returns the answer. It checks again whether the user may call
// it: they may have lost their rank since. The error is that of the journal, or of ctx.
func (c *commandCall) run(ctx context.Context) (string, error) {
	t, m := c.turn, &c.entry.Message
	known, ok := t.setup.Plugins.Commands.Find(c.entry.Command.Name)
	if !ok || known.Rank > m.Author.Rank {
		return "I don't know that command. /help shows my commands.", nil
	}
	if known.Private && !m.Private {
		return "That is between us: please say /" + known.Name + " to me in a private chat.", nil
	}
	args, err := known.Parse(c.entry.Command.Args)
	if err != nil {
		return c.excuse(known.Name, err), nil
	}
	if begun, err := c.begin(ctx, &known); begun || err != nil {
		return "I was stopped while I did that, and cannot tell whether it was done. " +
			"Please check before you try again.", err
	}
	text, err := known.Do(ctx, command.Call{
		Path: t.path, Private: m.Private, Author: m.Author, Person: t.person(), Locale: m.Locale,
		Args: args, Target: c.target().ID, Writer: c.target().From, Foreign: m.Foreign, Sees: t.who.Sees,
		Attach: func(f core.Upload) { c.files = append(c.files, f) }, Noted: c.noteDone,
	})
	switch {
	case ctx.Err() != nil:
		return "", ctx.Err()
	case err != nil:
		text = c.excuse(known.Name, err)
	case text == "":
		text = doneText
	}
	return c.attach(ctx, text), nil
}

// target returns the message that the command was called on, or replies to.
func (c *commandCall) target() core.Quote {
	q := c.entry.Message.ReplyTo
	if c.entry.Target == "" && q != nil {
		return *q
	}
	return core.Quote{ID: c.entry.Target}
}

// noteDone adds a step that the command did, as an action would, to the turn's results.
func (c *commandCall) noteDone(s core.Step, done core.Result) {
	r := &c.turn.results
	r.all = append(r.all, action.StepResult{
		Key: core.Key{Turn: c.turn.journal.id, Round: commandRound, Step: 1}, Action: s.Type, Call: s,
		Progress: core.ProgressDone, Outcome: core.Outcome{Action: s.Type, Result: done},
	})
}

// begin journals the start of a command that must not run twice. begun says that an earlier
// attempt started it: then it is not known whether it was done.
func (c *commandCall) begin(ctx context.Context, known *command.Command) (begun bool, err error) {
	if known.Idempotent {
		return false, nil
	}
	j := c.turn.journal
	key := core.Key{Turn: j.id, Round: commandRound, Step: 1}
	_, begun = j.Find(key)
	if begun {
		return true, nil
	}
	return false, j.Write(ctx, j.record(key, core.ProgressStarted, core.Outcome{Action: known.Name}))
}

// attach sends the files of the command's answer, and returns the text to send after them.
func (c *commandCall) attach(ctx context.Context, text string) string {
	t := c.turn
	if len(c.files) == 0 {
		return text
	}
	carrier := t.setup.Places.Carrier(t.path)
	if carrier == nil {
		return text + "\n\nI cannot send files here."
	}
	parts := t.journal.Parts(core.Key{Turn: t.journal.id, Round: filesRound, Step: 1})
	var failed error
	for i, f := range c.files {
		err := carrier.SendFile(ctx, parts, i+1, core.Sent{Path: t.path}, f)
		if !core.SendsOn(&failed, err) {
			break
		}
	}
	if failed != nil {
		return text + "\n\n" + c.excuse("file", failed)
	}
	return text
}

// excuse returns the text for users about a command's error. Other errors go to the log.
func (c *commandCall) excuse(name string, err error) string {
	if said, ok := errors.AsType[*core.Error](err); ok && said.Text != "" {
		if said.Err != nil {
			c.turn.log.Warn("command refused", "command", name, "err", err)
		}
		return said.Text
	}
	c.turn.log.Error("command failed", "command", name, "err", err)
	return "Sorry, that did not work. (E-COMMAND)"
}
