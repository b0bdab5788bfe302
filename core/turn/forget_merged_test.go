package turn_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"synthbot/core"
	"synthbot/core/coretest"
	"synthbot/memory"
)

// beginnings is a store that calls before whenever a turn after the first is begun, and fails if that fails.
type beginnings struct {
	core.Store
	before func() error
}

func (s *beginnings) Commit(ctx context.Context, b *core.Batch) error {
	begins := slices.ContainsFunc(b.Journal, func(r core.Record) bool {
		return r.Key == core.Key{Turn: r.Key.Turn} && r.Key.Turn.Seq > 1
	})
	if begins {
		if err := s.before(); err != nil {
			return err
		}
	}
	return s.Store.Commit(ctx, b)
}

// TestForgottenAmongMerged: if a turn could not be begun, and then answers the messages of more users, none of them is
// forgotten while it begins without being left out.
func TestForgottenAmongMerged(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		db, err := memory.Open(dir, memory.Options{NoSync: true})
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		begun, received := 0, make(chan struct{})
		forget := func() error {
			begun++
			switch begun {
			case 1:
				<-received
				return errUnsure
			case 2:
				user, _ := square.Person("u4")
				return db.Forget(context.Background(), user)
			}
			return nil
		}
		asker := coretest.NewAsker(plan("ok"), plan("ok"))
		asker.Hold = make(chan struct{})
		b := start(t, &beginnings{db, forget}, coretest.NewRoom("room"), asker)
		defer b.stop()
		b.receive(talk("0", "jay", "Aria, hi"))
		b.thinks(1)
		b.receive(talk("1", "eve", "Aria, hi"))
		close(asker.Hold)
		synctest.Wait() // the turn of eve begins
		for n := range 6 {
			user := fmt.Sprint("u", n)
			b.receive(talk(fmt.Sprint(n+2), user, "Aria, I am "+user))
		}
		close(received)
		b.quiet()
		asked := b.asker.Asked()
		prompt := fmt.Sprint(asked[len(asked)-1].Messages)
		if begun < 2 || !strings.Contains(prompt, "u3") || strings.Contains(prompt, "u4") {
			t.Errorf("after %d beginnings the model read %s, want all but the forgotten user", begun, prompt)
		}
	})
}
