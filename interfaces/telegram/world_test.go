package telegram

import (
	"bytes"
	"cmp"
	"context"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode"

	"go.uber.org/goleak"

	"synthbot/core"
	"synthbot/core/command"
	"synthbot/core/coretest"
	"synthbot/core/markdown"
	"synthbot/core/secret"
	"synthbot/interfaces/telegram/botapi"
	"synthbot/interfaces/telegram/markup"
	"synthbot/interfaces/telegram/telegramtest"
)

func TestMain(m *testing.M) {
	// The library waits half a second before it closes a connection that sent too much.
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("net/http.(*conn).closeWriteAndWait"))
}

// People and chats of the test platform.
const (
	jay   = 1000
	ann   = 1001
	group = -1001234567890
	forum = -1009876543210
	basic = -4242
)

// world is a fake platform with users and chats, and the state that drivers store about it.
type world struct {
	*telegramtest.Server
	state memory
	log   logs
	alter func(*Options)
}

// newWorld returns a world. Its drivers are not rate limited unless alter says so.
func newWorld(t testing.TB, alter func(*Options)) *world {
	return populate(&world{Server: telegramtest.New(t), alter: alter})
}

// populate adds users, groups and a forum.
func populate(w *world) *world {
	w.AddPerson(telegramtest.Person{ID: jay, Name: "Jay", Username: "jay", Language: "it"})
	w.AddPerson(telegramtest.Person{ID: ann, Name: "Ann Äpfel", Username: "ann"})
	w.AddChat(telegramtest.Chat{ID: group, Type: "supergroup", Title: "Group", Admins: []int64{ann}})
	w.AddChat(telegramtest.Chat{ID: basic, Type: "group", Title: "Old group"})
	w.AddChat(telegramtest.Chat{ID: forum, Type: "supergroup", Title: "Forum", Forum: true, Topics: map[int]string{7: "", 8: "", 9: "closed"}})
	return w
}

// baseOptions returns the options of a driver whose server is at url.
func baseOptions(url string) Options {
	return Options{
		Name: "telegram", Log: slog.New(slog.DiscardHandler), Clock: time.Now, State: &memory{}, Admin: func(string) {},
		Config: Config{
			Token: secret.New(telegramtest.Token), APIURL: url, Timeout: 30 * time.Second,
			Webhook: botapi.Webhook{Listen: "127.0.0.1:8443"},
		},
	}
}

func (w *world) options() Options {
	o := baseOptions(w.URL)
	o.Config.Pace, o.Config.Timeout = "off", 5*time.Second
	o.Log = slog.New(slog.NewTextHandler(&w.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	o.State, o.Dial = &w.state, w.Dial
	if w.alter != nil {
		w.alter(&o)
	}
	return o
}

func (w *world) driver(t testing.TB) *Driver {
	t.Helper()
	d, err := New(w.options())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.api.Close)
	return d
}

// listen runs a driver until the test ends or the returned function is called.
func (w *world) listen(t testing.TB, in core.Inbox) (*Driver, func()) {
	t.Helper()
	d := w.driver(t)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- d.Listen(ctx, in) }()
	var once sync.Once
	stop := func() {
		once.Do(func() {
			cancel()
			if err := <-done; err != nil {
				t.Errorf("Listen: %v", err)
			}
		})
	}
	t.Cleanup(stop)
	return d, stop
}

// memory is a State that lives in memory.
type memory struct {
	mu     sync.Mutex
	m      map[string][]byte
	broken error // returned by every read and write, if set
}

// failWith makes every read and write fail from now on, or succeed if err is nil.
func (m *memory) failWith(err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.broken = err
}

func (m *memory) Get(ctx context.Context, key string) ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := cmp.Or(m.broken, ctx.Err()); err != nil {
		return nil, err
	}
	return m.m[key], nil
}

func (m *memory) Put(ctx context.Context, key string, value []byte) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := cmp.Or(m.broken, ctx.Err()); err != nil {
		return err
	}
	if m.m == nil {
		m.m = map[string][]byte{}
	}
	m.m[key] = value
	return nil
}

// logs collects log lines.
type logs struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logs) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logs) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func (l *logs) forget() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.b = bytes.Buffer{}
}

// stage adapts a world to the conformance suite.
type stage struct{ *world }

