// Package pairing keeps unknown users out of private chats until an admin lets them in. A user who writes for the first
// time gets a code, and an admin confirms it in chat (/pair CODE), in the terminal (synthbot pair CODE) or on the page.
// Messages of unknown users are stored without their content.
//
// # Storage
//
// Under a user's path, key "paired": when they were let in, and by whom. Without a path, key
// "code " + hash of a code: whose it is, and until when it is valid.
package pairing

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"synthbot/core"
	"synthbot/core/command"
	"synthbot/core/gate"
	"synthbot/core/sorting"
	"synthbot/core/txt"
	"synthbot/core/values"
)

// Config is the plugin's table.
type Config struct {
	Valid time.Duration `toml:"valid" default:"24h" min:"1m" max:"720h" doc:"How long a code is valid."`
	Again time.Duration `toml:"again" default:"1h" min:"1m" max:"720h" doc:"How long the bot waits before it sends the code to the same unknown user again."`
	Open  int           `toml:"open" default:"200" min:"1" max:"10000" doc:"How many codes may be open at a time. Further unknown users get no reply."`
}

const (
	pairedKey  = "paired"
	codeKey    = "code "
	codeLength = 8
	maxName    = 60  // characters of a name that admins see
	maxDropped = 100 // expired codes that are removed at once
)

// Plugin is the plugin. Safe for concurrent use.
type Plugin struct {
	core.Host
	config Config

	stale atomic.Bool // another process changed stored items

	mu     sync.Mutex
	loaded bool
	paired map[core.Path]bool
	codes  map[string]*invitation // by hash
}

// invitation is a code that waits to be confirmed.
type invitation struct {
	Person core.Path `json:"person"`
	Name   string    `json:"name,omitempty"`
	Until  time.Time `json:"until"`

	hash      string
	code      string // plain, in memory only; "" after a restart
	repliedAt time.Time
	messageID string // of the message that got the reply
}

// admission is the stored item of a user who was let in.
type admission struct {
	At time.Time `json:"at"`
	By core.Path `json:"by,omitzero"`
}

func New(h core.Host, c Config) (*Plugin, error) {
	return &Plugin{Host: h, config: c}, nil
}

func (p *Plugin) Name() string { return p.Host.Name }

// Actions implements core.Plugin. There are none: a model cannot let users in.
func (p *Plugin) Actions() []core.Action { return nil }

// Refresh implements core.Refresher.
func (p *Plugin) Refresh() { p.stale.Store(true) }

// load reads the stored items, once and after Refresh. The caller holds mu.
func (p *Plugin) load(ctx context.Context) error {
	if p.stale.Swap(false) {
		p.loaded = false
	}
	if p.loaded {
		return nil
	}
	items, err := p.Items.List(ctx, core.Path{})
	if err != nil {
		return fmt.Errorf("pairing: %w", err)
	}
	paired, codes := make(map[core.Path]bool), make(map[string]*invitation)
	for _, i := range items {
		hash, isCode := strings.CutPrefix(i.Key, codeKey)
		switch {
		case i.Key == pairedKey:
			paired[i.Path] = true
		case isCode && p.codes[hash] != nil: // with the plain code, which is not stored
			codes[hash] = p.codes[hash]
		case isCode:
			v := &invitation{hash: hash}
			if i.Decode(v) == nil { // those that expired meanwhile, too: they are still stored
				codes[hash] = v
			}
		}
	}
	p.paired, p.codes, p.loaded = paired, codes, true
	return nil
}

