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
func (t *turn) scripted(ctx context.Context) (core.Plan, bool) {
	e := &t.messages[0]
	switch {
	case e.Reply != "":
		return t.say(e.Reply), true
	case e.Kind == core.KindCommand && e.Command != nil:
		var files []core.Upload
		text := t.obey(ctx, e, func(f core.Upload) { files = append(files, f) })
		return t.say(t.enclose(ctx, text, files)), true
	}
	return core.Plan{}, false
}

// obey carries a command out and returns what is answered. Whether the person may
// call it is asked anew: he may have lost his rank since.
func (t *turn) obey(ctx context.Context, e *core.Entry, attach func(core.Upload)) string {
	m := &e.Message
	c, ok := command.Command{}, false
	if t.with.Commands != nil {
		c, ok = t.with.Commands.Find(e.Command.Name)
	}
	if !ok || c.Rank > m.Author.Rank {
		return "I don't know that command. /help tells what there is."
	}
	if c.Private && !m.Private {
		return "That is between us: please say /" + c.Name + " to me in a private chat."
	}
	args, err := c.Parse(e.Command.Args)
	if err != nil {
		return t.excuse(c.Name, err)
	}
	text, err := c.Do(ctx, command.Call{
		Path: t.path, Private: m.Private, Author: m.Author, Person: t.person(), Locale: m.Locale,
		Args: args, Target: e.Target, Sees: t.who.Sees, Attach: attach,
	})
	switch {
	case err != nil:
		return t.excuse(c.Name, err)
	case text == "":
		return "Done."
	}
	return text
}

// enclosed is the round of a turn's journal that the files of a command's answer
// are parts of.
const enclosed = decided + 2

// enclose sends the files of a command's answer, and returns what is to be said.
func (t *turn) enclose(ctx context.Context, text string, files []core.Upload) string {
	if len(files) == 0 {
		return text
	}
	var c core.Carrier
	if t.with.Carrier != nil {
		c = t.with.Carrier(t.path)
	}
	if c == nil {
		return text + "\n\nI cannot send files here."
	}
	parts := t.Parts(core.Key{Turn: t.id, Round: enclosed, Step: 1})
	for i, f := range files {
		if err := c.Carry(ctx, parts, i+1, core.Sent{Path: t.path}, f); err != nil {
			return text + "\n\n" + t.excuse("file", err)
		}
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
