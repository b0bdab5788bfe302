package telegram

import (
	"context"
	"errors"
	"sync"
	"time"

	"synthbot/core"
	"synthbot/interfaces/telegram/botapi"
)

const (
	rankTTL   = 10 * time.Minute
	rankRetry = time.Minute     // after a failed call
	rankWait  = 3 * time.Second // how long the first message of a group waits for the call
)

type ranks struct {
	d        *Driver
	admins   chatCache[map[int64]bool]
	channels chatCache[int64] // 0: none
}

func newRanks(d *Driver) *ranks {
	r := &ranks{d: d}
	r.admins = chatCache[map[int64]bool]{ask: r.askAdmins, background: d.background}
	r.channels = chatCache[int64]{ask: r.askChannel, background: d.background}
	r.admins.chats, r.channels.chats = map[int64]*cachedValue[map[int64]bool]{}, map[int64]*cachedValue[int64]{}
	return r
}

// chatCache caches what Telegram says about chats. Only the first get of a chat waits for Telegram.
type chatCache[V any] struct {
	ask        func(ctx context.Context, chat int64) (V, error)
	background func(func(context.Context)) bool
	mu         sync.Mutex
	chats      map[int64]*cachedValue[V]
}

type cachedValue[V any] struct {
	value V
	until time.Time // then Telegram is asked again
}

// setRank sets the author's rank in the place, and marks the group's linked channel.
func (r *ranks) setRank(ctx context.Context, m *core.Message) {
	s, err := chatKeyOf(r.d.opt.Name, m.Path)
	who := number(m.Author.ID)
	if err != nil || who == 0 || m.Private || s.chat > 0 {
		return
	}
	r.markLinked(ctx, s.chat, &m.Author)
	if m.ReplyTo != nil {
		r.markLinked(ctx, s.chat, &m.ReplyTo.From)
	}
	if who > 0 && r.admins.get(ctx, s.chat)[who] {
		m.Author.Rank = max(m.Author.Rank, core.RankModerator)
	}
}

// loadAdmins fetches the administrators of all groups that are new in a batch, in parallel.
func (r *ranks) loadAdmins(ctx context.Context, updates []*update) {
	unknown := map[int64]bool{}
	r.admins.mu.Lock()
	for _, u := range updates {
		if u != nil && u.Message != nil && u.Message.Chat.ID < 0 && r.admins.chats[u.Message.Chat.ID] == nil {
			unknown[u.Message.Chat.ID] = true
		}
	}
	r.admins.mu.Unlock()
	if len(unknown) < 2 {
		return
	}
	var all sync.WaitGroup
	slots := make(chan struct{}, 16)
	for chat := range unknown {
		slots <- struct{}{}
		all.Go(func() { r.admins.get(ctx, chat); <-slots })
	}
	all.Wait()
}

// get returns the value of a chat, which may be stale or, after a failed call, zero.
func (l *chatCache[V]) get(ctx context.Context, chat int64) V {
	l.mu.Lock()
	a := l.chats[chat]
	first := a == nil
	if first {
		makeRoom(l.chats, maxPlaces)
		a = &cachedValue[V]{}
		l.chats[chat] = a
	}
	stale := time.Now().After(a.until)
	if stale {
		a.until = time.Now().Add(rankRetry)
	}
	value := a.value
	l.mu.Unlock()
	switch {
	case first:
		ctx, cancel := context.WithTimeout(ctx, rankWait)
		defer cancel()
		return l.refresh(ctx, chat, a)
	case stale:
		l.background(func(ctx context.Context) { l.refresh(ctx, chat, a) })
	}
	return value
}

// refresh asks Telegram. After a failure, it returns the old value.
func (l *chatCache[V]) refresh(ctx context.Context, chat int64, a *cachedValue[V]) V {
	value, err := l.ask(ctx, chat)
	l.mu.Lock()
	defer l.mu.Unlock()
	if err == nil {
		a.value, a.until = value, time.Now().Add(rankTTL)
	}
	return a.value
}

func (l *chatCache[V]) invalidate(chat int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.chats, chat)
}

func (r *ranks) askAdmins(ctx context.Context, chat int64) (map[int64]bool, error) {
	var list []member
	err := r.fetch(ctx, "getChatAdministrators", chat, &list)
	people := map[int64]bool{}
	for _, m := range list {
		people[m.User.ID] = true
	}
	return people, err
}

func (r *ranks) askChannel(ctx context.Context, chat int64) (int64, error) {
	var full struct {
		Channel int64 `json:"linked_chat_id"`
	}
	err := r.fetch(ctx, "getChat", chat, &full)
	return full.Channel, err
}

// markLinked marks an author that is the group's linked channel. Telegram is asked only if the author is a channel,
// and at most once a minute.
func (r *ranks) markLinked(ctx context.Context, chat int64, a *core.Author) {
	if a.Channel == core.ChannelOther && id(r.channels.get(ctx, chat)) == a.ID {
		a.Channel = core.ChannelLinked
	}
}

// fetch asks Telegram about a chat, without repeating the call.
func (r *ranks) fetch(ctx context.Context, method string, chat int64, answer any) error {
	err := errors.New("calls must wait")
	if !r.d.api.MustWait(chat) {
		err = r.d.api.Wait(ctx)
	}
	if err == nil {
		err = r.d.api.Try(ctx, &botapi.Request{
			Method: method, Params: botapi.Params{}, Chat: chat, Repeatable: true, Result: answer,
		})
	}
	if err != nil {
		r.d.log.Debug("chat not fetched", "chat", chat, "method", method, "err", err)
	}
	return err
}
