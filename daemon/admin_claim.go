package daemon

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"synthbot/core"
	"synthbot/core/command"
	"synthbot/core/values"
	"synthbot/daemon/settings"
)

// Claim is the hash of a code whose first sender becomes an admin; "" for none.
type Claim string

// UnmarshalText implements encoding.TextUnmarshaler.
func (c *Claim) UnmarshalText(text []byte) error {
	if raw, err := hex.DecodeString(string(text)); err != nil || len(raw) != 0 && len(raw) != 32 {
		return errors.New("is not the hash of a code; let `synthbot init` make one, or leave it empty")
	}
	*c = Claim(text)
	return nil
}

// NewClaim makes a code of 80 random bits, and the claim that accepts it.
func NewClaim() (code string, claim Claim) {
	t := rand.Text()
	code = strings.Join([]string{t[:4], t[4:8], t[8:12], t[12:16]}, "-")
	return code, claimOf(code)
}

// claimOf returns the claim that accepts a code. Case and dashes do not matter.
func claimOf(code string) Claim {
	letters := strings.Map(func(r rune) rune {
		if r >= 'A' && r <= 'Z' || r >= '2' && r <= '7' {
			return r
		}
		return -1
	}, strings.ToUpper(code))
	sum := sha256.Sum256([]byte("synthbot claim " + letters))
	return Claim(hex.EncodeToString(sum[:]))
}

const claimName = "claim"

const claimKey = "claim " // begins the key under which a used claim is stored; the claim follows

// Limits of wrong codes within an hour.
const (
	maxWrongByUser = 5
	maxWrong       = 100
)

// adminClaim makes the first user who sends the code from the setup an admin.
type adminClaim struct {
	*Bot

	mu    sync.Mutex
	wrong []wrongCode // of the last hour
}

type wrongCode struct {
	person core.Path
	at     time.Time
}

// commands returns /claim; nothing if the configuration has no claim, or if it was used.
func (a *adminClaim) commands(c *Config) ([]command.Command, error) {
	if c.Bot.Claim == "" {
		return nil, nil
	}
	used, err := a.used(context.Background(), c.Bot.Claim)
	if used || err != nil {
		return nil, err
	}
	return []command.Command{{
		Spec: command.Spec{
			Name: claimName, Brief: "Become my admin with the code from the setup", Private: true, Open: true,
			Args: []command.Arg{{Name: "code", Brief: "The code", Required: true, Rest: true}},
		},
		Do: func(ctx context.Context, call command.Call) (string, error) { return a.try(ctx, c.Bot.Claim, call) },
	}}, nil
}

func (a *adminClaim) used(ctx context.Context, claim Claim) (bool, error) {
	_, used, err := values.Get[time.Time](ctx, a.Data.Items(botItems), core.Path{}, claimKey+string(claim))
	return used, err
}

// try makes the author an admin if the code is right. The same author may repeat it.
func (a *adminClaim) try(ctx context.Context, claim Claim, c command.Call) (string, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := a.env.Clock()
	if !a.mayTry(c.Person, now) {
		return "", core.Errorf(core.Forbidden, "There were too many wrong codes. Try again in an hour.")
	}
	if subtle.ConstantTimeCompare([]byte(claimOf(c.Args["code"])), []byte(claim)) == 0 {
		a.wrong = append(a.wrong, wrongCode{c.Person, now})
		a.log.Warn("wrong claim code", "user", c.Person)
		return "", core.Errorf(core.Forbidden, "That is not the code.")
	}
	used, err := a.used(ctx, claim)
	if err != nil {
		return "", err
	}
	if !used {
		err = a.makeAdmin(ctx, claim, c.Person)
		used = errors.Is(err, core.ErrVersion) // by a user of another process
	}
	if used && !slices.Contains(claimedAdmins(a.changes), c.Person) {
		const text = "That code was used already. `synthbot init --claim code` makes another one."
		return "", core.Errorf(core.Forbidden, text)
	}
	return "You are my admin now. /help tells what you can do.", err
}

// makeAdmin stores that a user is an admin and that the claim was used, or fails with core.ErrVersion if it was before.
func (a *adminClaim) makeAdmin(ctx context.Context, claim Claim, person core.Path) error {
	yes, first := true, len(a.admins()) == 0
	used := values.New(core.Path{}, claimKey+string(claim), a.env.Clock())
	used.Version = 0
	err := a.changes.Change(ctx, person, func(s *settings.Settings) { s.Admin = &yes }, used)
	if err != nil {
		return err
	}
	if !first {
		a.alerts.report(host{a.Bot}.nameWithPath(ctx, person) + " is one of my admins now, by the code from the setup.")
	}
	a.log.Info("a user became an admin by the claim code", "user", person)
	a.reloads.adminsChanged()
	return nil
}

// mayTry drops wrong codes older than an hour, and reports whether a user may try a code. a.mu is held.
func (a *adminClaim) mayTry(person core.Path, now time.Time) bool {
	a.wrong = slices.DeleteFunc(a.wrong, func(w wrongCode) bool { return now.Sub(w.at) >= time.Hour })
	own := 0
	for _, w := range a.wrong {
		if w.person == person {
			own++
		}
	}
	return own < maxWrongByUser && len(a.wrong) < maxWrong
}