func TestInterface(t *testing.T) {
	t.Parallel()
	coretest.TestInterface(t, func(t *testing.T) coretest.World { return stage{newWorld(t, nil)} })
}

func (s stage) Start(t testing.TB) core.Interface { return s.driver(t) }

func (s stage) Places() []coretest.Place {
	return []coretest.Place{
		{Path: place("telegram", jay, 0), Private: true}, {Path: place("telegram", group, 0)}, {Path: place("telegram", forum, 7)},
		{Path: place("telegram", forum, 0)}, {Path: place("telegram", basic, 0)},
	}
}

func (s stage) Say(t testing.TB, p coretest.Place, what coretest.Say) string {
	t.Helper()
	at, err := chatKeyOf("telegram", p.Path)
	if err != nil {
		t.Fatal(err)
	}
	text := what.Text
	if what.Mention {
		text = "@" + telegramtest.BotName + " " + text
	}
	reply, _ := strconv.Atoi(what.ReplyTo)
	return strconv.Itoa(s.Server.Say(at.chat, jay,
		telegramtest.Saying{Text: text, Thread: int(at.thread), ReplyTo: reply}))
}

func (s stage) Shown(t testing.TB, p coretest.Place) []coretest.Shown {
	t.Helper()
	at, _ := chatKeyOf("telegram", p.Path)
	var list []coretest.Shown
	for _, m := range s.Messages(at.chat) {
		if m.Thread != int(at.thread) {
			continue
		}
		shown := coretest.Shown{ID: strconv.Itoa(m.ID), Text: m.Text}
		if m.ReplyTo != 0 {
			shown.ReplyTo = strconv.Itoa(m.ReplyTo)
		}
		list = append(list, shown)
	}
	return list
}

func (s stage) Fail(t testing.TB, p coretest.Place, faults ...coretest.SendFault) {
	t.Helper()
	at, _ := chatKeyOf("telegram", p.Path)
	s.Server.Fail(func(c telegramtest.Call) telegramtest.Fault {
		if c.Method != "sendMessage" || c.Chat != at.chat || len(faults) == 0 {
			return telegramtest.Fault{}
		}
		next := faults[0]
		faults = faults[1:]
		return map[coretest.SendFault]telegramtest.Fault{
			coretest.SendLimited: {Kind: telegramtest.Limited, RetryAfter: 1},
			coretest.SendBroken:  {Kind: telegramtest.BadGateway},
			coretest.SendReset:   {Kind: telegramtest.Reset},
		}[next]
	})
}

func (s stage) Thinking(t testing.TB, p coretest.Place) (n int) {
	t.Helper()
	at, _ := chatKeyOf("telegram", p.Path)
	thread := at.thread
	if at.chat == forum && thread == 0 {
		thread = general
	}
	for _, c := range s.Calls("sendChatAction") {
		if c.Status == 200 && c.Chat == at.chat && (c.Params["message_thread_id"] == "" || c.Params["message_thread_id"] == strconv.FormatInt(thread, 10)) {
			n++
		}
	}
	return n
}

func (s stage) Limit() int              { return markup.MaxText }
func (s stage) Measure(text string) int { return markdown.UTF16(text) }
func (s stage) Secrets() []string {
	return []string{telegramtest.Token, "AAHdqTcvCH1vGWJxfSeofSAs0K5PALDsaw"}
}
func (s stage) Log() string { return s.log.String() }

// commands returns a small command registry.
func commands() []command.Spec {
	return []command.Spec{
		{Name: "help", Brief: "Show what the bot can do", Briefs: map[string]string{"it": "Mostra cosa sa fare il bot"}},
		{Name: "persona", Brief: "Choose who speaks", Args: []command.Arg{{Name: "name"}, {Name: "why", Rest: true}}, Rank: core.RankModerator},
		{Name: "export", Brief: "Hand over what is known about you", Private: true},
		{Name: "reload", Brief: "Read the configuration again", Rank: core.RankAdmin},
	}
}

// letters returns the letters and digits of a text.
func letters(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			return r
		}
		return -1
	}, s)
}

// missing returns the characters that occur more often in want than in got.
func missing(got, want string) string {
	have := map[rune]int{}
	for _, r := range got {
		have[r]++
	}
	return strings.Map(func(r rune) rune {
		if have[r]--; have[r] < 0 {
			return r
		}
		return -1
	}, want)
}
