package commands

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"testing"
	"time"

	"synthbot/core"
	"synthbot/memory"
)

// storeUnanswered stores an unanswered message in each place.
func storeUnanswered(t *testing.T, dir string, places ...string) {
	t.Helper()
	db, err := memory.Open(dir, memory.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	b := &core.Batch{}
	for _, p := range places {
		b.Append = append(b.Append, core.Entry{Event: core.Event{Kind: core.KindMessage, Message: core.Message{
			Path: core.MustPath(p), ID: "1", Text: "is anybody there?", Time: time.Now(), Private: true, Addressed: core.AddressedDirect,
			Author: core.Author{ID: "ann", Name: "Ann"},
		}}, Due: true})
	}
	if err := db.Commit(t.Context(), b); err != nil {
		t.Fatal(err)
	}
}

// waitingPlaces lists the places with messages that wait for an answer.
func waitingPlaces(t *testing.T, dir string) (places []string) {
	t.Helper()
	db, err := memory.Open(dir, memory.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	err = db.View(context.Background(), func(v core.View) error {
		list, err := v.Waiting()
		for _, p := range list {
			places = append(places, p.String())
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return slices.Sorted(slices.Values(places))
}

// TestOthersWait checks that a user in the terminal does not cause answers in other places. They are answered
// by a process that serves their place.
func TestOthersWait(t *testing.T) {
	dir := t.TempDir()
	storeUnanswered(t, dir, "console/main", "console/other", "telegram/1000")
	d := startDaemon(t, "[bot]\ndata_dir = "+strconv.Quote(dir)+"\n[interfaces.desk]\ntype = \"console\"\n")
	d.awaitNotice("READY=1")
	d.ask("hello")
	talk := func(session string) {
		t.Helper()
		if status, out, errs := d.command("hello\n", "chat", "--session", session); status != 0 || out == "" || errs != "" {
			t.Errorf("chat %s: %d, %q, %q", session, status, out, errs)
		}
	}
	talk("main")
	d.end()
	if got := waitingPlaces(t, dir); !slices.Equal(got, []string{"console/other", "telegram/1000"}) {
		t.Errorf("after a chat at the daemon: messages wait in %q", got)
	}
	talk("other")
	if got := waitingPlaces(t, dir); !slices.Equal(got, []string{"telegram/1000"}) {
		t.Errorf("after a chat without the daemon: messages wait in %q", got)
	}
}

// TestWhoLeavesIsAnsweredLater checks that a user who leaves the terminal while the bot works gets the answer
// when they return. The model is not asked again.
func TestWhoLeavesIsAnsweredLater(t *testing.T) {
	asked, think := make(chan struct{}, 10), make(chan struct{})
	model := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked <- struct{}{}
		select {
		case <-think:
		case <-r.Context().Done():
		}
		fmt.Fprintf(w, `{"choices":[{"message":{"role":"assistant","content":"{\"response\":\"Here I am.\"}"},"finish_reason":"stop"}]}`)
	}))
	t.Cleanup(model.Close)
	d := startDaemon(t, atDesk+"[[engine]]\nprovider = \"vllm\"\nmodel = \"m\"\nstream = false\nbase_url = \""+model.URL+"\"\n")
	d.awaitNotice("READY=1")
	ctx, leave := context.WithCancel(t.Context())
	r, w := io.Pipe()
	left := make(chan int, 1)
	go func() { left <- run(ctx, []string{"chat", "-c", d.file}, r, io.Discard, io.Discard) }()
	if _, err := io.WriteString(w, "hello\n"); err != nil {
		t.Fatal(err)
	}
	<-asked
	leave()
	<-left
	w.Close()
	until(t, func() bool { status, _, _ := d.command("", "chat"); return status == 0 }) // the session is free again
	close(think)
	status, out, errs := d.command("again\n", "chat")
	if status != 0 || out != "Here I am.\nHere I am.\n" || len(asked) != 1 {
		t.Errorf("back again: %d, %q, %q; the model was asked %d times more", status, out, errs, len(asked))
	}
	d.end()
}
