package telegram

import (
	"errors"
	"testing"
	"time"

	"synthbot/core"
	"synthbot/core/coretest"
	"synthbot/interfaces/telegram/telegramtest"
)

// readyAfter lets time pass and checks whether the driver is ready then.
func readyAfter(t *testing.T, d *Driver, pause time.Duration, want bool) {
	t.Helper()
	time.Sleep(pause)
	if err := d.Ready(); (err == nil) != want {
		t.Errorf("after %s: %v", pause, err)
	}
}

// TestReady: readiness follows the updates that come. A short interruption and a
// wait that the platform asked for do not count.
func TestReady(t *testing.T) {
	for name, fault := range map[string]telegramtest.Fault{
		"server error": {Kind: telegramtest.Internal}, "no connection": {Kind: telegramtest.Reset}, "no answer": {Kind: telegramtest.Hang},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, nil, func(t *testing.T, w *world) {
				if w.driver(t).Ready() == nil {
					t.Error("ready before it is connected")
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

// TestReadyAgain: after an outage the driver learns that updates come again without waiting for one.
func TestReadyAgain(t *testing.T) {
	bubble(t, nil, func(t *testing.T, w *world) {
		d, _ := w.run(t, &coretest.Inbox{})
		w.Fail(func(c telegramtest.Call) telegramtest.Fault {
			if c.Method == "getUpdates" {
				return telegramtest.Fault{Kind: telegramtest.Reset}
			}
			return telegramtest.Fault{}
		})
		readyAfter(t, d, 5*time.Minute, false)
		w.Fail(nil)
		readyAfter(t, d, 46*time.Second, true) // pauses have 30 seconds, and half as many by chance
	})
}

func TestReadyWhileAskedToWait(t *testing.T) {
	bubble(t, nil, func(t *testing.T, w *world) {
		w.FailNext("getUpdates", telegramtest.Fault{Kind: telegramtest.Limited, RetryAfter: 600})
		d, _ := w.run(t, &coretest.Inbox{})
		readyAfter(t, d, 5*time.Minute, true)
	})
}

func TestNotReadyWhileNothingIsTakenIn(t *testing.T) {
	bubble(t, nil, func(t *testing.T, w *world) {
		d, _ := w.run(t, &coretest.Inbox{Fail: func([]core.Event) error { return errors.New("out of order") }})
		readyAfter(t, d, time.Minute, true)
		w.Say(jay, jay, telegramtest.Saying{Text: "hello"})
		readyAfter(t, d, 25*time.Second, true)
		readyAfter(t, d, 5*time.Minute, false)
	})
}
