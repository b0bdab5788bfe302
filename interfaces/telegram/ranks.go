package telegram

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"sync"
	"time"

	"synthbot/core"
	"synthbot/interfaces/telegram/botapi"
)

const (
	rankFresh = 10 * time.Minute
	rankRetry = time.Minute     // after the platform would not say
	rankWait  = 3 * time.Second // how long the first message of a group waits for it
)

var errAskedToWait = errors.New("the platform asked to wait")

// ranks knows who administers which chat, and which channel belongs to it.
type ranks struct {
	d        *Driver
	mu       sync.Mutex
	chats    map[int64]*admins
	channels map[int64]groupChannel
}

// groupChannel is the channel that a group belongs to.
type groupChannel struct {
	channel int64 // 0: none, or not known
	until   time.Time
}

type admins struct {
	people map[int64]bool
	until  time.Time
	asked  bool
}

func newRanks(d *Driver) *ranks {
	return &ranks{d: d, chats: map[int64]*admins{}, channels: map[int64]groupChannel{}}
}

// setRank sets the author's rank in that place, and marks a group's own channel.
func (r *ranks) setRank(ctx context.Context, m *core.Message) {
	s, err := chatKeyOf(r.d.opt.Name, m.Path)
	who, bad := strconv.ParseInt(m.Author.ID, 10, 64)
	if err != nil || bad != nil || m.Private || s.chat > 0 {
		return
	}
	r.link(ctx, s.chat, &m.Author)
	if m.ReplyTo != nil {
		r.link(ctx, s.chat, &m.ReplyTo.From)
	}
	if who < 0 {
		return
	}
	if r.of(ctx, s.chat)[who] {
		m.Author.Rank = max(m.Author.Rank, core.RankModerator)
	}
}

const meetAtOnce = 16

// loadAdmins asks about all groups that are new in a batch at the same time.
func (r *ranks) loadAdmins(ctx context.Context, updates []*update) {
	unknown := map[int64]bool{}
	r.mu.Lock()
	for _, u := range updates {
		if u != nil && u.Message != nil && u.Message.Chat.ID < 0 && r.chats[u.Message.Chat.ID] == nil {
			unknown[u.Message.Chat.ID] = true
		}
	}
	r.mu.Unlock()
	if len(unknown) < 2 {
		return
	}
	var all sync.WaitGroup
	slots := make(chan struct{}, meetAtOnce)
	for chat := range unknown {
		slots <- struct{}{}
		all.Go(func() { r.of(ctx, chat); <-slots })
	}
	all.Wait()
}

// of returns the administrators of a chat. Only the first call waits for the platform.
func (r *ranks) of(ctx context.Context, chat int64) map[int64]bool {
	r.mu.Lock()
	a := r.chats[chat]
	first := a == nil
	if first {
		room(r.chats, maxPlaces)
		a = &admins{}
		r.chats[chat] = a
	}
	stale := !a.asked && time.Now().After(a.until)
	if stale {
		a.asked = true
	}
	people := a.people
	r.mu.Unlock()
	switch {
	case first:
		ctx, cancel := context.WithTimeout(ctx, rankWait)
		defer cancel()
		return r.ask(ctx, chat, a)
	case stale:
		r.d.later(func(ctx context.Context) { r.ask(ctx, chat, a) })
	}
	return people
}

// ask fetches the administrators.
func (r *ranks) ask(ctx context.Context, chat int64, a *admins) map[int64]bool {
	var list []member
	err := r.fetch(ctx, "getChatAdministrators", chat, &list)
	r.mu.Lock()
	defer r.mu.Unlock()
	a.asked = false
	if err != nil {
		a.until = time.Now().Add(rankRetry)
		r.d.log.Debug("administrators unknown", "chat", chat, "err", err)
		return a.people
	}
	a.people, a.until = map[int64]bool{}, time.Now().Add(rankFresh)
	for _, m := range list {
		a.people[m.User.ID] = true
	}
	return a.people
}

// link marks an author who is the channel that the group belongs to. The platform is asked
// when somebody speaks as a channel there, at most once a minute.
func (r *ranks) link(ctx context.Context, chat int64, a *core.Author) {
	if a.Channel == core.ChannelOther && id(r.channel(ctx, chat)) == a.ID {
		a.Channel = core.ChannelLinked
	}
}

// channel returns the channel that a group belongs to; 0 where there is none.
func (r *ranks) channel(ctx context.Context, chat int64) int64 {
	r.mu.Lock()
	l, ok := r.channels[chat]
	r.mu.Unlock()
	if ok && time.Now().Before(l.until) {
		return l.channel
	}
	ctx, cancel := context.WithTimeout(ctx, rankWait)
	defer cancel()
	var full struct {
		Channel int64 `json:"linked_chat_id"`
	}
	if err := r.fetch(ctx, "getChat", chat, &full); err != nil {
		r.d.log.Debug("linked channel unknown", "chat", chat, "err", err)
		l.until = time.Now().Add(rankRetry)
	} else {
		l = groupChannel{full.Channel, time.Now().Add(rankFresh)}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	room(r.channels, maxPlaces)
	r.channels[chat] = l
	return l.channel
}

// fetch asks the platform about a chat, once.
func (r *ranks) fetch(ctx context.Context, method string, chat int64, answer any) error {
	if r.d.api.Quiet(chat) {
		return errAskedToWait
	}
	if err := r.d.api.Wait(ctx); err != nil {
		return err
	}
	raw, err := r.d.api.Try(ctx, &botapi.Request{Method: method, Params: botapi.Params{}, Chat: chat})
	if err != nil {
		return err
	}
	return json.Unmarshal(raw, answer)
}

// changed makes the next message ask again.
func (r *ranks) changed(chat int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.chats, chat)
}
