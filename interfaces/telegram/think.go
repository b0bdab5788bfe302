package telegram

import (
	"context"
	"strconv"
	"time"

	"synthbot/core/driver"

	"synthbot/core"
	"synthbot/interfaces/telegram/botapi"
)

const (
	typingEvery = 4500 * time.Millisecond // the platform shows it for five seconds
	typingMost  = 5 * time.Minute
)

// ShowTyping shows that the bot is typing until ctx ends, or for a few minutes at
// most. It shows nothing where that would take room from messages, and where a
// growing text tells it already.
func (d *Driver) ShowTyping(ctx context.Context, p core.Path) {
	if s, err := chatKeyOf(d.opt.Name, p); err == nil {
		d.acknowledge(p, s)
		d.showAction(ctx, s, "typing")
	}
	<-ctx.Done()
}

// ShowRecording shows that the bot records a voice message, as ShowTyping does.
func (d *Driver) ShowRecording(ctx context.Context, p core.Path) {
	if s, err := chatKeyOf(d.opt.Name, p); err == nil {
		d.showAction(ctx, s, "record_voice")
	}
	<-ctx.Done()
}

func (d *Driver) showAction(ctx context.Context, s chatKey, action string) {
	s.chat = d.places.now(s.chat)
	params := botapi.Params{"chat_id": id(s.chat), "action": action}
	switch {
	case s.thread != 0:
		params["message_thread_id"] = id(s.thread)
	case d.places.forum(s.chat):
		params["message_thread_id"] = strconv.Itoa(general)
	}
	for end := time.Now().Add(typingMost); time.Now().Before(end); {
		if time.Since(d.send.drafts.Shown(d.send.draftPlace(s))) >= draftSigns && d.api.Spare(s.chat) {
			_, err := d.api.Try(ctx, &botapi.Request{Method: "sendChatAction", Params: params, Chat: s.chat})
			if err != nil && ctx.Err() == nil {
				d.log.Debug("typing not shown", "chat", s.chat, "err", err)
				if !botapi.IsCode(err, 429, 500, 502, 503, 504) {
					return
				}
			}
		}
		if !driver.Sleep(ctx, typingEvery) {
			return
		}
	}
}