// Judge implements gate.Gate.
func (p *Plugin) Judge(m *core.Message, again bool) gate.Verdict {
	if !m.Private {
		return gate.Verdict{}
	}
	person, err := m.Path.Person(m.Author.ID)
	if err != nil {
		return gate.Verdict{Admission: gate.Discard}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if err := p.load(ctx); err != nil {
		p.Log.Error("nobody new is let in", "err", err)
		return gate.Verdict{Admission: gate.Discard}
	}
	if p.paired[person] {
		return gate.Verdict{}
	}
	if again {
		return gate.Verdict{Admission: gate.Redact}
	}
	return gate.Verdict{Admission: gate.Redact, Reply: p.invite(ctx, person, m)}
}

// invite returns the reply to an unknown user, or "" if they got it lately. The same message gets the same reply again,
// because it may have been lost the first time. The caller holds mu.
func (p *Plugin) invite(ctx context.Context, person core.Path, m *core.Message) string {
	now := p.Clock()
	v := p.of(person)
	if v != nil && now.Sub(v.repliedAt) < p.config.Again && (m.ID == "" || m.ID != v.messageID) {
		return ""
	}
	if v == nil || v.code == "" || v.Until.Before(now) {
		if v != nil {
			p.drop(ctx, v)
		}
		var err error
		v, err = p.newCode(ctx, person, m.Author.Name)
		if err != nil {
			p.Log.Error("no code", "err", err)
		}
		if v == nil {
			return ""
		}
	}
	v.repliedAt, v.messageID = now, m.ID
	return "I don't know you yet. Please give this code to one of my admins: " + v.code +
		". When it is confirmed, write to me again."
}

// newCode makes a code for a user, and removes expired ones. It returns nil if too many codes are open. The caller
// holds mu.
func (p *Plugin) newCode(ctx context.Context, person core.Path, name string) (*invitation, error) {
	open := 0
	var expired []*invitation
	for _, v := range p.codes {
		switch {
		case !v.Until.Before(p.Clock()):
			open++
		case len(expired) < maxDropped:
			expired = append(expired, v)
		}
	}
	if len(expired) > 0 {
		p.drop(ctx, expired...)
	}
	if open >= p.config.Open {
		return nil, nil
	}
	code := rand.Text()[:codeLength]
	v := &invitation{Person: person, Name: name, Until: p.Clock().Add(p.config.Valid), code: code, hash: hashed(code)}
	if err := values.Put(ctx, p.Items, core.Path{}, codeKey+v.hash, v); err != nil {
		return nil, err
	}
	p.codes[v.hash] = v
	p.Messenger.NotifyAdmins(fmt.Sprintf("%s (%s) wants to talk to me, and has a code. Let them in with /pair CODE.",
		cmp.Or(txt.ClipLine(name, maxName), "Somebody"), person))
	return v, nil
}

// of returns the code of a user, or nil; if there are expired ones, too, the one that is valid longest. The caller
// holds mu.
func (p *Plugin) of(person core.Path) (latest *invitation) {
	for _, v := range p.codes {
		if v.Person == person && (latest == nil || v.Until.After(latest.Until)) {
			latest = v
		}
	}
	return latest
}

// drop removes codes. The caller holds mu.
func (p *Plugin) drop(ctx context.Context, codes ...*invitation) {
	var items []core.Item
	for _, v := range codes {
		delete(p.codes, v.hash)
		items = append(items, values.New(core.Path{}, codeKey+v.hash, nil))
	}
	if err := p.Items.PutAll(ctx, items...); err != nil {
		p.Log.Warn("an old code is not removed from the store", "err", err)
	}
}

// Guest is a user who waits to be let in. String returns their name and their path.
type Guest struct {
	Person core.Path
	Name   string // "": unknown
}

func (g Guest) String() string {
	if g.Name == "" {
		return g.Person.String()
	}
	return g.Name + " (" + g.Person.String() + ")"
}

func (v *invitation) guest() Guest { return Guest{v.Person, txt.ClipLine(v.Name, maxName)} }

// Pair lets in the user with a code, or a waiting user with a path. The error is for users.
func (p *Plugin) Pair(ctx context.Context, code string, by core.Path) (Guest, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.load(ctx); err != nil {
		return Guest{}, err
	}
	code = strings.TrimSpace(code)
	v := p.codes[hashed(strings.ToUpper(code))]
	person, err := core.ParsePath(code)
	if err == nil && v == nil {
		v = p.of(person)
	}
	if v == nil || v.Until.Before(p.Clock()) {
		return Guest{}, core.Errorf(core.Invalid, "Nobody has that code, or it is too old.")
	}
	if err := values.Put(ctx, p.Items, v.Person, pairedKey, admission{p.Clock(), by}); err != nil {
		return Guest{}, err
	}
	p.paired[v.Person] = true
	p.drop(ctx, v)
	return v.guest(), nil
}

// Unpair revokes a user's access.
func (p *Plugin) Unpair(ctx context.Context, person core.Path) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.load(ctx); err != nil {
		return err
	}
	if !p.paired[person] {
		return core.Errorf(core.Invalid, "%s was not let in.", person)
	}
	if err := values.Put(ctx, p.Items, person, pairedKey, nil); err != nil {
		return err
	}
	delete(p.paired, person)
	return nil
}

