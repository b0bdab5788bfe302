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

// TestTokenRevoked: Listen ends with an explanation as soon as any call finds that the
// token is rejected. Actions fail with a text for users.
func TestTokenRevoked(t *testing.T) {
	at := place("telegram", jay, 0)
	for name, notice := range map[string]func(*testing.T, *world, *Driver){
		"by the poll": func(*testing.T, *world, *Driver) { time.Sleep(2 * time.Minute) },
		"by a message": func(t *testing.T, w *world, d *Driver) {
			var e *core.Error
			if err := do(t, d, "message_telegram", at, `{"text":"x"}`, &coretest.Parts{}); !errors.As(err, &e) || e.Kind != core.Broken {
				t.Errorf("message with a revoked token: got %v, want a broken interface", err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, nil, func(t *testing.T, w *world) {
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
						t.Errorf("Listen returned %v, want advice to check the token, without the token", err)
					}
				default:
					t.Fatal("Listen did not end")
				}
			})
		})
	}
}

// TestReaches: as soon as any call finds that the token is rejected, no chat is reachable,
// so that the core keeps waiting messages. With an accepted token, all chats are.
func TestReaches(t *testing.T) {
	at := place("telegram", jay, 0)
	failToSend := func(t *testing.T, d *Driver) {
		var e *core.Error
		err := do(t, d, "message_telegram", at, `{"text":"x"}`, &coretest.Parts{})
		if !errors.As(err, &e) || !errors.Is(err, core.ErrAway) || e.Kind != core.Broken || !strings.Contains(e.Text, "does not know this bot") {
			t.Errorf("message with a rejected token: got %v, want an unreachable platform", err)
		}
	}
	for name, refuse := range map[string]func(*testing.T, *world, *Driver){
		"by a message": func(t *testing.T, w *world, d *Driver) { w.Revoke(); failToSend(t, d) },
		"by typing": func(t *testing.T, w *world, d *Driver) {
			w.Revoke()
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			d.ShowTyping(ctx, at)
		},
		"by an unknown token": func(t *testing.T, w *world, d *Driver) {
			w.FailNext("sendMessage", telegramtest.Fault{Kind: telegramtest.Refused, Code: 404, Text: "Not Found"})
			failToSend(t, d)
		},
		"at the beginning": func(t *testing.T, w *world, d *Driver) {
			w.FailNext("getMe", telegramtest.Fault{Kind: telegramtest.Refused, Code: 404, Text: "Not Found"})
			if err := d.Listen(t.Context(), &coretest.Inbox{}); err == nil {
				t.Error("Listen returned nil, want an error")
			}
		},
		"by the poll": func(t *testing.T, w *world, d *Driver) {
			go func() { time.Sleep(time.Second); w.Revoke() }()
			if err := d.Listen(t.Context(), &coretest.Inbox{}); err == nil {
				t.Error("Listen returned nil, want an error")
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, nil, func(t *testing.T, w *world) {
				d := w.driver(t)
				if !d.Reaches(at) {
					t.Error("the chat is unreachable before any call")
				}
				if refuse(t, w, d); d.Reaches(at) {
					t.Error("the chat is still reachable")
				}
			})
		})
	}
	inBubble(t, nil, func(t *testing.T, w *world) {
		w.FailNext("sendMessage", telegramtest.Fault{Kind: telegramtest.Refused, Code: 401, Text: "Unauthorized"})
		d := w.driver(t)
		failToSend(t, d)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- d.Listen(ctx, &coretest.Inbox{}) }()
		if synctest.Wait(); !d.Reaches(at) {
			t.Error("the token is accepted, but the chat is unreachable")
		}
		cancel()
		<-done
	})
}

// TestTokenRevokedWebhook: with a webhook, where the driver does not poll, any other call
// that finds the token rejected ends Listen.
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
			t.Errorf("Listen returned %v, want an error about the token", err)
		}
	case <-time.After(coretest.Patience):
		t.Fatal("Listen did not end")
	}
}

// TestTopicsOverRestart: after a restart, the topic of a message is still known, because
// reactions do not name it, and so is that the chat is a forum, which has a General topic.
func TestTopicsOverRestart(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, w *world) {
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
			t.Errorf("got reactions in %s and %s, want topics 7 and 8", events[0].Message.Path, events[1].Message.Path)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		d.ShowTyping(ctx, place("telegram", forum, 0))
		cancel()
		if c := w.Calls("sendChatAction"); len(c) != 1 || c[0].Params["message_thread_id"] != "1" {
			t.Errorf("typing in General: got %+v, want one call for topic 1", c)
		}
		_ = stop()
	})
}

// TestAdministratorsAtOnce: the administrators of all groups of a batch are requested at the
// same time, so that a slow platform delays the batch once, not once for each group.
func TestAdministratorsAtOnce(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, w *world) {
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
				t.Errorf("%s: got rank %d, want moderator", e.Message.Path, e.Message.Author.Rank)
			}
		}
		if took := time.Since(began); took > 1500*time.Millisecond || len(w.Calls("getChatAdministrators")) != groups {
			t.Errorf("%d requests took %v, want %d within 1.5s", len(w.Calls("getChatAdministrators")), took, groups)
		}
		_ = stop()
	})
}

