package daemon

import (
	"context"
	"crypto/subtle"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"synthbot/core"
	"synthbot/core/command"
	"synthbot/daemon/settings"
	"synthbot/setup"
)

// Claim is the hash of a code that makes its first sender an admin; "": there is
// none.
type Claim string

// UnmarshalText implements encoding.TextUnmarshaler.
func (c *Claim) UnmarshalText(text []byte) error {
	if raw, err := hex.DecodeString(string(text)); err != nil || len(raw) != 0 && len(raw) != 32 {
		return errors.New("is no hash of a code; let `synthbot init` make one, or leave it empty")
	}
	*c = Claim(text)
	return nil
}

// claimName is the command.
const claimName = "claim"

// claimKey is under what it is kept that a claim was used.
const claimKey = "claim "

// forClaim is the command by which somebody becomes the admin of a bot that has a
// claim; it is gone once that was used.
func (b *Bot) forClaim(c *Config) ([]command.Command, error) {
	if c.Bot.Claim == "" {
		return nil, nil
	}
	if used, err := b.claimed(context.Background(), c.Bot.Claim); used || err != nil {
		return nil, err
	}
	return []command.Command{{
		Spec: command.Spec{Name: claimName, Brief: "Become my admin, by the code from my set-up", Private: true, Open: true,
			Args: []command.Arg{{Name: "code", Brief: "The code", Required: true, Rest: true}}},
		Do: func(ctx context.Context, call command.Call) (string, error) { return b.claim(ctx, c.Bot.Claim, call) },
	}}, nil
}

// claimed reports whether the claim was used.
func (b *Bot) claimed(ctx context.Context, claim Claim) (bool, error) {
	_, used, err := b.Items("bot").Get(ctx, core.Path{}, claimKey+string(claim))
	if err != nil {
		return false, fmt.Errorf("claim: %w", err)
	}
	return used, nil
}

// claim makes the one who has the code an admin. Carried out twice, it does the
// same again.
func (b *Bot) claim(ctx context.Context, claim Claim, c command.Call) (string, error) {
	b.claims.mu.Lock()
	defer b.claims.mu.Unlock()
	now := b.env.Clock()
	if !b.claims.open(c.Person, now) {
		return "", core.Errorf(core.Forbidden, "There were too many wrong codes. Try again in an hour.")
	}
	if subtle.ConstantTimeCompare([]byte(setup.HashCode(c.Args["code"])), []byte(claim)) == 0 {
		b.claims.wrong = append(b.claims.wrong, wrongCode{c.Person, now})
		b.log.Warn("a wrong code was claimed", "person", c.Person)
		return "", core.Errorf(core.Forbidden, "That is not the code.")
	}
	if used, err := b.claimed(ctx, claim); err != nil {
		return "", err
	} else if used && !slices.Contains(b.claimedAdmins(), c.Person) {
		return "", core.Errorf(core.Forbidden, "That code was used already. `synthbot init --claim code` makes another one.")
	}
	return "You are my admin now. /help tells what you can do.", b.makeAdmin(ctx, claim, c.Person)
}

// makeAdmin keeps that somebody is an admin, then that the claim was used: between
// the two, only he can use it again.
func (b *Bot) makeAdmin(ctx context.Context, claim Claim, person core.Path) error {
	yes, alone := true, len(b.admins(b.InForce().Config)) == 0
	if err := b.changes.Change(ctx, person, func(s *settings.Settings) { s.Admin = &yes }); err != nil {
		return err
	}
	raw, err := json.Marshal(b.env.Clock())
	if err != nil {
		return err
	}
	if _, err := b.Items("bot").Put(ctx, core.Item{Key: claimKey + string(claim), Value: raw, Version: core.AnyVersion}); err != nil {
		return fmt.Errorf("claim: %w", err)
	}
	if !alone {
		b.tell(person.String() + " is one of my admins now, by the code from the set-up.")
	}
	b.log.Info("an admin by the code from the set-up", "person", person)
	b.anew()
	return nil
}

// anew lets turns learn who the admins are at once, and interfaces what they offer
// to whom, when this turn is under way.
func (b *Bot) anew() {
	if b.exchange.TryLock() {
		b.Turns.Reconfigure(b.options(b.InForce()))
		b.exchange.Unlock()
	} else {
		ring(b.changed)
	}
	ring(b.again)
}

// ring leaves a token where none is yet, and somebody takes tokens.
func ring(token chan struct{}) {
	select {
	case token <- struct{}{}:
	default:
	}
}

// Bounds of wrong codes, within an hour.
const (
	wrongOfOne = 5
	wrongOfAll = 100
)

// claims are the wrong codes of the last hour.
type claims struct {
	mu    sync.Mutex
	wrong []wrongCode
}

type wrongCode struct {
	person core.Path
	at     time.Time
}

// open reports whether the person may try a code. mu is held.
func (c *claims) open(person core.Path, now time.Time) bool {
	c.wrong = slices.DeleteFunc(c.wrong, func(w wrongCode) bool { return now.Sub(w.at) >= time.Hour })
	his := 0
	for _, w := range c.wrong {
		if w.person == person {
			his++
		}
	}
	return his < wrongOfOne && len(c.wrong) < wrongOfAll
}
