package turn

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"synthbot/core"
	"synthbot/core/action"
)

// answeredOnly reports whether the entry is a message of the bot that answered only this user.
func answeredOnly(e *core.Entry, id string) bool {
	return e.Self && e.Message.ReplyTo != nil && e.Message.ReplyTo.From.ID == id
}

// guardRewrite refuses to change or delete a question or, for ordinary users, any message but an answer to themselves.
func (t *turn) guardRewrite(ctx context.Context, _ *action.Definition, c core.Call) error {
	var p struct {
		ID   json.RawMessage `json:"message_id"` // a text or a number
		Path core.Path       `json:"interface_path"`
	}
	if err := json.Unmarshal(c.Payload, &p); err != nil {
		return &core.Error{Kind: core.Invalid, Text: "it is not clear which message is meant", Err: err}
	}
	if p.Path.IsZero() {
		p.Path = t.path
	}
	var id string
	if json.Unmarshal(p.ID, &id) != nil {
		id = string(p.ID)
	}
	e, err := t.findMessage(ctx, p.Path, strings.TrimSpace(id))
	switch {
	case err != nil:
		return err
	case strings.HasPrefix(e.Data, core.QuestionMark):
		return core.Errorf(core.Forbidden, "that is a question to a user, which cannot be changed or deleted")
	case c.Author.Rank < core.RankModerator && !answeredOnly(&e, c.Author.ID):
		return core.Errorf(core.Forbidden, "users may change or delete only the bot's answers to themselves")
	}
	return nil
}

// findMessage returns a message, from the place or another one of the same chat or server, where ids may be shared;
// the zero Entry if there is none. It also finds what this turn sent, which no log has yet.
func (t *turn) findMessage(ctx context.Context, place core.Path, id string) (found core.Entry, err error) {
	for _, j := range append(slices.Clone(t.decided), t.journal) {
		for _, s := range j.sent {
			if s.ID == id {
				return t.logEntry(s), nil
			}
		}
	}
	err = t.turns.store.View(ctx, func(v core.View) error {
		heads, err := v.Places(place.Group())
		if err != nil {
			return err
		}
		for _, h := range heads {
			e, ok, err := v.Entry(h.Path, id)
			if err != nil {
				return err
			}
			if ok && (found.Message.ID == "" || strings.HasPrefix(e.Data, core.QuestionMark)) {
				found = e
			}
		}
		return nil
	})
	return found, err
}

// pressRank returns the rank with which a button is pressed: the user's if it can only answer a
// question (see decide) or belongs to a message that answered only them, else that of an ordinary user.
func (t *turn) pressRank(ctx context.Context, e *core.Entry) (core.Rank, error) {
	m := &e.Message
	_, _, asks := parseQuestion(e.Data)
	if asks || m.Author.Rank == core.RankMember {
		return m.Author.Rank, nil
	}
	under, _, err := core.ReadEntry(ctx, t.turns.store, t.path, e.Target)
	if err != nil || answeredOnly(&under, m.Author.ID) {
		return m.Author.Rank, err
	}
	return core.RankMember, nil
}
