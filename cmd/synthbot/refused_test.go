package main

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"synthbot/interfaces/telegram/telegramtest"
)

// TestRefusedTokenStopsOneInterface: a platform that does not know the token any
// more stops that interface, admins are told, the other one goes on, and in the end
// the status tells.
func TestRefusedTokenStopsOneInterface(t *testing.T) {
	first, second := telegramtest.New(t), telegramtest.New(t)
	address := freeAddress(t)
	d := startDaemon(t, onTelegram(echoAfter(t, time.Millisecond), first.URL,
		fmt.Sprintf("[metrics]\nlisten = \""+address+"\"\n[interfaces.second]\ntype = \"telegram\"\ntoken = \"999:revoked\"\napi_url = %q\n", second.URL)))
	first.AddPerson(telegramtest.Person{ID: 900, Name: "Root"})
	first.AddPerson(telegramtest.Person{ID: 1000, Name: "Jay"})
	told := func() (text string) {
		for _, m := range first.Messages(900) {
			text += m.Text + "\n"
		}
		return text
	}
	until(t, func() bool { return strings.Contains(told(), "second") })
	if text := told(); !strings.Contains(text, "401") || strings.Contains(text, "revoked") {
		t.Errorf("the admin was told %q", text)
	}
	says := func(page string, status int) {
		t.Helper()
		until(t, func() bool { // it may take a moment to be served
			r, err := http.Get("http://" + address + page)
			return err == nil && r.Body.Close() == nil && r.StatusCode == status
		})
	}
	says("/readyz", http.StatusServiceUnavailable)
	says("/healthz", http.StatusOK)
	for n := range 3 {
		first.Say(1000, 1000, telegramtest.Saying{Text: fmt.Sprintf("m%d", n)})
		hears(t, first, 1000, n+1)
	}
	if d.stop(); <-d.status != statusFailed {
		t.Error("it ended as if nothing were wrong")
	}
}
