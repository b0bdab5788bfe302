package discord

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"time"

	"synthbot/interfaces/discord/rest"
)

// tempo is how patient the driver is; tests are less so.
type tempo struct {
	patience time.Duration // for a gateway that says nothing yet
	identify time.Duration // between two identifies of one bucket; the platform wants five seconds
	invalid  time.Duration // the least wait after an invalid session
	backoff  time.Duration // the first wait after a failed connection
	longest  time.Duration // the longest one
	retry    time.Duration // the first wait before a request is made again
	guilds   time.Duration // how long a guild that was announced is waited for
	flush    time.Duration // between two notes of what was seen
	typing   time.Duration // between two signs of typing
	defers   time.Duration // how long an interaction waits for the disk
	answers  time.Duration // how long the answer to an interaction may take
	draft    time.Duration // between two edits of a growing message
	left     time.Duration // before a draft that others left is taken away, where nobody says anything
}

var usual = tempo{
	patience: 20 * time.Second, identify: 5250 * time.Millisecond, invalid: time.Second,
	backoff: time.Second, longest: 2 * time.Minute, retry: 300 * time.Millisecond,
	guilds: 20 * time.Second, flush: 2 * time.Second, typing: 8 * time.Second, defers: 1500 * time.Millisecond, answers: 3 * time.Second, draft: 1500 * time.Millisecond, left: 5 * time.Minute,
}

// gateway is what REST tells about connecting.
type gateway struct {
	address     string
	shards      int
	remaining   int // identifies left; -1: not told
	reset       time.Duration
	concurrency int
}

// askGateway asks where to connect to.
func (d *Driver) askGateway(ctx context.Context) (gateway, error) {
	var bot struct {
		URL    string `json:"url"`
		Shards int    `json:"shards"`
		Limit  struct {
			Remaining   *int  `json:"remaining"`
			Reset       int64 `json:"reset_after"`
			Concurrency int   `json:"max_concurrency"`
		} `json:"session_start_limit"`
	}
	err := d.rest.Do(ctx, rest.Request{Method: "GET", Route: "/gateway/bot", Out: &bot})
	if err == nil && bot.URL == "" || rest.NotFound(err) {
		err = d.rest.Do(ctx, rest.Request{Method: "GET", Route: "/gateway", Out: &bot})
	}
	if err != nil {
		return gateway{}, fmt.Errorf("gateway: %w", err)
	}
	if err := gatewayAddress(bot.URL); err != nil {
		return gateway{}, err
	}
	if d.set.api.Scheme == "https" && !strings.HasPrefix(bot.URL, "wss:") {
		return gateway{}, fmt.Errorf("gateway: %q is not encrypted, and the token would go there", bot.URL)
	}
	g := gateway{address: bot.URL, shards: min(max(bot.Shards, 1), maxShards), remaining: -1, concurrency: max(bot.Limit.Concurrency, 1)}
	if r := bot.Limit.Remaining; r != nil && bot.Limit.Reset > 0 {
		g.remaining, g.reset = *r, time.Duration(bot.Limit.Reset)*time.Millisecond
	}
	return g, nil
}

func gatewayAddress(text string) error {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.Scheme != "ws" && u.Scheme != "wss" {
		return fmt.Errorf("gateway: %q is no address of one", text)
	}
	return nil
}

// findGateway asks until it is told, unless asking is of no use.
func (d *Driver) findGateway(ctx context.Context) (gateway, error) {
	for wait := d.tempo.backoff; ; wait = min(2*wait, d.tempo.longest) {
		g, err := d.askGateway(ctx)
		var api *rest.Error
		switch {
		case err == nil:
			return g, d.awaitStarts(ctx, g)
		case errors.As(err, &api) && api.Status == 401:
			return g, errToken
		case ctx.Err() != nil:
			return g, ctx.Err()
		}
		d.log.Warn("the gateway's address is not to be had", "err", err)
		if !rest.Sleep(ctx, rest.Jitter(wait)) {
			return g, ctx.Err()
		}
	}
}

// freshGateway asks again before a further session begins; where the old answer
// must do, it does.
func (d *Driver) freshGateway(ctx context.Context, old gateway) (gateway, error) {
	g, err := d.askGateway(ctx)
	var api *rest.Error
	switch {
	case err == nil:
		return g, d.awaitStarts(ctx, g)
	case errors.As(err, &api) && api.Status == 401:
		return old, errToken
	}
	return old, ctx.Err()
}

// awaitStarts waits where the platform allows no more sessions today: beyond
// the limit it resets the bot's token.
func (d *Driver) awaitStarts(ctx context.Context, g gateway) error {
	if g.remaining != 0 {
		return nil
	}
	d.admin(fmt.Sprintf("%s: Discord allows no more sessions for %s; waiting", d.name, g.reset.Round(time.Second)))
	if !rest.Sleep(ctx, g.reset) {
		return ctx.Err()
	}
	return nil
}

// starts spaces identifies: one for each bucket of shards in each period.
type starts struct {
	every   time.Duration
	mu      sync.Mutex
	buckets map[int]*start
}

// start is one bucket. Who holds the token may identify, from next on.
type start struct {
	token chan struct{}
	next  time.Time
}

func newStarts(every time.Duration) *starts {
	return &starts{every: every, buckets: make(map[int]*start)}
}

// wait waits for the shard's turn to identify. done is to be called when it has
// done so, or will not; calling it again has no effect.
func (s *starts) wait(ctx context.Context, shard, concurrency int) (done func(), err error) {
	s.mu.Lock()
	b := s.buckets[shard%concurrency]
	if b == nil {
		b = &start{token: make(chan struct{}, 1)}
		b.token <- struct{}{}
		s.buckets[shard%concurrency] = b
	}
	s.mu.Unlock()
	if !received(ctx, b.token) {
		return nil, ctx.Err()
	}
	if !rest.Sleep(ctx, time.Until(b.next)) {
		b.token <- struct{}{}
		return nil, ctx.Err()
	}
	return sync.OnceFunc(func() {
		b.next = time.Now().Add(s.every)
		b.token <- struct{}{}
	}), nil
}
