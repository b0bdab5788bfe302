package telegram

import (
	"errors"
	"testing"
	"time"

	"synthbot/core"
	"synthbot/core/coretest"
	"synthbot/interfaces/telegram/telegramtest"
)

// readyAfter sleeps and then checks whether the driver is ready.
func readyAfter(t *testing.T, d *Driver, pause time.Duration, want bool) {
	t.Helper()
	time.Sleep(pause)
	if err := d.Ready(); (err == nil) != want {
		t.Errorf("after %s: got %v, want ready: %v", pause, err, want)
	}
}

// TestReady: a driver is ready while it receives updates. A short interruption does not count.
func TestReady(t *testing.T) {
	for name, fault := range map[string]telegramtest.Fault{
		"server error": {Kind: telegramtest.Internal}, "no connection": {Kind: telegramtest.Reset}, "no response": {Kind: telegramtest.Hang},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, nil, func(t *testing.T, w *world) {
				if w.driver(t).Ready() == nil {
					t.Error("ready before the first connection")
				}
				d, _ := w.run(t, &coretest.Inbox{})
				readyAfter(t, d, 10*time.Minute, true)
				w.Fail(func(c telegramtest.Call) telegramtest.Fault {
					if c.Method == "getUpdates" {
						return fault
					}
					return telegramtest.Fault{}
				})
				w.Say(jay, jay, telegramtest.Saying{Text: "this ends the poll before"})
				readyAfter(t, d, 25*time.Second, true)
				readyAfter(t, d, 5*time.Minute, false)
				w.Fail(nil)
				readyAfter(t, d, 3*time.Minute, true)
			})
		})
	}
}

// TestReadyAgain: after an outage, the driver is ready before the next update arrives.
func TestReadyAgain(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, w *world) {
		d, _ := w.run(t, &coretest.Inbox{})
		w.Fail(func(c telegramtest.Call) telegramtest.Fault {
			if c.Method == "getUpdates" {
				return telegramtest.Fault{Kind: telegramtest.Reset}
			}
			return telegramtest.Fault{}
		})
		readyAfter(t, d, 5*time.Minute, false)
		w.Fail(nil)
		readyAfter(t, d, 46*time.Second, true) // pauses are 30 seconds plus up to half of that at random
	})
}

// TestReadyWhileAskedToWait: a rate limit of the platform does not make a driver unready.
func TestReadyWhileAskedToWait(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, w *world) {
		w.FailNext("getUpdates", telegramtest.Fault{Kind: telegramtest.Limited, RetryAfter: 600})
		d, _ := w.run(t, &coretest.Inbox{})
		readyAfter(t, d, 5*time.Minute, true)
	})
}

// TestNotReadyWhileNothingIsStored: a driver whose updates cannot be stored is not ready.
func TestNotReadyWhileNothingIsStored(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, w *world) {
		d, _ := w.run(t, &coretest.Inbox{Fail: func([]core.Event) error { return errors.New("out of order") }})
		readyAfter(t, d, time.Minute, true)
		w.Say(jay, jay, telegramtest.Saying{Text: "hello"})
		readyAfter(t, d, 25*time.Second, true)
		readyAfter(t, d, 5*time.Minute, false)
	})
}
