// Package gateway keeps a bot connected to Discord's gateway: it finds the address, begins and resumes
// sessions, sends heartbeats, and passes events on unchanged. It does not read events, except for what
// describes the session, and the guilds of missed events.
//
// It implements the protocol itself, and uses only types of the library discordgo. The library's connection has no
// time limits, breaks Discord's rules for pauses, resuming and heartbeats, and decodes each event, which empties
// messages with an unknown component.
package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"github.com/bwmarrin/discordgo"
	"golang.org/x/sync/errgroup"

	"synthbot/core/driver"
	"synthbot/core/loop"
	"synthbot/core/secret"
	"synthbot/interfaces/discord/rest"
)

// Errors that end [Gateway.Run], for admins.
var (
	ErrToken   = errors.New("the token is refused by Discord: put a valid one where the configuration's token points")
	ErrShards  = errors.New("the bot is in so many guilds that it needs more shards: set shards to auto")
	errShard   = errors.New("the shard is refused by Discord: check shards")
	errVersion = errors.New("this version of the gateway is no longer supported by Discord: update the bot")
	errIntents = errors.New("the intents are refused by Discord: switch them on for this bot in the developer portal")
)

// Intents are the kinds of event that every session asks for.
const Intents = int(discordgo.IntentGuilds | discordgo.IntentGuildMessages | discordgo.IntentGuildMessageReactions |
	discordgo.IntentDirectMessages | discordgo.IntentDirectMessageReactions)

// Event is one event, as received.
type Event struct {
	Shard   int
	Type    string // for example MESSAGE_CREATE
	Data    json.RawMessage
	Session Session // the shard's session once the event is handled; zero while missed events of an earlier one follow
}

// Session is a shard's session. For a few minutes after a process has ended, another one can resume it.
type Session struct {
	ID      string `json:"id"`
	Address string `json:"address,omitempty"` // for resuming; "": the gateway's
	Seq     int64  `json:"seq"`               // of the latest event that was handled
}

// Handler receives the events of all shards. Each shard calls it from its own goroutine.
type Handler interface {
	// Event handles an event, in order. It may block. It returns false if ctx ended first; then Discord repeats the
	// event when the session is resumed. The first event of a session is READY, and that of a resumed one RESUMED.
	Event(ctx context.Context, e Event) bool
	// Alive is called when the gateway acknowledges a heartbeat: all events until now were received.
	Alive(shard int)
	// Disconnected is called at the end of each connection and failed attempt.
	Disconnected(shard int)
}

// Timings are the waits of a Gateway.
type Timings struct {
	Patience time.Duration // how long to wait for the gateway's first messages
	Identify time.Duration // between two identifies of one bucket; Discord requires five seconds
	Invalid  time.Duration // the shortest pause after an invalid session
	Backoff  time.Duration // the first pause after a failed connection
	Longest  time.Duration // the longest pause after failed connections
}

// Options configure a Gateway. All but Shards, Only and Starts are required.
type Options struct {
	Token   secret.Secret
	REST    *rest.Client
	Shards  int  // 0: as many as Discord recommends
	Only    int  // from 1 to Shards: connect only this shard; 0: all
	Content bool // request the message content intent
	Handler Handler
	Dial    rest.Dial
	Timings Timings
	Log     *slog.Logger
	Notify  func(text string) // informs the admins, and must not block
	Starts  *Starts           // shared by all Gateways of the account; nil: not shared
}

// Gateway connects one bot. Safe for concurrent use.
type Gateway struct {
	Options
	contentRefused atomic.Bool // Discord refused the message content intent, which is not requested any more
}

// New returns a Gateway, which does not connect yet.
func New(o Options) *Gateway {
	if o.Starts == nil {
		o.Starts = NewStarts(o.Timings.Identify, nil)
	}
	return &Gateway{Options: o}
}

// Run keeps all shards connected. It blocks until ctx ends, and then returns nil, or until Discord refuses
// the bot. left are the sessions of an earlier process, by shard. The Handler gets the messages and
// interactions that were missed in them, each after the GUILD_CREATE of its guild.
func (g *Gateway) Run(ctx context.Context, at Location, left map[int]Session) error {
	shards, ctx := errgroup.WithContext(ctx)
	for _, id := range g.IDs(at.Shards) {
		// If Discord does not allow sessions for all of them now, each asks again before it identifies.
		s := &shard{g: g, id: id, count: at.Shards, at: at, located: at.Remaining >= 0 && at.Remaining < at.Shards}
		shards.Go(func() error { return s.run(ctx, left[id]) })
	}
	return shards.Wait()
}

// IDs returns the numbers, from 0, of the shards that this Gateway connects, out of so many.
func (g *Gateway) IDs(shards int) []int {
	if g.Only > 0 {
		return []int{g.Only - 1}
	}
	ids := make([]int, shards)
	for i := range ids {
		ids[i] = i
	}
	return ids
}

func (g *Gateway) intents() int {
	if g.Content && !g.contentRefused.Load() {
		return Intents | int(discordgo.IntentMessageContent)
	}
	return Intents
}

// MaxShards is the largest number of shards that is accepted.
const MaxShards = 1024

// Location is where to connect, and how often that is allowed.
type Location struct {
	Shards    int           // as configured or recommended
	Remaining int           // how many more sessions may begin; -1: unknown
	Reset     time.Duration // until more are allowed

	address     string
	concurrency int // number of buckets of shards; each bucket identifies independently
}

// answer is the REST API's answer about the gateway.
type answer struct {
	URL    string `json:"url"`
	Shards int    `json:"shards"`
	Limit  struct {
		Remaining   *int  `json:"remaining"`
		Reset       int64 `json:"reset_after"`
		Concurrency int   `json:"max_concurrency"`
	} `json:"session_start_limit"`
}

// Ask asks the REST API once where to connect, and how many shards it recommends. It blocks for one or two requests.
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

// location validates the answer; secure requires an encrypted address.
func (a *answer) location(secure bool) (Location, error) {
	switch {
	case !isAddress(a.URL):
		return Location{}, fmt.Errorf("gateway: %q is not an address of a gateway", a.URL)
	case secure && !strings.HasPrefix(a.URL, "wss:"):
		return Location{}, fmt.Errorf("gateway: %q is not encrypted, so the token is not sent there", a.URL)
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

// Find asks where to connect. It retries until it gets an answer, the token is refused or ctx ends. Then it
// blocks until Discord allows another session.
func (g *Gateway) Find(ctx context.Context) (Location, error) {
	for wait := g.Timings.Backoff; ; wait = min(2*wait, g.Timings.Longest) {
		at, err := g.ask(ctx)
		if err == nil || errors.Is(err, ErrToken) || ctx.Err() != nil {
			return at, err
		}
		g.Log.Warn("gateway address not found, retrying", "err", err)
		if !loop.Sleep(ctx, driver.Jitter(wait)) {
			return at, ctx.Err()
		}
	}
}

// ask asks once. If no session may begin now, it waits, because Discord resets the tokens of bots that
// exceed the limit.
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
		if !loop.Sleep(ctx, at.Reset) {
			return at, ctx.Err()
		}
	}
	return at, nil
}
