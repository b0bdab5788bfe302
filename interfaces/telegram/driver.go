// Package telegram is the driver for Telegram. It converts updates of the Bot API to events, and actions to calls
// of the Bot API. It has message_telegram and the actions that edit and delete messages, react to them, and send
// photos, documents and polls.
//
// A place is telegram/<chat>, or telegram/<chat>/<thread> for a topic of a forum. The General topic is the chat
// itself. A message's id is Telegram's number of it, unless the bot account changed; see accountShift.
//
// An answer is shown while it is being written: in private chats as Telegram's own draft, elsewhere as a message
// that is edited until it is the answer (see core/draft). The driver also writes to places and users outside of
// turns, sends files, fetches attachments, and finds topics, groups and users by name.
//
//   - An update is confirmed only after Inbox.Receive has returned.
//   - Calls stay within the published rate limits, and stop while Telegram asks to wait.
//   - The calls of a chat are made in order.
//   - If Telegram refuses a message because of its styles, it is sent again without them.
//   - An answer fails with core.ErrAway, to be sent later, if Telegram cannot be reached, refuses the token or
//     asks for a long wait.
//
// The driver does not decide whether a message is answered, and stores no history. Package botapi makes the calls,
// and package markup renders styles. The rest is larger than other packages, because receiving and sending share
// what is known about chats, accounts and buttons.
package telegram

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"synthbot/core"
	"synthbot/core/command"
	"synthbot/core/driver"
	"synthbot/core/loop"
	"synthbot/core/recent"
	"synthbot/core/secret"
	"synthbot/core/txt"
	"synthbot/core/watch"
	"synthbot/interfaces/telegram/botapi"
)

// Config is the part of the configuration that the driver reads.
type Config struct {
	Token       secret.Secret  `toml:"token" doc:"The bot's token, as @BotFather gives it." required:"true" example:"env:TELEGRAM_TOKEN"`
	APIURL      string         `toml:"api_url" default:"https://api.telegram.org" doc:"The address of the Bot API: the platform's, or that of your own server."`
	Pace        string         `toml:"pace" default:"platform" oneof:"platform|off" doc:"platform: stay below the published limits; off: only obey the server's responses."`
	Timeout     time.Duration  `toml:"timeout" default:"30s" min:"1s" max:"10m" doc:"How long one call may take; uploads and downloads may take ten times as long."`
	Acknowledge string         `toml:"acknowledge" doc:"A reaction to a message while its answer is being made; empty: none." example:"👀"`
	Stream      string         `toml:"stream" default:"auto" oneof:"auto|edit|off" doc:"How an answer is shown while it is written. auto: as Telegram's own draft in private chats, by edits elsewhere; edit: by edits; off: not at all."`
	RichTables  bool           `toml:"rich_tables" default:"false" doc:"Send texts with tables as rich messages, which display them as tables. Old apps and some third-party apps show nothing of such a message."`
	Previews    bool           `toml:"previews" default:"false" doc:"Show previews of links in the bot's messages. The platform fetches such links at once, even those that a user made the bot write."`
	MaxFile     int64          `toml:"max_file" default:"20971520" min:"0" doc:"The largest file that is fetched, in bytes."`
	FilesDir    string         `toml:"files_dir" doc:"The folder in which your own Bot API server keeps files on this machine; empty: files are downloaded from it."`
	Webhook     botapi.Webhook `toml:"webhook" doc:"Receives updates by a webhook instead of polling."`
}

// Check implements the configuration's own check.
func (c *Config) Check(fault func(text string, at ...any)) {
	if _, err := botapi.ParseURL(c.APIURL); err != nil {
		fault(err.Error(), "api_url")
	}
}

// CheckSecrets is Check for secrets. The token may be empty.
func (c *Config) CheckSecrets(fault func(text string, at ...any)) {
	if strings.ContainsAny(c.Token.Reveal(), "/?#% \t\r\n") {
		fault("must look like 123456:ABC-DEF, as @BotFather gives it", "token")
	}
	c.Webhook.CheckSecret(fault)
}

// Options configure a Driver. Name, Config, Log, Clock, State and Admin are required.
type Options struct {
	Name   string // the interface's name
	Config Config
	Log    *slog.Logger
	Clock  func() time.Time
	State  driver.State
	Admin  func(text string) // alerts admins

	Commands func() []command.Spec // in Telegram's command menus; nil: none
	Admins   func() []core.Path    // users whose menu has the commands of admins; nil: nobody

	// Dial connects to the server; nil: over the network.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
}

// Driver is the interface of one bot account. Its actions work even if Listen does not run. Safe for concurrent
// use, but Listen must not run twice at the same time.
type Driver struct {
	opt     Options
	log     *slog.Logger
	api     *botapi.Client
	places  *places
	ranks   *ranks
	pressed recent.Cache[[2]int64, string] // see converter
	choices *recent.Shared[string, bool]   // ids of pressed choices that Whisper may answer
	send    *delivery
	marks   *marks
	menus   sync.Mutex  // held while the command menus are updated
	refused atomic.Bool // Telegram refused the token
	running atomic.Pointer[running]
	inbox   atomic.Pointer[core.Inbox] // of the latest Listen; actions use it even after that has ended
}

