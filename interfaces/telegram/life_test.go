package telegram

import (
	"context"
	"errors"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"synthbot/core"
	"synthbot/core/coretest"
	"synthbot/interfaces/telegram/botapi"
	"synthbot/interfaces/telegram/telegramtest"
)

// TestTokenRevoked ends the interface as soon as any call finds the token
// refused, and tells why; actions fail in words then.
func TestTokenRevoked(t *testing.T) {
	at := place("telegram", jay, 0)
	for name, notice := range map[string]func(*testing.T, *world, *Driver){
		"by the poll": func(*testing.T, *world, *Driver) { time.Sleep(2 * time.Minute) },
		"by a message": func(t *testing.T, w *world, d *Driver) {
			var e *core.Error
			if err := do(t, d, "message_telegram", at, `{"text":"x"}`, &coretest.Parts{}); !errors.As(err, &e) || e.Kind != core.Broken {
				t.Errorf("sent: %v", err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, nil, func(t *testing.T, w *world) {
				d, err := New(w.options())
				if err != nil {
					t.Fatal(err)
				}
				done := make(chan error, 1)
				go func() { done <- d.Listen(t.Context(), &coretest.Inbox{}) }()
				synctest.Wait()
				w.Revoke()
				notice(t, w, d)
				synctest.Wait()
				select {
				case err := <-done:
					if err == nil || !strings.Contains(err.Error(), "check the token") || !strings.Contains(err.Error(), "@BotFather") || strings.Contains(err.Error(), telegramtest.Token[10:]) {
						t.Errorf("ended with %v", err)
					}
				default:
					t.Fatal("Listen goes on")
				}
			})
		})
	}
}

// TestReaches: as soon as any call finds the token refused, nothing is said to be in
// reach, so that what waits is not answered in vain; with a token that is taken all
// is.
func TestReaches(t *testing.T) {
	at := place("telegram", jay, 0)
	say := func(t *testing.T, d *Driver) {
		var e *core.Error
		err := do(t, d, "message_telegram", at, `{"text":"x"}`, &coretest.Parts{})
		if !errors.As(err, &e) || !errors.Is(err, core.ErrAway) || e.Kind != core.Broken || !strings.Contains(e.Text, "does not know this bot") {
			t.Errorf("sent: %v", err)
		}
	}
	for name, refuse := range map[string]func(*testing.T, *world, *Driver){
		"by a message": func(t *testing.T, w *world, d *Driver) { w.Revoke(); say(t, d) },
		"by typing": func(t *testing.T, w *world, d *Driver) {
			w.Revoke()
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			d.ShowTyping(ctx, at)
		},
		"as none": func(t *testing.T, w *world, d *Driver) {
			w.FailNext("sendMessage", telegramtest.Fault{Kind: telegramtest.Refused, Code: 404, Text: "Not Found"})
			say(t, d)
		},
		"at the beginning": func(t *testing.T, w *world, d *Driver) {
			w.FailNext("getMe", telegramtest.Fault{Kind: telegramtest.Refused, Code: 404, Text: "Not Found"})
			if err := d.Listen(t.Context(), &coretest.Inbox{}); err == nil {
				t.Error("listened")
			}
		},
		"by the poll": func(t *testing.T, w *world, d *Driver) {
			go func() { time.Sleep(time.Second); w.Revoke() }()
			if err := d.Listen(t.Context(), &coretest.Inbox{}); err == nil {
				t.Error("listened")
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, nil, func(t *testing.T, w *world) {
				d := w.driver(t)
				if !d.Reaches(at) {
					t.Error("out of reach before anything was said")
				}
				if refuse(t, w, d); d.Reaches(at) {
					t.Error("still in reach")
				}
			})
		})
	}
	bubble(t, nil, func(t *testing.T, w *world) {
		w.FailNext("sendMessage", telegramtest.Fault{Kind: telegramtest.Refused, Code: 401, Text: "Unauthorized"})
		d := w.driver(t)
		say(t, d)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- d.Listen(ctx, &coretest.Inbox{}) }()
		if synctest.Wait(); !d.Reaches(at) {
			t.Error("the token is taken, and nothing is in reach")
		}
		cancel()
		<-done
	})
}

