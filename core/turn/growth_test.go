package turn_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"synthbot/core/coretest"
	"synthbot/core/turn"
	"synthbot/memory"
)

// TestGrowth limits how much the database grows with each answered message of a usual length.
func TestGrowth(t *testing.T) {
	n := coretest.Sample(400, 100)
	dir := t.TempDir()
	db, err := memory.Open(dir, memory.Options{NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	size := func() int64 {
		if _, _, err := db.Compact(context.Background()); err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(filepath.Join(dir, memory.FileName))
		if err != nil {
			t.Fatal(err)
		}
		return info.Size()
	}
	answer := "Well, I would say that the quick brown fox is rather lazy today, don't you think so? Let us meet at ten."
	bot := start(t, db, coretest.NewRoom("room"), coretest.NewAsker(plan(answer)), func(*turn.Options) {})
	answerSome := func(from, to int) {
		for i := from; i < to; i++ {
			bot.receive(said(fmt.Sprint(1200000000000000000+i), "jay", "What do you say: is the quick brown fox rather lazy today? Shall we meet at ten?"))
			<-bot.room.Ends()
		}
	}
	answerSome(0, n)
	before := size()
	answerSome(n, 3*n)
	each := float64(size()-before) / float64(2*n) / 1024 * 1000
	t.Logf("%.0f KiB for 1,000 answered messages", each)
	if each > 550 {
		t.Errorf("the file grows by %.0f KiB for 1,000 answered messages, want at most 550", each)
	}
}
