package discord

import (
	"cmp"
	"context"
	"errors"
	"net/url"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"synthbot/core"
	"synthbot/core/recent"
	"synthbot/core/sorting"
	"synthbot/interfaces/discord/rest"
)

// pageSize is the most messages that one request may ask for.
const pageSize = 100

// A channel's events wait while its missed messages are fetched: the first time during manyTries, about three minutes,
// in which an outage may end. Then they are received without the missed ones, which are fetched again every minute.
const (
	manyTries    = 16
	refetchAfter = time.Minute
)

// startFetch looks a channel up and fetches its missed messages, in a goroutine. The channel's events wait in
// the backlog until finish is called. It does nothing if that has started before.
func (t *intake) startFetch(ctx context.Context, b *backlog) {
	if b.started {
		return
	}
	b.started = true
	t.backlogs[b.channel] = b
	cur, _ := t.d.cursors.get(b.channel)
	b.from = cmp.Or(cur.Last, b.from)
	session, tries := t.session, manyTries
	if !cur.failed.IsZero() {
		tries = 1
	}
	t.jobs.Go(func() {
		select {
		case t.slot <- struct{}{}:
		case <-ctx.Done():
			return
		}
		b.place = t.lookUp(ctx, b.channel, b.guild)
		if b.from != "" {
			b.missed, b.failed = t.missed(ctx, b.channel, b.from, tries)
			t.addMembers(ctx, session, b.place.Guild, b.missed)
		}
		<-t.slot
		select {
		case t.done <- b:
		case <-ctx.Done():
		}
	})
}

// finish handles the fetched messages of a channel, then its backlog.
func (t *intake) finish(ctx context.Context, b *backlog) {
	delete(t.backlogs, b.channel)
	t.d.cursors.recordFetch(b.channel, b.place, b.from, b.failed)
	for i := range b.missed {
		b.missed[i].Channel = b.channel
		t.takeMessage(&b.missed[i], b.place)
	}
	if !b.gap {
		b.intact = len(b.events)
	}
	for _, w := range b.events[:b.intact] {
		t.takeEvent(w, b.place) // the inbox ignores messages that were also fetched
	}
	if b.gap && t.commit(ctx) {
		// The gap is fetched before the events after it are handled, in case fetching fails.
		t.startFetch(ctx, &backlog{channel: b.channel, guild: b.place.Guild, events: b.events[b.intact:]})
	}
}

// lookUp returns the kind of a channel and, for a thread, its parent. If that is unknown, the channel counts as
// a text channel or a direct message.
func (t *intake) lookUp(ctx context.Context, id, guild string) place {
	p, err := t.d.locate(ctx, id, manyTries)
	if err != nil {
		t.d.log.Warn("channel not looked up", "channel", id, "err", err)
		p = place{Guild: guild}
		if guild == "" {
			p.Kind = channelDirect
		}
	}
	return p
}

// missed fetches the messages of a channel after a given one, oldest first, within the configured limits. failed is
// when that failed, unless Discord refused it.
func (t *intake) missed(ctx context.Context, channel, last string, tries int) (all []message, failed time.Time) {
	oldest := idAt(t.d.opt.Clock().Add(t.d.rest.Ahead() - t.d.set.BackfillAge))
	if !idTime(last).IsZero() && newer(oldest, last) {
		last = oldest
	}
	for len(all) < t.d.set.BackfillCount {
		page, err := t.d.page(ctx, channel, last, min(pageSize, t.d.set.BackfillCount-len(all)), tries)
		if err != nil {
			t.d.log.Warn("missed messages not fetched", "channel", channel, "err", err)
			switch {
			case rest.NotFound(err): // the channel was deleted while the bot was away
				t.d.cursors.drop(func(id string, _ *cursor) bool { return id == channel })
			case errors.Is(err, core.ErrAway) || !rest.Refused(err):
				failed = time.Now()
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
		since := idTime(all[0].ID).Format(time.RFC3339)
		t.d.log.Info("missed messages fetched", "channel", channel, "messages", len(all), "since", since)
	}
	return all, failed
}

// page fetches at most n messages that follow the given one, oldest first.
func (a *account) page(ctx context.Context, channel, after string, n, tries int) ([]message, error) {
	var page []message
	err := a.rest.Do(ctx, rest.Request{
		Method: "GET", Route: "/channels/{}/messages", IDs: []string{channel}, Out: &page, Tries: tries,
		Query: url.Values{"after": {after}, "limit": {strconv.Itoa(n)}},
	})
	page = slices.DeleteFunc(page, func(m message) bool { return !newer(m.ID, after) })
	sorting.Sort(page, func(a, b message) int { return compareIDs(a.ID, b.ID) })
	return page, err
}

// Limits of fetching members. Fetched messages do not contain them.
const (
	maxRequested = 200              // members in one session of the gateway
	askingTime   = 20 * time.Second // for one channel, whose events wait
)

// members are the guild members that were fetched in a session of the gateway. Safe for concurrent use.
type members struct {
	known *recent.Shared[[2]string, *member] // by guild and user; nil: has left the guild
	left  atomic.Int64                       // how many may still be fetched
}

func newMembers() *members {
	m := &members{known: recent.NewShared[[2]string, *member](maxRequested)}
	m.left.Store(maxRequested)
	return m
}

// addMembers adds the authors' members to fetched messages, the latest first, so that names and ranks are the
// same as in live messages. Without it, an author counts as a plain member.
func (t *intake) addMembers(ctx context.Context, session *members, guild string, list []message) {
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
		key := [2]string{guild, m.Author.ID}
		known, ok := session.known.Get(key)
		if !ok && session.left.Add(-1) >= 0 {
			known = &member{}
			switch err := t.d.rest.Get(ctx, known, "/guilds/{}/members/{}", guild, m.Author.ID); {
			case rest.NotFound(err):
				known = nil
			case err != nil:
				t.d.log.Warn("authors of missed messages not fetched", "guild", guild, "err", err)
				return
			}
			session.known.Put(key, known)
		}
		m.Member = known
	}
}
