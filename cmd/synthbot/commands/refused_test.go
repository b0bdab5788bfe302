package commands

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"synthbot/interfaces/telegram/telegramtest"
)

// TestRefusedTokenStopsOneInterface checks that a rejected token stops its interface only. Admins are alerted,
// other interfaces continue, and the exit status reports the failure.
func TestRefusedTokenStopsOneInterface(t *testing.T) {
	first, second := telegramtest.New(t), telegramtest.New(t)
	address := freeAddress(t)
	d := startDaemon(t, onTelegram(newSlowEchoModel(t, time.Millisecond), first.URL,
		fmt.Sprintf("[metrics]\nlisten = \""+address+"\"\n[interfaces.second]\ntype = \"telegram\"\ntoken = \"999:revoked\"\napi_url = %q\n", second.URL)))
	first.AddPerson(telegramtest.Person{ID: 900, Name: "Root"})
	first.AddPerson(telegramtest.Person{ID: 1000, Name: "Jay"})
	alerts := func() (text string) {
		for _, m := range first.Messages(900) {
			text += m.Text + "\n"
		}
		return text
	}
	until(t, func() bool { return strings.Contains(alerts(), "second") })
	if text := alerts(); !strings.Contains(text, "401") || strings.Contains(text, "revoked") {
		t.Errorf("alerts to the admin: got %q", text)
	}
	awaitStatus := func(page string, status int) {
		t.Helper()
		until(t, func() bool { // the page may not be served yet
			r, err := http.Get("http://" + address + page)
			return err == nil && r.Body.Close() == nil && r.StatusCode == status
		})
	}
	awaitStatus("/readyz", http.StatusServiceUnavailable)
	awaitStatus("/healthz", http.StatusOK)
	for n := range 3 {
		first.Say(1000, 1000, telegramtest.Saying{Text: fmt.Sprintf("m%d", n)})
		awaitReplies(t, first, 1000, n+1)
	}
	if d.stop(); <-d.status != statusFailed {
		t.Error("the exit status is not statusFailed")
	}
}

// TestRefusedTokenLosesNothing checks that messages from before a token was rejected are answered once it is
// accepted again, after a reload and after a restart.
func TestRefusedTokenLosesNothing(t *testing.T) {
	for _, name := range []string{"reload", "restart"} {
		t.Run(name, func(t *testing.T) {
			platform, dir := telegramtest.New(t), t.TempDir()
			model := newSlowEchoModel(t, 300*time.Millisecond)
			config := strings.Replace(onTelegram(model, platform.URL, ""), `"data"`, strconv.Quote(dir), 1)
			d := startDaemon(t, config)
			d.awaitNotice("READY=1")
			for i := range int64(3) {
				platform.AddPerson(telegramtest.Person{ID: 1000 + i, Name: "Jay"})
				platform.Say(1000+i, 1000+i, telegramtest.Saying{Text: fmt.Sprintf("m%d", i)})
			}
			refused := func(c telegramtest.Call) (f telegramtest.Fault) {
				if c.Method == "sendMessage" {
					f = telegramtest.Fault{Kind: telegramtest.Refused, Code: 401, Text: "Unauthorized"}
				}
				return f
			}
			platform.Fail(refused)
			until(t, func() bool { return len(platform.Calls("sendMessage")) > 0 })
			platform.Fail(nil)
			if name == "reload" {
				until(t, func() bool { d.hangUp(); return answered(platform, 3) == 3 }) // it may still be stopping
			} else {
				d.stop()
				<-d.status
				d = startDaemon(t, config)
			}
			for i := range int64(3) {
				awaitReplies(t, platform, 1000+i, 1)
			}
			d.stop()
			<-d.status
			for i := range int64(3) {
				if said := awaitReplies(t, platform, 1000+i, 1); len(said) != 1 || said[0] != fmt.Sprintf("re m%d", i) {
					t.Errorf("user %d: got answers %q", 1000+i, said)
				}
			}
		})
	}
}