// TestRichTables: a text with a table is sent as a rich message if the configuration allows
// it and the server supports it.
func TestRichTables(t *testing.T) {
	const table = `{"text":"**Prices** <here>\n\n| what | how much |\n|---|--:|\n| tea | 2 [€](https://example.org/eur) |\n\n- [x] done\n1. a\n   - b\n\n> said\n\n` + "```go\\nx := 1\\n```" + `","buttons":[{"label":"More"}]}`
	rich := func(o *Options) { o.Config.RichTables = true }
	for name, tc := range map[string]struct {
		alter func(*Options)
		setUp func(*world)
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
			tc.setUp(w)
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
				t.Fatalf("got %+v, want two messages of kind %s and one text", list, tc.kind)
			}
			if lost := missing(letters(list[0].Text), letters("Prices here what how much tea 2 done a b said x1")); lost != "" {
				t.Errorf("got %q, which lacks the letters %q", list[0].Text, lost)
			}
			if n := len(w.Calls("sendRichMessage")); n != tc.calls {
				t.Errorf("got %d calls of sendRichMessage, want %d", n, tc.calls)
			}
			if err := do(t, d, "edit_telegram", place("telegram", jay, 0), `{"message_id":1,"text":"| a |\n|---|\n| b |"}`, &coretest.Parts{}); err != nil {
				t.Error(err)
			}
			if m := w.Messages(jay)[0]; m.Edits != 1 || (m.Kind == "rich") != (name == "on" || name == "refused") {
				t.Errorf("after the edit got %+v", m)
			}
		})
	}
}

type dialFunc = func(ctx context.Context, network, address string) (net.Conn, error)

// silentNetwork is a network whose open connections can be cut without an error.
type silentNetwork struct {
	mu    sync.Mutex
	conns []*silentConn
}

type silentConn struct {
	net.Conn
	cut    chan struct{} // closed when the connection carries nothing any more
	closed chan struct{}
	once   sync.Once
}

// wrap returns a dial function whose connections can be cut.
func (n *silentNetwork) wrap(dial dialFunc) dialFunc {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		c := &silentConn{Conn: conn, cut: make(chan struct{}), closed: make(chan struct{})}
		n.mu.Lock()
		defer n.mu.Unlock()
		n.conns = append(n.conns, c)
		return c, nil
	}
}

// cutAll cuts all open connections.
func (n *silentNetwork) cutAll() {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, c := range n.conns {
		close(c.cut)
	}
	n.conns = nil
}

// Write implements net.Conn. After the cut it discards everything.
func (c *silentConn) Write(p []byte) (int, error) {
	select {
	case <-c.cut:
		return len(p), nil
	default:
		return c.Conn.Write(p)
	}
}

// Read implements net.Conn. After the cut it blocks until the connection is closed.
func (c *silentConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	select {
	case <-c.cut:
		<-c.closed
		return 0, net.ErrClosed
	default:
		return n, err
	}
}

// Close implements net.Conn.
func (c *silentConn) Close() error {
	c.once.Do(func() { close(c.closed) })
	return c.Conn.Close()
}

// TestDeadConnections: no message is lost when all open connections stop working at once,
// as after a change of the network.
func TestDeadConnections(t *testing.T) {
	network := &silentNetwork{}
	inBubble(t, func(o *Options) { o.Dial = network.wrap(o.Dial) }, func(t *testing.T, w *world) {
		in := &coretest.Inbox{}
		d, stop := w.run(t, in)
		w.Delay(func(telegramtest.Call) time.Duration { return time.Second })
		var all sync.WaitGroup
		for i := range 5 { // five connections stay open
			all.Go(func() {
				time.Sleep(time.Duration(i) * time.Millisecond)
				if err := do(t, d, "message_telegram", place("telegram", []int64{jay, ann, group, forum, basic}[i], 0), `{"text":"one"}`, &coretest.Parts{}); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		synctest.Wait()
		network.cutAll()
		if err := again(t, d, place("telegram", jay, 0), "two", &coretest.Parts{}); err != nil {
			t.Error(err)
		}
		w.Say(jay, jay, telegramtest.Saying{Text: "hello?"})
		time.Sleep(2 * time.Minute)
		if got := shownTexts(w, jay); !slices.Equal(got, []string{"one", "two"}) || len(in.Events()) != 1 {
			t.Errorf("got messages %q, want one and two; %d events, want 1", got, len(in.Events()))
		}
		_ = stop()
	})
}

// TestListenWhileTheStoreIsAway checks that Listen waits for a store that cannot be read, and then knows what was
// stored.
func TestListenWhileTheStoreIsAway(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, w *world) {
		before, stop := w.listen(t, &coretest.Inbox{})
		before.places.titles[chatKey{chat: group}], before.places.changed = label{Name: "Harbour"}, true
		synctest.Wait()
		stop()
		w.state.failWith(errors.New("connection refused"))
		in := &coretest.Inbox{}
		d, stop := w.listen(t, in)
		time.Sleep(time.Minute)
		w.state.failWith(nil)
		w.Say(jay, jay, telegramtest.Saying{Text: "hello"})
		in.Wait(t, 1)
		if name := d.NameOf(place("telegram", group, 0)); name != "Harbour" {
			t.Errorf("the chat is called %q, want its stored name", name)
		}
		stop()
	})
}
