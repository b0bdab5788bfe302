package discord

import (
	"cmp"
	"context"
	"net/url"
	"slices"
	"strconv"
	"time"

	"synthbot/core/driver"
	"synthbot/core/recent"
	"synthbot/core/sorting"
	"synthbot/interfaces/discord/rest"
)

// pageSize is the most messages that one request may ask for.
const pageSize = 100

// begin looks a channel up, and fetches what was missed there, in a goroutine of its own.
// The channel's events wait for that.
func (t *intake) begin(ctx context.Context, channel string, h *hold) {
	if h.begun {
		return
	}
	h.begun = true
	t.holds[channel] = h
	cur, known := t.d.cursors.get(channel)
	from, guild := cur.Last, h.guild
	if !known {
		from = h.from
	}
	fetch := h.fetch && from != ""
	t.jobs.Go(func() {
		select {
		case t.slot <- struct{}{}:
		case <-ctx.Done():
			return
		}
		f := found{channel: channel, place: t.lookUp(ctx, channel, guild)}
		if fetch {
			f.missed = t.missed(ctx, channel, from)
			t.addMembers(ctx, f.place.Guild, f.missed)
		}
		<-t.slot
		select {
		case t.done <- f:
		case <-ctx.Done():
		}
	})
}

// found takes in what was fetched of a channel, then what waited for that.
func (t *intake) found(ctx context.Context, f found) {
	h := t.holds[f.channel]
	if h == nil {
		return
	}
	delete(t.holds, f.channel)
	for i := range f.missed {
		m := &f.missed[i]
		m.Channel, m.Guild = f.channel, f.place.Guild
		t.message(m, f.place)
	}
	if !h.gap {
		h.sound = len(h.events)
	}
	for _, w := range h.events[:h.sound] {
		t.take(w, f.place) // what was fetched as well is taken once
	}
	if h.gap && t.commit(ctx) {
		// What is missing is fetched before the events behind the gap are taken. The messages
		// among these may be fetched as well, unless nothing can be fetched.
		t.begin(ctx, f.channel, &hold{fetch: true, guild: f.place.Guild, events: h.events[h.sound:]})
	}
}

// lookUp asks what kind of channel this is and, of a thread, its parent. If that cannot
// be found out, it is taken for a text channel or a direct message.
func (t *intake) lookUp(ctx context.Context, id, guild string) place {
	p, err := t.d.locate(ctx, id, t.d.persist)
	if err != nil {
		t.d.log.Warn("channel not looked up", "channel", id, "err", err)
		p = place{Guild: guild}
		if guild == "" {
			p.Kind = channelDirect
		}
	}
	return p
}

// persist makes a request that may fail for a while: events wait for its answer.
func (a *account) persist(ctx context.Context, q rest.Request) error {
	wait := a.timings.gateway.Backoff
	for try := 1; ; try++ {
		err := a.rest.Do(ctx, q)
		if err == nil || ctx.Err() != nil || rest.Refused(err) || try == 8 || !driver.Sleep(ctx, driver.Jitter(wait)) {
			return err
		}
		wait = min(2*wait, a.timings.gateway.Longest)
	}
}

// missed fetches what was said in a channel after a message, oldest first, within the
// configured limits.
func (t *intake) missed(ctx context.Context, channel, last string) []message {
	oldest := idAt(t.d.clock().Add(t.d.rest.Ahead() - t.d.set.BackfillAge))
	if last == "" || !born(last).IsZero() && newer(oldest, last) {
		last = oldest
	}
	var all []message
	for len(all) < t.d.set.BackfillCount {
		page, err := t.d.page(ctx, channel, last, min(pageSize, t.d.set.BackfillCount-len(all)))
		if err != nil {
			t.d.log.Warn("missed messages not fetched", "channel", channel, "err", err)
			if rest.NotFound(err) {
				// It was deleted while nobody listened.
				t.d.cursors.drop(func(id string, _ *cursor) bool { return id == channel })
			}
			break
		}
		all = append(all, page...)
		if len(page) < pageSize {
			break
		}
		last = page[len(page)-1].ID
	}
	if len(all) > 0 {
		since := born(all[0].ID).Format(time.RFC3339)
		t.d.log.Info("missed messages fetched", "channel", channel, "messages", len(all), "since", since)
	}
	return all
}

// page fetches the messages next to one, at most n, oldest first.
func (a *account) page(ctx context.Context, channel, after string, n int) ([]message, error) {
	var page []message
	err := a.persist(ctx, rest.Request{
		Method: "GET", Route: "/channels/{}/messages", IDs: []string{channel}, Out: &page,
		Query: url.Values{"after": {after}, "limit": {strconv.Itoa(n)}},
	})
	page = slices.DeleteFunc(page, func(m message) bool { return !newer(m.ID, after) })
	sorting.Sort(page, func(a, b message) int {
		return cmp.Or(cmp.Compare(len(a.ID), len(b.ID)), cmp.Compare(a.ID, b.ID))
	})
	return page, err
}

// Limits of asking for members: fetched messages come without them.
const (
	maxRequested = 200 // members in one session of the gateway
	maxMembers   = 1000
	askingTime   = 20 * time.Second // for one channel: its events wait for it
)

// refill forgets members, and allows as many requests as a session may have.
func (t *intake) refill() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.members, t.left = recent.NewCache[[2]string, *member](maxMembers), maxRequested
}

// addMembers adds the authors' members to fetched messages, the latest first, so that names
// and ranks are those of live messages. Without one, an author counts as a plain member.
func (t *intake) addMembers(ctx context.Context, guild string, list []message) {
	if guild == "" {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, askingTime)
	defer cancel()
	for i := range slices.Backward(list) {
		m := &list[i]
		if m.Author == nil || m.Author.Bot || m.Webhook != "" || m.Member != nil {
			continue
		}
		var err error
		if m.Member, err = t.memberOf(ctx, guild, m.Author.ID); err != nil {
			t.d.log.Warn("authors of missed messages not asked for", "guild", guild, "err", err)
			return
		}
	}
}

// memberOf asks for a user's member; nil if there is none, or too many were asked for.
func (t *intake) memberOf(ctx context.Context, guild, id string) (*member, error) {
	key := [2]string{guild, id}
	t.mu.Lock()
	found, ok := t.members.Get(key)
	if ok || t.left <= 0 {
		t.mu.Unlock()
		return found, nil
	}
	t.left--
	t.mu.Unlock()
	got := &member{}
	err := t.d.rest.Get(ctx, got, "/guilds/{}/members/{}", guild, id)
	if rest.NotFound(err) {
		got, err = nil, nil
	}
	if err != nil {
		return nil, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.members.Put(key, got)
	return got, nil
}
