package telegram

import (
	"context"
	"errors"
	"fmt"

	"synthbot/core"
	"synthbot/interfaces/telegram/botapi"
)

// explain makes a call's failure an action's error, with words for people; nil stays nil.
func explain(err error) error {
	var api *botapi.Error
	var network *botapi.NetError
	switch {
	case err == nil, errors.Is(err, context.Canceled),
		errors.Is(err, context.DeadlineExceeded) && !errors.As(err, &network):
		return err
	case errors.Is(err, core.ErrUnknownOutcome):
		return &core.Error{Kind: core.Temporary, Text: "Telegram did not say whether it was done", Err: err}
	case errors.As(err, &network):
		if !network.Unknown { // there is no way to the platform now, for nothing of what waits
			err = fmt.Errorf("%w: %w", core.ErrAway, err)
		}
		return &core.Error{Kind: core.Temporary, Text: "Telegram cannot be reached", Err: err}
	case !errors.As(err, &api):
		return err
	}
	e := &core.Error{Kind: core.Broken, Text: "Telegram refused it", Err: err}
	switch {
	case api.Code == 429:
		e.Kind, e.After, e.Text = core.Temporary, api.After, "Telegram asks to wait"
		e.Err = fmt.Errorf("%w: %w", core.ErrAway, err)
	case api.Code >= 500:
		e.Kind, e.Text = core.Temporary, "Telegram has trouble"
		if api.Down() {
			e.Err = fmt.Errorf("%w: %w", core.ErrAway, err)
		}
	case botapi.RefusesBot(err):
		e.Text, e.Err = "Telegram does not know this bot any more", fmt.Errorf("%w: %w", core.ErrAway, err)
	case api.Code == 403:
		e.Text = "the bot may not write there: it was blocked or removed"
	case api.Says("chat not found"):
		e.Kind, e.Text = core.Invalid, "there is no such chat, or the bot has never been there"
	case aboutFile(err):
		e.Kind, e.Text = core.Invalid,
			"Telegram does not take that file: it is not there, too large, or no such kind of file"
	case api.Says("thread not found", "TOPIC_DELETED"):
		e.Text = "that topic is gone"
	case api.Says("TOPIC_CLOSED"):
		e.Text = "that topic is closed"
	case api.Says("not found", "can't be edited", "can't be deleted"):
		e.Kind, e.Text = core.Invalid, "that message is not there, or is not the bot's to change"
	case api.Says("not enough rights", "CHAT_WRITE_FORBIDDEN", "have no rights"):
		e.Text = "the bot lacks the right to do that there"
	}
	return e
}

// aboutWords reports whether a refusal may be about how a message is written, and not
// about where it goes.
func aboutWords(err error) bool {
	var e *botapi.Error
	return errors.As(err, &e) && e.Code == 400 && e.Migrate == 0 &&
		!e.Says("chat not found", "thread not found", "TOPIC_", "rights", "FORBIDDEN", "to edit not found",
			"not modified", "can't be edited", "no text in the message", "no caption in the message",
			"PEER_ID_INVALID", "replied not found") &&
		!aboutFile(err)
}

// aboutFile reports whether a refusal is about what a file holds or may be.
func aboutFile(err error) bool {
	var e *botapi.Error
	return errors.As(err, &e) && e.Code == 400 &&
		e.Says("IMAGE_PROCESS_FAILED", "PHOTO_", "wrong type of", "wrong file", "VOICE_MESSAGES_FORBIDDEN", "VIDEO_",
			"file must be", "failed to get HTTP URL", "WEBPAGE_", "file is too big")
}