type running struct {
	tasks *driver.Tasks
	life  context.Context
	abort context.CancelCauseFunc
}

var (
	_ core.Interface          = (*Driver)(nil)
	_ core.TypingIndicator    = (*Driver)(nil)
	_ core.RecordingIndicator = (*Driver)(nil)
	_ watch.Observer          = (*Driver)(nil)
	_ core.Reachable          = (*Driver)(nil)
	_ core.Readier            = (*Driver)(nil)
	_ core.Teller             = (*Driver)(nil)
	_ core.Chooser            = (*Driver)(nil)
	_ core.Linker             = (*Driver)(nil)
	_ core.FileSender         = (*Driver)(nil)
	_ core.Fetcher            = (*Driver)(nil)
	_ core.Drafter            = (*Driver)(nil)
)

// New returns a driver. It makes no calls, so a token that Telegram refuses is an error of Listen.
func New(o Options) (*Driver, error) {
	if !txt.IsName(o.Name, 40, ".-") { // actions are named after it
		return nil, fmt.Errorf("interface name %q: only a-z, 0-9, _, . and - are allowed, at most 40", o.Name)
	}
	token := o.Config.Token.Reveal()
	if token == "" {
		return nil, fmt.Errorf("%s: token: missing; @BotFather gives one", o.Name)
	}
	if err := driver.FirstFault(o.Config.CheckSecrets); err != nil {
		return nil, fmt.Errorf("%s: %w", o.Name, err)
	}
	hook := &o.Config.Webhook
	if err := cmp.Or(driver.FirstFault(hook.Check), hook.LoadCertificate()); err != nil {
		return nil, fmt.Errorf("%s: webhook: %w", o.Name, err)
	}
	o.Commands, o.Admins = driver.OrNone(o.Commands), driver.OrNone(o.Admins)
	d := &Driver{opt: o, log: o.Log.With("interface", o.Name), places: newPlaces()}
	d.send = &delivery{opt: &d.opt, log: d.log, places: d.places, keys: newSigner(token), receive: d.receive}
	api, err := botapi.New(botapi.Options{
		Name: o.Name, URL: o.Config.APIURL, Token: token, Pace: o.Config.Pace != "off", Timeout: o.Config.Timeout,
		Log: d.log, Clock: o.Clock, State: o.State, Dial: o.Dial,
		Chat: d.places.currentChat, Migrated: d.migrated, Sign: d.send.keys.resignKeyboard, Revoked: d.unauthorised,
		Admin: o.Admin,
	})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", o.Name, err)
	}
	d.api, d.send.api = api, api
	d.pressed, d.choices = recent.NewCache[[2]int64, string](maxPlaces), recent.NewShared[string, bool](maxPlaces)
	d.marks = &marks{next: map[core.Path]candidate{}, all: map[messageKey]chan struct{}{}}
	d.ranks = newRanks(d)
	var accounts []string
	if err := driver.Load(context.Background(), o.State, accountsKey, &accounts); err != nil {
		d.log.Warn("earlier bot accounts not read", "err", err)
	}
	if !slices.Contains(accounts, d.account()) {
		accounts = append(accounts, d.account())
	}
	d.places.account = int64(slices.Index(accounts, d.account()))
	if err := d.places.load(context.Background(), o.State); err != nil {
		d.log.Warn("places not read", "err", err)
	}
	d.send.drafts = newDrafts(d.send, d.background)
	return d, nil
}

// Name implements core.Interface.
func (d *Driver) Name() string { return d.opt.Name }

// Type returns the kind of interface. Unlike Name, it is the same for all of that kind.
func (d *Driver) Type() string { return "telegram" }

// Listen receives updates until ctx ends or Telegram refuses the token in any call.
func (d *Driver) Listen(ctx context.Context, in core.Inbox) error {
	load := func(ctx context.Context) error { return d.places.load(ctx, d.opt.State) }
	if !driver.AwaitState(ctx, d.log, load) {
		return nil
	}
	life, abort := context.WithCancelCause(ctx)
	tasks := &driver.Tasks{Most: 256} // beyond that, background work is dropped
	d.send.drafts.Begin()
	d.inbox.Store(&in)
	d.running.Store(&running{tasks, life, abort})
	defer func() {
		abort(nil)
		tasks.Close()
		d.running.Store(nil)
		if err := d.places.save(context.WithoutCancel(ctx), d.opt.State); err != nil {
			d.log.Warn("places not saved", "err", err)
		}
		d.api.Close()
	}()
	i, err := d.connect(life, in)
	switch {
	case err != nil:
	case d.opt.Config.Webhook.URL != "":
		err = d.api.Serve(life, d.opt.Config.Webhook, i, wantedUpdates)
	default:
		err = d.api.Poll(life, i, wantedUpdates)
	}
	cause := context.Cause(life)
	switch {
	case ctx.Err() != nil:
		return nil
	case botapi.IsCode(cause, 401, 404):
		err = cause
	}
	if !botapi.IsCode(err, 401, 404) {
		return fmt.Errorf("%s: %w", d.opt.Name, err)
	}
	d.refused.Store(true)
	return fmt.Errorf("%s: Telegram does not know this bot (%w): "+
		"check the token, and that @BotFather has not replaced it", d.opt.Name, err)
}

