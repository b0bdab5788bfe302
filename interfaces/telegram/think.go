package telegram

import (
	"context"
	"strconv"
	"time"

	tgbotapi "github.com/go-telegram-bot-api/telegram-bot-api/v5"

	"synthbot/core"
)

const (
	typingEvery = 4500 * time.Millisecond // the platform shows it for five seconds
	typingMost  = 5 * time.Minute
)

// Think shows that the bot is typing until ctx ends, or for a few minutes at
// most. It shows nothing where that would take room from messages, and where a
// growing text tells it already.
func (d *Driver) Think(ctx context.Context, p core.Path) {
	if s, err := spotOf(d.opt.Name, p); err == nil {
		d.acknowledge(p, s)
		d.typing(ctx, s)
	}
	<-ctx.Done()
}

func (d *Driver) typing(ctx context.Context, s spot) {
	s.chat = d.places.now(s.chat)
	params := tgbotapi.Params{"chat_id": id(s.chat), "action": "typing"}
	switch {
	case s.thread != 0:
		params["message_thread_id"] = id(s.thread)
	case d.places.forum(s.chat):
		params["message_thread_id"] = strconv.Itoa(general)
	}
	for end := time.Now().Add(typingMost); time.Now().Before(end); {
		if time.Since(d.drafts.Shown(d.draftPlace(s))) >= draftSigns && d.pace.spare(s.chat) {
			if _, err := d.once(ctx, &request{method: "sendChatAction", params: params}); err != nil && ctx.Err() == nil {
				d.typingFailed(s, err)
				if !isCode(err, 429, 500, 502, 503, 504) {
					return
				}
			}
		}
		if sleep(ctx, typingEvery) != nil {
			return
		}
	}
}

func (d *Driver) typingFailed(s spot, err error) {
	if e, ok := err.(*apiError); ok && e.code == 429 {
		d.pace.block(s.chat, e.after)
	}
	d.log.Debug("typing not shown", "chat", s.chat, "err", err)
}