// TestTokenRevokedWebhook: nobody polls there, so a call of ours must tell.
func TestTokenRevokedWebhook(t *testing.T) {
	address := freeAddress(t)
	w := newWorld(t, func(o *Options) {
		o.Config.Webhook = botapi.Webhook{URL: "https://bot.example.org/hook", Listen: address}
	})
	d := w.driver(t)
	done := make(chan error, 1)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() { done <- d.Listen(ctx, &coretest.Inbox{}) }()
	w.Await(t, func() bool { url, _ := w.Hook(); return url != "" })
	w.Revoke()
	_ = do(t, d, "message_telegram", place("telegram", jay, 0), `{"text":"x"}`, &coretest.Parts{})
	select {
	case err := <-done:
		if err == nil || !strings.Contains(err.Error(), "token") {
			t.Errorf("ended with %v", err)
		}
	case <-time.After(coretest.Patience):
		t.Fatal("Listen goes on")
	}
}

// TestTopicsOverRestart knows after a restart in which topic a message is,
// though the platform does not say so with reactions, and that General is one.
func TestTopicsOverRestart(t *testing.T) {
	bubble(t, nil, func(t *testing.T, w *world) {
		in := &coretest.Inbox{}
		d, stop := w.run(t, in)
		theirs := w.Say(forum, jay, telegramtest.Saying{Thread: 7, Text: "theirs"})
		if err := do(t, d, "message_telegram", place("telegram", forum, 8), `{"text":"ours"}`, &coretest.Parts{}); err != nil {
			t.Fatal(err)
		}
		in.Wait(t, 1)
		_ = stop()
		d, stop = w.run(t, in)
		w.React(forum, theirs, ann, "👍")
		w.React(forum, w.Messages(forum)[0].ID, ann, "🔥")
		events := in.Wait(t, 3)[1:]
		if events[0].Message.Path != place("telegram", forum, 7) || events[1].Message.Path != place("telegram", forum, 8) {
			t.Errorf("reactions in %s and %s", events[0].Message.Path, events[1].Message.Path)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		d.ShowTyping(ctx, place("telegram", forum, 0))
		cancel()
		if c := w.Calls("sendChatAction"); len(c) != 1 || c[0].Params["message_thread_id"] != "1" {
			t.Errorf("typing in General: %+v", c)
		}
		_ = stop()
	})
}

// TestAdministratorsAtOnce asks about all groups of a batch together: a slow
// platform costs one wait, not one a group.
func TestAdministratorsAtOnce(t *testing.T) {
	bubble(t, nil, func(t *testing.T, w *world) {
		const groups = 12
		for i := range groups {
			w.AddChat(telegramtest.Chat{ID: int64(-1000000 - i), Type: "supergroup", Title: "G", Admins: []int64{ann}})
			w.Say(int64(-1000000-i), ann, telegramtest.Saying{Text: "x"})
		}
		w.Delay(func(c telegramtest.Call) time.Duration {
			if c.Method == "getChatAdministrators" {
				return time.Second
			}
			return 0
		})
		in := &coretest.Inbox{}
		began := time.Now()
		_, stop := w.run(t, in)
		for _, e := range in.Wait(t, groups) {
			if e.Message.Author.Rank != core.RankModerator {
				t.Errorf("%s: rank %d", e.Message.Path, e.Message.Author.Rank)
			}
		}
		if took := time.Since(began); took > 1500*time.Millisecond || len(w.Calls("getChatAdministrators")) != groups {
			t.Errorf("%d questions took %v", len(w.Calls("getChatAdministrators")), took)
		}
		_ = stop()
	})
}

// TestRichTables sends what holds a table as a rich message, where that is
// wanted and understood.
func TestRichTables(t *testing.T) {
	const table = `{"text":"**Prices** <here>\n\n| what | how much |\n|---|--:|\n| tea | 2 [€](https://example.org/eur) |\n\n- [x] done\n1. a\n   - b\n\n> said\n\n` + "```go\\nx := 1\\n```" + `","buttons":[{"label":"More"}]}`
	rich := func(o *Options) { o.Config.RichTables = true }
	for name, tc := range map[string]struct {
		alter func(*Options)
		stage func(*world)
		kind  string
		calls int // of sendRichMessage, for two messages
	}{
		"off":          {nil, func(*world) {}, "text", 0},
		"on":           {rich, func(*world) {}, "rich", 2},
		"older server": {rich, func(w *world) { w.Lack("sendRichMessage") }, "text", 1},
		"refused": {rich, func(w *world) {
			bad := telegramtest.Fault{Kind: telegramtest.Refused, Text: "Bad Request: can't parse rich message"}
			w.FailNext("sendRichMessage", bad, bad)
		}, "text", 2},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, tc.alter)
			tc.stage(w)
			d := w.driver(t)
			for range 2 {
				if err := do(t, d, "message_telegram", place("telegram", jay, 0), table, &coretest.Parts{}); err != nil {
					t.Fatal(err)
				}
			}
			if err := do(t, d, "message_telegram", place("telegram", jay, 0), `{"text":"no table"}`, &coretest.Parts{}); err != nil {
				t.Fatal(err)
			}
			list := w.Messages(jay)
			if len(list) != 3 || list[0].Kind != tc.kind || list[1].Kind != tc.kind || list[2].Kind != "text" || len(list[0].Markup) == 0 {
				t.Fatalf("stands: %+v", list)
			}
			if lost := missing(letters(list[0].Text), letters("Prices here what how much tea 2 done a b said x1")); lost != "" {
				t.Errorf("%q: %q is lost", list[0].Text, lost)
			}
			if n := len(w.Calls("sendRichMessage")); n != tc.calls {
				t.Errorf("tried %d times", n)
			}
			if err := do(t, d, "edit_telegram", place("telegram", jay, 0), `{"message_id":1,"text":"| a |\n|---|\n| b |"}`, &coretest.Parts{}); err != nil {
				t.Error(err)
			}
			if m := w.Messages(jay)[0]; m.Edits != 1 || (m.Kind == "rich") != (name == "on" || name == "refused") {
				t.Errorf("edited: %+v", m)
			}
		})
	}
}