// connect asks Telegram who the bot is, starts the background work of Listen, and returns the intake.
func (d *Driver) connect(ctx context.Context, in core.Inbox) (*intake, error) {
	var self user
	// Fatal has 200 for a server that is not a Bot API server.
	r := &botapi.Request{Method: "getMe", Repeatable: true, Fatal: []int{200, 401, 404}, Result: &self}
	if err := d.api.Do(ctx, r); err != nil {
		return nil, err
	}
	if self.ID == 0 {
		return nil, errors.New("getMe: the response has no bot")
	}
	d.refused.Store(false)
	d.saveAccount(ctx)
	d.log.Info("connected", "name", self.UserName)
	d.background(func(ctx context.Context) {
		if loop.Sleep(ctx, 100*time.Millisecond) { // the first updates come first
			d.updateMenus(ctx)
		}
	})
	d.background(d.send.drafts.ClearLater)
	c := &converter{
		name: d.opt.Name, self: self, commands: d.opt.Commands, places: d.places, keys: d.send.keys,
		pressed: &d.pressed, now: d.opt.Clock, ahead: d.api.Ahead,
	}
	i := &intake{
		d: d, convert: c, stored: map[int64]bool{}, albums: recent.NewCache[messageKey, []core.Event](maxParts),
	}
	i.in = driver.Receiver{Inbox: in, Skip: func(first *core.Event, err error) {
		m := &first.Message
		d.log.Error("update skipped: it cannot be stored", "path", m.Path, "id", m.ID, "err", err)
	}}
	return i, nil
}

// Reaches implements core.Reachable. Nothing can be sent after Telegram refused the token. Messages then wait for
// their answers until it is accepted again.
func (d *Driver) Reaches(core.Path) bool { return !d.refused.Load() }

// unauthorised ends Listen, because Telegram refused the token.
func (d *Driver) unauthorised(err error) {
	d.refused.Store(true)
	r := d.running.Load()
	if r != nil {
		r.abort(err)
	}
}

// receive stores an event about a change that the bot itself made, if Listen was ever called.
func (d *Driver) receive(ctx context.Context, e core.Event) {
	in := d.inbox.Load()
	if in == nil {
		return
	}
	if err := (*in).Receive(ctx, e); err != nil && ctx.Err() == nil {
		d.log.Warn("change not stored", "path", e.Message.Path, "err", err)
	}
}

func (d *Driver) migrated(ctx context.Context, from, to int64) {
	d.places.noteMigration(from, to)
	c := converter{name: d.opt.Name, now: d.opt.Clock}
	d.receive(ctx, c.migrationEvent(from, to))
}

// Ready implements core.Readier.
func (d *Driver) Ready() error { return d.api.Ready() }

// background runs f in the background while Listen runs. It returns false if f will not run.
func (d *Driver) background(f func(context.Context)) bool {
	r := d.running.Load()
	return r != nil && r.tasks.Go(func() { f(r.life) })
}

func id(n int64) string { return strconv.FormatInt(n, 10) }

// Probe implements core.Prober. It asks for no updates, so it does not disturb a bot that runs with the same token.
func (d *Driver) Probe(ctx context.Context) []core.Finding {
	var me struct {
		Name   string `json:"username"`
		Joins  bool   `json:"can_join_groups"`
		Listen bool   `json:"can_read_all_group_messages"`
	}
	if err := d.api.Do(ctx, &botapi.Request{Method: "getMe", Result: &me}); err != nil {
		f := core.Finding{What: "platform", Found: "unavailable", Fix: explain(err).Error(), Fatal: true}
		if botapi.IsCode(err, 401, 404) {
			f.What, f.Found = "identity", "unknown"
			f.Fix = "the token is refused; ask @BotFather for it again, and set it in interfaces." + d.opt.Name +
				".token"
		}
		return []core.Finding{f}
	}
	if me.Name == "" {
		return []core.Finding{{What: "identity", Found: "unknown",
			Fix: "the server does not answer like Telegram; check api_url", Fatal: true}}
	}
	groups := core.Finding{What: "groups", Found: "may be added to groups"}
	if !me.Joins {
		groups.Found, groups.Fix = "may not be added to groups",
			"let @BotFather allow it with /setjoingroups, if you want it"
	}
	privacy := core.Finding{What: "privacy", Found: "receives all messages of groups"}
	if !me.Listen {
		privacy.Found = "privacy mode is on: in groups it receives only commands, mentions and replies"
		privacy.Fix = "make it an administrator there, or turn the mode off with @BotFather's /setprivacy " +
			"and add it to the group again"
	}
	identity := core.Finding{What: "identity", Found: "@" + me.Name}
	return []core.Finding{identity, groups, privacy, driver.ClockFinding(d.api.Ahead())}
}
