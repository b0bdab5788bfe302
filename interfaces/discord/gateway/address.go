package gateway

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"time"

	"synthbot/core/driver"

	"synthbot/interfaces/discord/rest"
)

// MaxShards is more than Discord has ever recommended to a bot of one process.
const MaxShards = 1024

// Location is where to connect, and how often that is allowed.
type Location struct {
	Shards    int           // to connect with
	Remaining int           // sessions that may still begin; -1: unknown
	Reset     time.Duration // until more of them may

	address     string
	concurrency int // buckets of shards, each of which identifies by itself
}

// answer is what REST says about the gateway.
type answer struct {
	URL    string `json:"url"`
	Shards int    `json:"shards"`
	Limit  struct {
		Remaining   *int  `json:"remaining"`
		Reset       int64 `json:"reset_after"`
		Concurrency int   `json:"max_concurrency"`
	} `json:"session_start_limit"`
}

// Ask asks where to connect, and which number of shards is recommended.
func Ask(ctx context.Context, client *rest.Client) (Location, error) {
	var a answer
	err := client.Do(ctx, rest.Request{Method: "GET", Route: "/gateway/bot", Out: &a})
	if err == nil && a.URL == "" || rest.NotFound(err) {
		err = client.Do(ctx, rest.Request{Method: "GET", Route: "/gateway", Out: &a})
	}
	if err != nil {
		return Location{}, fmt.Errorf("gateway: %w", err)
	}
	return a.location(client.API.Scheme == "https")
}

// location checks the answer; secure refuses an address that is not encrypted.
func (a *answer) location(secure bool) (Location, error) {
	switch {
	case !isAddress(a.URL):
		return Location{}, fmt.Errorf("gateway: %q is not its address", a.URL)
	case secure && !strings.HasPrefix(a.URL, "wss:"):
		return Location{}, fmt.Errorf("gateway: %q is not encrypted, and the token would be sent there", a.URL)
	}
	at := Location{address: a.URL, Shards: min(max(a.Shards, 1), MaxShards), Remaining: -1}
	at.concurrency = max(a.Limit.Concurrency, 1)
	if a.Limit.Remaining != nil && a.Limit.Reset > 0 {
		at.Remaining, at.Reset = *a.Limit.Remaining, time.Duration(a.Limit.Reset)*time.Millisecond
	}
	return at, nil
}

func isAddress(text string) bool {
	u, err := url.Parse(text)
	return err == nil && u.Host != "" && (u.Scheme == "ws" || u.Scheme == "wss")
}

// Find asks where to connect until there is an answer, or the token is refused. It
// waits until a session may begin.
func (g *Gateway) Find(ctx context.Context) (Location, error) {
	for wait := g.Timings.Backoff; ; wait = min(2*wait, g.Timings.Longest) {
		at, err := g.ask(ctx)
		if err == nil || errors.Is(err, ErrToken) || ctx.Err() != nil {
			return at, err
		}
		g.Log.Warn("the gateway's address is unknown", "err", err)
		if !driver.Sleep(ctx, driver.Jitter(wait)) {
			return at, ctx.Err()
		}
	}
}

// ask asks once, and waits if no session may begin now: beyond the limit Discord resets
// the bot's token.
func (g *Gateway) ask(ctx context.Context) (Location, error) {
	at, err := Ask(ctx, g.REST)
	switch {
	case rest.Refusal(err).Status == 401:
		return at, ErrToken
	case err != nil:
		return at, err
	}
	if g.Shards > 0 {
		at.Shards = g.Shards
	}
	if at.Remaining == 0 {
		g.Notify(fmt.Sprintf("Discord allows no more sessions for %s; waiting", at.Reset.Round(time.Second)))
		if !driver.Sleep(ctx, at.Reset) {
			return at, ctx.Err()
		}
	}
	return at, nil
}

// starts spaces identifies: each bucket of shards has one in each period.
type starts struct {
	every   time.Duration
	mu      sync.Mutex
	buckets map[int]chan time.Time // hold one value: when the next identify is allowed
}

// wait waits for the shard's turn to identify. done must be called when it has done so,
// or will not; calling it again has no effect.
func (s *starts) wait(ctx context.Context, shard, concurrency int) (done func(), err error) {
	s.mu.Lock()
	b := s.buckets[shard%concurrency]
	if b == nil {
		b = make(chan time.Time, 1)
		b <- time.Time{}
		s.buckets[shard%concurrency] = b
	}
	s.mu.Unlock()
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case next := <-b:
		if !driver.Sleep(ctx, time.Until(next)) {
			b <- next
			return nil, ctx.Err()
		}
	}
	return sync.OnceFunc(func() { b <- time.Now().Add(s.every) }), nil
}
