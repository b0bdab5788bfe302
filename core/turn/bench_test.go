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

// BenchmarkTurn is a full turn with a model that answers at once: what we spend ourselves, without a
// disk, with a file that is not synced, and with a file and a server that are. The bar is 1 ms without
// the disk, and twice the time of the file with the server.
func BenchmarkTurn(b *testing.B) {
	for _, tc := range []struct {
		name string
		open func() core.Store
	}{
		{"memory", func() core.Store { return coretest.NewMemStore() }},
		{"disk", func() core.Store { return open(b, b.TempDir()) }},
		{"file", func() core.Store { return stored(b, memory.Options{}) }},
		{"postgres", func() core.Store {
			url := secret.New(coretest.StartPostgres(b, "fsync=on").URL)
			return stored(b, memory.Options{Server: memory.ServerConfig{URL: url, Lease: time.Minute}})
		}},
	} {
		b.Run(tc.name, func(b *testing.B) {
			s := tc.open()
			defer s.Close()
			bot := start(b, s, coretest.NewRoom("room"), coretest.NewAsker(plan("Hello, Jay.")), func(o *turn.Options) { o.Config.History = 50 })
			for i := range 100 { // a window to tell of
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

func stored(b *testing.B, o memory.Options) core.Store {
	b.Helper()
	s, err := memory.Open(b.TempDir(), o)
	if err != nil {
		b.Fatal(err)
	}
	return s
}
