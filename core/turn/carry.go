package turn

import (
	"context"
	"errors"

	"synthbot/core"
	"synthbot/core/command"
)

// fixed reports whether no model is asked: a command is carried out, or a reply
// stood fast when the message was received.
func (t *turn) fixed() bool { return t.command() || len(t.messages) > 0 && t.messages[0].Reply != "" }

// scripted returns the plan of a turn that no model is asked for: a command that
// is carried out, or a reply that stood fast when the message was received.
func (t *turn) scripted(ctx context.Context) (p core.Plan, ok bool, err error) {
	e := &t.messages[0]
	switch {
	case e.Reply != "":
		return t.say(e.Reply), true, nil
	case e.Kind == core.KindCommand && e.Command != nil:
		var files []core.Upload
		text, err := t.obey(ctx, e, func(f core.Upload) { files = append(files, f) })
		if err != nil {
			return p, true, err
		}
		return t.say(t.enclose(ctx, text, files)), true, nil
	}
	return p, false, nil
}

// obey carries a command out and returns what is answered. Whether the person may
// call it is asked anew: he may have lost his rank since.
// The error is that of the journal, or of ctx.
func (t *turn) obey(ctx context.Context, e *core.Entry, attach func(core.Upload)) (string, error) {
	m := &e.Message
	c, ok := command.Command{}, false
	if t.with.Commands != nil {
		c, ok = t.with.Commands.Find(e.Command.Name)
	}
	if !ok || c.Rank > m.Author.Rank {
		return "I don't know that command. /help tells what there is.", nil
	}
	if c.Private && !m.Private {
		return "That is between us: please say /" + c.Name + " to me in a private chat.", nil
	}
	args, err := c.Parse(e.Command.Args)
	if err != nil {
		return t.excuse(c.Name, err), nil
	}
	if begun, err := t.beginCommand(ctx, &c); begun || err != nil {
		return "I was stopped while I did that, and cannot tell whether it was done. Please look before you say it again.", err
	}
	text, err := c.Do(ctx, command.Call{
		Path: t.path, Private: m.Private, Author: m.Author, Person: t.person(), Locale: m.Locale,
		Args: args, Target: e.Target, Foreign: m.Foreign, Sees: t.who.Sees, Attach: attach,
	})
	switch {
	case ctx.Err() != nil:
		return "", ctx.Err()
	case err != nil:
		return t.excuse(c.Name, err), nil
	case text == "":
		return "Done.", nil
	}
	return text, nil
}

// beginCommand journals that a command begins that must not run twice. begun
// reports that a former attempt began it: then nobody knows whether it was done.
func (t *turn) beginCommand(ctx context.Context, c *command.Command) (begun bool, err error) {
	if c.Idempotent {
		return false, nil
	}
	key := core.Key{Turn: t.id, Round: commandRound, Step: 1}
	if _, begun = t.Find(key); begun {
		return true, nil
	}
	return false, t.Write(ctx, t.record(key, core.Started, core.Outcome{Action: c.Name}))
}

// enclose sends the files of a command's answer, and returns what is to be said.
func (t *turn) enclose(ctx context.Context, text string, files []core.Upload) string {
	if len(files) == 0 {
		return text
	}
	c := t.with.carrier(t.path)
	if c == nil {
		return text + "\n\nI cannot send files here."
	}
	parts := t.Parts(core.Key{Turn: t.id, Round: filesRound, Step: 1})
	err := core.SendAll(len(files), func(i int) error { return c.Carry(ctx, parts, i+1, core.Sent{Path: t.path}, files[i]) })
	if err != nil {
		return text + "\n\n" + t.excuse("file", err)
	}
	return text
}

// excuse words a command's error for the person; what is not meant for people
// goes to the log.
func (t *turn) excuse(name string, err error) string {
	var said *core.Error
	if errors.As(err, &said) && said.Text != "" {
		if said.Err != nil {
			t.log.Warn("command refused", "command", name, "err", err)
		}
		return said.Text
	}
	t.log.Error("command failed", "command", name, "err", err)
	return "Sorry, that did not work. (E-COMMAND)"
}

// command reports whether the turn answers a chat command: what is said then is
// no talk that a model should read.
func (t *turn) command() bool {
	return len(t.messages) > 0 && t.messages[0].Kind == core.KindCommand
}
