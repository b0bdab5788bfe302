package daemon

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"synthbot/core"
	"synthbot/core/command"
)

// TestWrongCodes checks the limits on wrong claim codes, for each user and for all users together.
func TestWrongCodes(t *testing.T) {
	c := &adminClaim{}
	now := time.Unix(1e9, 0)
	jay, ann := core.MustPath("x/@user/jay"), core.MustPath("x/@user/ann")
	for i := range maxWrongByUser {
		if !c.mayTry(jay, now) {
			t.Fatalf("refused after %d wrong codes, want at least %d", i, maxWrongByUser)
		}
		c.wrong = append(c.wrong, wrongCode{jay, now})
	}
	if c.mayTry(jay, now.Add(59*time.Minute)) || !c.mayTry(ann, now) || !c.mayTry(jay, now.Add(time.Hour)) {
		t.Error("the limit of one user is wrong")
	}
	c.wrong = nil
	for i := range maxWrong {
		c.wrong = append(c.wrong, wrongCode{core.MustPath(fmt.Sprintf("x/@user/%d", i)), now})
	}
	if c.mayTry(jay, now) {
		t.Error("there is no limit for all users together")
	}
}

func TestClaimHash(t *testing.T) {
	for text, right := range map[string]bool{"": true, string(claimOf("x")): true, "AAAA-BBBB": false, "abcd": false} {
		var c Claim
		if err := c.UnmarshalText([]byte(text)); (err == nil) != right {
			t.Errorf("%q: got %v", text, err)
		}
	}
}

// TestClaimOnce checks that a code makes one user an admin, and that only this user can repeat the claim.
func TestClaimOnce(t *testing.T) {
	file := filepath.Join(t.TempDir(), "config.toml")
	write(t, file, "[bot]\ndata_dir = \"data\"\n")
	p := &Env{File: file, Getenv: func(string) string { return "" }, Clock: time.Now, Err: io.Discard}
	c, err := p.Load()
	if err != nil {
		t.Fatal(err)
	}
	look := func(b *Bot) error {
		claim := claimOf("CODE")
		for _, who := range []struct{ name, want string }{{"jay", "You are my admin"}, {"ann", "used already"}, {"jay", "You are my admin"}} {
			person := core.MustPath("console/@user/" + who.name)
			text, err := b.claim.try(t.Context(), claim, command.Call{Person: person, Args: map[string]string{"code": "code"}})
			if said := fmt.Sprint(text, err); !strings.Contains(said, who.want) {
				t.Errorf("%s: got %q, want %q", who.name, said, who.want)
			}
		}
		err := b.claim.makeAdmin(t.Context(), claim, core.MustPath("console/@user/ann"))
		if !errors.Is(err, core.ErrVersion) {
			t.Errorf("a code that another process accepted meanwhile: %v", err)
		}
		if admins := claimedAdmins(b.changes); len(admins) != 1 || admins[0] != core.MustPath("console/@user/jay") {
			t.Errorf("admins: got %v, want jay", admins)
		}
		return nil
	}
	l := RunOptions{Config: c, Log: p.Logger(c, slog.LevelError), Interfaces: EnabledInterfaces, Inspect: look}
	if err := p.Run(t.Context(), l); err != nil {
		t.Fatal(err)
	}
}

func TestNewClaim(t *testing.T) {
	code, claim := NewClaim()
	another, other := NewClaim()
	if len(code) != 19 || code == another || claim == other || len(claim) != 64 {
		t.Errorf("NewClaim: got code %q, claim %q", code, claim)
	}
	if written := " " + strings.ToLower(strings.ReplaceAll(code, "-", " ")); claimOf(code) != claim || claimOf(written) != claim {
		t.Errorf("%q is not accepted as the same code", written)
	}
}
