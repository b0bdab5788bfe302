package memory

import (
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"synthbot/memory/bolt"
)

// TestYear measures a year of a busy server, 3.65 million messages, with -huge: how much of the
// file each message takes besides its text, how long the start takes, and how much longer commits
// take than usual during a backup. -v shows the results.
func TestYear(t *testing.T) {
	if !*huge {
		t.Skip("takes minutes; run it with -huge")
	}
	const n = 3_650_000
	db := stock(t, n)
	size, err := db.engine.Engine.(*bolt.File).Size()
	if err != nil {
		t.Fatal(err)
	}
	each := float64(size)/n - float64(len(chat(0).Message.Text))
	var starts waited
	for range 5 {
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
		starts = append(starts, timed(func() { db, err = Open(filepath.Dir(db.engine.name), Options{}) }))
		if err != nil {
			t.Fatal(err)
		}
		add(t, db, chat(n))
	}
	defer db.Close()
	slices.Sort(starts)
	next := n
	commits := func(until <-chan struct{}) (w waited) {
		for {
			select {
			case <-until:
				slices.Sort(w)
				return w
			default:
				next++
				w = append(w, timed(func() { add(t, db, chat(next)) }))
				time.Sleep(time.Millisecond)
			}
		}
	}
	var quiet, busy, slower []float64
	for range 5 {
		over := make(chan struct{})
		took := timed(func() {
			go func() {
				defer close(over)
				if _, err := db.WriteTo(io.Discard); err != nil {
					t.Error(err)
				}
			}()
			w := commits(over)
			busy = append(busy, ms(w[len(w)/2]))
		})
		over = make(chan struct{})
		time.AfterFunc(took, func() { close(over) })
		w := commits(over)
		quiet = append(quiet, ms(w[len(w)/2]))
		slower = append(slower, busy[len(busy)-1]/quiet[len(quiet)-1])
	}
	t.Logf("%.0f MB, %.0f bytes for each message beside its text; start %v; commit %.2f ms, %.2f ms during a backup, %.2f times as long",
		float64(size)/1e6, each, starts, median(quiet), median(busy), median(slower))
	if starts[len(starts)/2] > 20*time.Millisecond {
		t.Error(fmt.Sprint("the start takes ", starts))
	}
}
