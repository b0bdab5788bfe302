package commands

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"testing"

	"synthbot/daemon"
	"synthbot/interfaces/telegram/telegramtest"
)

// daemonOf runs a configuration until the test ends or stop is called.
func daemonOf(t testing.TB, file string, log io.Writer) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	over := make(chan int, 1)
	go func() { over <- run(ctx, []string{"run", "-c", file}, strings.NewReader(""), io.Discard, log) }()
	ended := false
	stop = func() {
		if ended {
			return
		}
		ended = true
		cancel()
		if status := <-over; status != statusDone {
			t.Errorf("exit status %d, want %d", status, statusDone)
		}
	}
	t.Cleanup(stop)
	return stop
}

// TestClaim checks that the user who sends the claim code becomes an admin, at once and after a restart. Nobody
// else does, and /claim does not let an unknown user in.
func TestClaim(t *testing.T) {
	platform := telegramtest.New(t)
	code, claim := daemon.NewClaim()
	file := filepath.Join(t.TempDir(), "config.toml")
	write(t, file, fmt.Sprintf("[bot]\ndata_dir = \"data\"\nclaim = %q\n[access]\nprivate = \"pairing\"\n[interfaces.telegram]\ntoken = %q\napi_url = %q\npace = \"off\"\n",
		claim, telegramtest.Token, platform.URL))
	for _, id := range []int64{1000, 2000, 3000} {
		platform.AddPerson(telegramtest.Person{ID: id, Name: fmt.Sprint("P", id)})
	}
	says := func(who int64, text string) { platform.Say(who, who, telegramtest.Saying{Text: text}) }
	last := func(who int64, n int, want string) {
		t.Helper()
		if texts := awaitReplies(t, platform, who, n); !strings.Contains(texts[n-1], want) {
			t.Errorf("user %d: got %q, want %q last", who, texts, want)
		}
	}
	stop := daemonOf(t, file, io.Discard)
	says(1000, "/claim AAAA-BBBB-CCCC-DDDD")
	last(1000, 1, "That is not the code")
	says(1000, "/help")
	last(1000, 2, "I don't know you yet")
	says(1000, "/claim "+strings.ToLower(strings.ReplaceAll(code, "-", " ")))
	last(1000, 3, "You are my admin now")
	platform.Await(t, func() bool {
		for scope, menu := range platform.Commands() {
			if strings.Contains(scope, "1000") {
				return strings.Contains(menu, `"status"`) && !strings.Contains(menu, `"claim"`)
			}
		}
		return false
	})
	says(1000, "/status")
	last(1000, 4, "interface telegram: running")
	says(2000, "/claim "+code)
	says(2000, "/claim tell me a joke")
	says(2000, "hello")
	last(2000, 1, "I don't know you yet")
	last(1000, 5, "wants to talk to me")
	stop()

	stop = daemonOf(t, file, io.Discard)
	says(1000, "/status")
	last(1000, 6, "interface telegram: running")
	says(3000, "/claim "+code)
	says(3000, "hello")
	last(3000, 1, "I don't know you yet")
	stop()
	if status, out, errs := runLine(t, "", "history", "-c", file); status != statusDone || !strings.Contains(out, "\nP1000  telegram/1000  ") {
		t.Errorf("history: status %d, %s%s", status, out, errs)
	}
	if status, out, errs := runLine(t, "", "history", "telegram/3000", "-c", file); status != statusDone || strings.Contains(out, "  : ") || !strings.Contains(out, "I don't know you yet") {
		t.Errorf("history of an unknown user: status  %d, %s%s", status, out, errs)
	}
	if _, out, _ := runLine(t, "", "history", "-c", file, "--format", "json"); !strings.Contains(out, `{"name":"P1000","path":"telegram/1000",`) {
		t.Errorf("history in JSON: %s", out)
	}
	for _, who := range []int64{2000, 3000} {
		if n := len(platform.Messages(who)); n != 1 {
			t.Errorf("user %d got %d messages, want 1", who, n)
		}
	}
}