// Waiting lists the users whose codes are open.
func (p *Plugin) Waiting(ctx context.Context) ([]Guest, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.load(ctx); err != nil {
		return nil, err
	}
	var people []Guest
	for _, v := range p.codes {
		if !v.Until.Before(p.Clock()) {
			people = append(people, v.guest())
		}
	}
	sorting.Sort(people, func(a, b Guest) int { return strings.Compare(a.Person.String(), b.Person.String()) })
	return people, nil
}

// Kept implements core.DataKeeper: it returns the user's open code, whose item has no path.
func (p *Plugin) Kept(ctx context.Context, person core.Path) ([]json.RawMessage, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.load(ctx); err != nil {
		return nil, err
	}
	var kept []json.RawMessage
	for _, v := range p.codes {
		if v.Person == person {
			kept = append(kept, core.JSON(v))
		}
	}
	return kept, nil
}

// Erase implements core.DataKeeper. It also revokes the user's access.
func (p *Plugin) Erase(ctx context.Context, person core.Path) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.load(ctx); err != nil {
		return err
	}
	items := []core.Item{values.New(person, pairedKey, nil)}
	for _, v := range p.codes {
		if v.Person == person {
			items = append(items, values.New(core.Path{}, codeKey+v.hash, nil))
		}
	}
	if err := p.Items.PutAll(ctx, items...); err != nil {
		return fmt.Errorf("pairing: %w", err)
	}
	maps.DeleteFunc(p.codes, func(_ string, v *invitation) bool { return v.Person == person })
	delete(p.paired, person)
	return nil
}

// Commands implements command.Commander.
func (p *Plugin) Commands() []command.Command {
	return []command.Command{
		{Spec: command.Spec{Name: "pair", Brief: "Approve a pairing code", Rank: core.RankAdmin,
			Args: []command.Arg{{Name: "code", Required: true,
				Brief: "The code that I sent them, or a path like telegram/@user/1000"}}}, Do: p.pair},
		{Spec: command.Spec{Name: "unpair", Idempotent: true, Brief: "Revoke a user's access", Rank: core.RankAdmin,
			Args: []command.Arg{{Name: "person", Brief: "Like telegram/@user/1000", Required: true}}}, Do: p.unpair},
	}
}

func (p *Plugin) pair(ctx context.Context, c command.Call) (string, error) {
	guest, err := p.Pair(ctx, c.Args["code"], c.Person)
	return guest.String() + " may talk to me now.", err
}

func (p *Plugin) unpair(ctx context.Context, c command.Call) (string, error) {
	person, err := core.ParsePath(c.Args["person"])
	if err != nil || !person.IsPerson() {
		return "", core.Errorf(core.Invalid, "%q is not a person. Write it like telegram/@user/1000.", c.Args["person"])
	}
	return person.String() + " is shut out.", p.Unpair(ctx, person)
}

func hashed(code string) string {
	sum := sha256.Sum256([]byte("synthbot pairing " + code))
	return hex.EncodeToString(sum[:])
}
