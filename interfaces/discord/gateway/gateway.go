// Package gateway keeps a bot connected to Discord's gateway: it finds the address,
// begins and resumes sessions, sends heartbeats, and hands events on as they come. It
// does not look into events, except for what describes the session.
//
// The protocol is spoken here and not by the library, of which only the types and the
// version are used. The library's own connection
//   - hangs forever if the gateway answers an identify or a resume with a reconnect,
//     or says nothing at all: [shard.connect] has a time limit for every wait;
//   - identifies at once after an invalid session, where Discord wants a pause, and
//     again and again after a close code that is final: [shard.after], [shard.fatal];
//   - ignores the address at which a session is to be resumed: [shard.address];
//   - notices only after five intervals that heartbeats are not acknowledged:
//     [conn.beat];
//   - decodes each event, and turns a message with a component that it does not know
//     into an empty one: [Handler] gets the data as it came.
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
	"synthbot/core/secret"
	"synthbot/interfaces/discord/rest"
)

// Errors that end [Gateway.Run]; they are written for users.
var (
	ErrToken   = errors.New("the token is refused by Discord: put a valid one where the configuration's token points")
	ErrShards  = errors.New("the bot is in so many guilds that it needs more shards: set shards to auto")
	errShard   = errors.New("the shard is refused by Discord")
	errVersion = errors.New("this version of the gateway is not supported by Discord any more")
	errIntents = errors.New("the intents are refused by Discord: switch them on for this bot in the developer portal")
)

// Intents are the kinds of event that every session asks for.
const Intents = int(discordgo.IntentGuilds | discordgo.IntentGuildMessages | discordgo.IntentGuildMessageReactions |
	discordgo.IntentDirectMessages | discordgo.IntentDirectMessageReactions)

// Event is one event, as it came.
type Event struct {
	Shard   int
	Type    string // for example MESSAGE_CREATE
	Data    json.RawMessage
	Session Session // as it is once the event was taken; zero while events of an earlier one are to come
}

// Session is a shard's session. After the process has ended, another one can go on with it for a few
// minutes.
type Session struct {
	ID      string `json:"id"`
	Address string `json:"address,omitempty"` // "": the gateway's
	Seq     int64  `json:"seq"`               // of the latest event that was taken
}

// Handler gets what happens in the sessions. Each shard calls it from one goroutine of
// its own.
type Handler interface {
	// Event takes an event, in order. It returns false if ctx ended before that: the
	// event comes again when the session is resumed. A session begins with the event
	// READY, and goes on with RESUMED.
	Event(ctx context.Context, e Event) bool
	// Alive is called when the gateway acknowledges a heartbeat: all events until now
	// were received.
	Alive(shard int)
	// Disconnected is called at the end of each connection and failed attempt.
	Disconnected(shard int)
	// ContentRefused is called when the bot may not see the content of messages. The
	// next session does not ask for it.
	ContentRefused()
}

// Timings are the waits of a Gateway.
type Timings struct {
	Patience time.Duration // until the gateway has said something
	Identify time.Duration // between two identifies of one bucket; Discord wants five seconds
	Invalid  time.Duration // the least pause after an invalid session
	Backoff  time.Duration // the first pause after a failed connection
	Longest  time.Duration // the longest one
}

// Options are what a Gateway is made of. All but Only and Starts are required.
type Options struct {
	Token   secret.Secret
	REST    *rest.Client
	Shards  int  // 0: as many as Discord recommends
	Only    int  // from 1 to Shards: this shard alone is connected; 0: all are
	Content bool // ask for the content of messages
	Handler Handler
	Dial    rest.Dial
	Timings Timings
	Log     *slog.Logger
	Notify  func(text string) // informs the admins
	Starts  *Starts           // of all Gateways of the account; nil: of this one alone
}

// Gateway connects one bot. Safe for concurrent use.
type Gateway struct {
	Options
	contentRefused atomic.Bool
}

// New makes a Gateway; it connects to nothing yet.
func New(o Options) *Gateway {
	if o.Starts == nil {
		o.Starts = NewStarts(o.Timings.Identify, nil)
	}
	return &Gateway{Options: o}
}

// Run keeps all shards connected until ctx ends, which is not an error, or Discord
// refuses the bot. left are the sessions that an earlier process had: the Handler gets the events of
// messages and the interactions that it missed, each behind the GUILD_CREATE of its guild.
func (g *Gateway) Run(ctx context.Context, at Location, left map[int]Session) error {
	shards, ctx := errgroup.WithContext(ctx)
	for _, id := range g.IDs(at.Shards) {
		// If not all of them may begin now, each asks when it is its turn.
		s := &shard{g: g, id: id, count: at.Shards, at: at, located: at.Remaining >= 0 && at.Remaining < at.Shards}
		shards.Go(func() error { return s.run(ctx, left[id]) })
	}
	return shards.Wait()
}

// IDs are the numbers of the shards that are connected, of so many; the first one is 0.
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

// intents are what the next session asks for.
func (g *Gateway) intents() int {
	if g.Content && !g.contentRefused.Load() {
		return Intents | int(discordgo.IntentMessageContent)
	}
	return Intents
}

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