type dialFunc = func(ctx context.Context, network, address string) (net.Conn, error)

// dying is a network whose connections go dead in silence on demand.
type dying struct {
	mu    sync.Mutex
	conns []*mortal
}

type mortal struct {
	net.Conn
	dead chan struct{}
	gone chan struct{}
	once sync.Once
}

func (n *dying) around(dial dialFunc) dialFunc {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		c := &mortal{Conn: conn, dead: make(chan struct{}), gone: make(chan struct{})}
		n.mu.Lock()
		defer n.mu.Unlock()
		n.conns = append(n.conns, c)
		return c, nil
	}
}

func (n *dying) die() {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, c := range n.conns {
		close(c.dead)
	}
	n.conns = nil
}

// Write implements net.Conn; the dead take everything.
func (c *mortal) Write(p []byte) (int, error) {
	select {
	case <-c.dead:
		return len(p), nil
	default:
		return c.Conn.Write(p)
	}
}

// Read implements net.Conn; the dead say nothing.
func (c *mortal) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	select {
	case <-c.dead:
		<-c.gone
		return 0, net.ErrClosed
	default:
		return n, err
	}
}

// Close implements net.Conn.
func (c *mortal) Close() error {
	c.once.Do(func() { close(c.gone) })
	return c.Conn.Close()
}

// TestDeadConnections loses no message though all connections that are open
// went dead at once, as after a change of the network.
func TestDeadConnections(t *testing.T) {
	network := &dying{}
	bubble(t, func(o *Options) { o.Dial = network.around(o.Dial) }, func(t *testing.T, w *world) {
		in := &coretest.Inbox{}
		d, stop := w.run(t, in)
		w.Delay(func(telegramtest.Call) time.Duration { return time.Second })
		var all sync.WaitGroup
		for i := range 5 { // so many connections stay open
			all.Go(func() {
				time.Sleep(time.Duration(i) * time.Millisecond)
				if err := do(t, d, "message_telegram", place("telegram", []int64{jay, ann, group, forum, basic}[i], 0), `{"text":"one"}`, &coretest.Parts{}); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		synctest.Wait()
		network.die()
		if err := again(t, d, place("telegram", jay, 0), "two", &coretest.Parts{}); err != nil {
			t.Error(err)
		}
		w.Say(jay, jay, telegramtest.Saying{Text: "hello?"})
		time.Sleep(2 * time.Minute)
		if got := shownTexts(w, jay); !slices.Equal(got, []string{"one", "two"}) || len(in.Events()) != 1 {
			t.Errorf("%q stand, %d events", got, len(in.Events()))
		}
		_ = stop()
	})
}
