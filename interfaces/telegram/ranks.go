package telegram

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"sync"
	"time"

	tgbotapi "github.com/go-telegram-bot-api/telegram-bot-api/v5"

	"synthbot/core"
)

const (
	rankFresh = 10 * time.Minute
	rankRetry = time.Minute     // after the platform would not say
	rankWait  = 3 * time.Second // how long the first message of a group waits for it
)

var errAskedToWait = errors.New("the platform asked to wait")

// ranks knows who administers which chat.
type ranks struct {
	d     *Driver
	mu    sync.Mutex
	chats map[int64]*admins
}

type admins struct {
	people map[int64]bool
	until  time.Time
	asked  bool
}

func newRanks(d *Driver) *ranks { return &ranks{d: d, chats: map[int64]*admins{}} }

// raise gives an author the rank that the platform gives him in that place.
func (r *ranks) raise(ctx context.Context, m *core.Message) {
	s, err := spotOf(r.d.opt.Name, m.Path)
	who, bad := strconv.ParseInt(m.Author.ID, 10, 64)
	if err != nil || bad != nil || m.Private || s.chat > 0 || who < 0 {
		return
	}
	if r.of(ctx, s.chat)[who] {
		m.Author.Rank = max(m.Author.Rank, core.Moderator)
	}
}

const meetAtOnce = 16

// meet asks about all groups that are new in a batch at the same time, so that
// no group waits for another one.
func (r *ranks) meet(ctx context.Context, updates []*update) {
	strangers := map[int64]bool{}
	for _, u := range updates {
		if u != nil && u.Message != nil && u.Message.Chat.ID < 0 {
			strangers[u.Message.Chat.ID] = true
		}
	}
	r.mu.Lock()
	for chat := range strangers {
		if r.chats[chat] != nil {
			delete(strangers, chat)
		}
	}
	r.mu.Unlock()
	if len(strangers) < 2 {
		return
	}
	var all sync.WaitGroup
	slots := make(chan struct{}, meetAtOnce)
	for chat := range strangers {
		slots <- struct{}{}
		all.Go(func() { r.of(ctx, chat); <-slots })
	}
	all.Wait()
}

// of returns the administrators of a chat. Only the first time somebody waits
// for the platform.
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
	people, err := r.fetch(ctx, chat)
	r.mu.Lock()
	defer r.mu.Unlock()
	a.asked = false
	if err != nil {
		a.until = time.Now().Add(rankRetry)
		r.d.log.Debug("administrators unknown", "chat", chat, "error", err)
		return a.people
	}
	a.people, a.until = people, time.Now().Add(rankFresh)
	return people
}

func (r *ranks) fetch(ctx context.Context, chat int64) (map[int64]bool, error) {
	params := tgbotapi.Params{"chat_id": id(chat)}
	if r.d.pace.closed(chat) {
		return nil, errAskedToWait
	}
	if err := r.d.pace.wait(ctx, 0); err != nil {
		return nil, err
	}
	raw, err := r.d.once(ctx, &request{method: "getChatAdministrators", params: params})
	if isCode(err, 429) {
		r.d.pace.block(chat, afterOf(err))
	}
	if err != nil {
		return nil, err
	}
	var list []member
	if err := json.Unmarshal(raw, &list); err != nil {
		return nil, err
	}
	people := map[int64]bool{}
	for _, m := range list {
		people[m.User.ID] = true
	}
	return people, nil
}

// changed makes the next message ask again.
func (r *ranks) changed(chat int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.chats, chat)
}
