package turn_test

import (
	"fmt"
	"testing"
	"time"

	"synthbot/core"
	"synthbot/core/coretest"
	"synthbot/core/secret"
	"synthbot/core/turn"
	"synthbot/memory"
)

// BenchmarkTurn measures a full turn with a model that answers at once: with an unsynced file, with a synced
// file and with PostgreSQL. Targets: 1 ms with an unsynced file; PostgreSQL at most twice the synced file.
func BenchmarkTurn(b *testing.B) {
	for _, tc := range []struct {
		name string
		open func() core.Store
	}{
		{"disk", func() core.Store { return open(b, b.TempDir()) }},
		{"file", func() core.Store { return openSynced(b, memory.Options{}) }},
		{"postgres", func() core.Store {
			url := secret.New(coretest.StartPostgres(b, "fsync=on").URL)
			return openSynced(b, memory.Options{Server: memory.ServerConfig{URL: url, Lease: time.Minute}})
		}},
	} {
		b.Run(tc.name, func(b *testing.B) {
			s := tc.open()
			defer s.Close()
			bot := start(b, s, coretest.NewRoom("room"), coretest.NewAsker(plan("Hello, Jay.")), func(o *turn.Options) { o.Config.History = 50 })
			for i := range 100 { // fills the history
				bot.receive(said(fmt.Sprint("w", i), "jay", "something that was said before, of a usual length"))
				<-bot.room.Ends()
			}
			for b.Loop() {
				bot.receive(said(fmt.Sprint(time.Now().UnixNano()), "jay", "hi"))
				<-bot.room.Ends()
			}
		})
	}
}

func openSynced(b *testing.B, o memory.Options) core.Store {
	b.Helper()
	s, err := memory.Open(b.TempDir(), o)
	if err != nil {
		b.Fatal(err)
	}
	return s
}
