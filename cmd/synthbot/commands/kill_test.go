package commands

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"synthbot/core/coretest"
	"synthbot/interfaces/telegram/telegramtest"
)

var (
	killMessages = flag.Int("kill.messages", coretest.Sample(1000, 40), "messages of TestKill")
	kills        = flag.Int("kill.kills", coretest.Sample(50, 2), "kills of TestKill")
)

// itself starts the program in a process of its own: this binary, which calls main.
func itself(t testing.TB, args ...string) *exec.Cmd {
	t.Helper()
	binary, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := exec.Command(binary, args...)
	c.Args[0] = "synthbot"
	return c
}

const killChats = 20

// echo is a model that answers with every word of the form m123 that the person
// said.
func echo(t *testing.T) string { return echoAfter(t, 0) }

// echoAfter is echo, after a while.
func echoAfter(t *testing.T, takes time.Duration) string {
	return echoOnce(t, func(context.Context) { time.Sleep(takes) })
}

// echoUsing is echo that says to have used so many tokens for each answer, and adds them up.
func echoUsing(t *testing.T, tokens int64, used *atomic.Int64) string {
	usage := fmt.Sprintf(`,"usage":{"prompt_tokens":%d,"completion_tokens":0,"total_tokens":%d}`, tokens, tokens)
	return echoOf(t, func(context.Context) { used.Add(tokens) }, usage)
}

// echoOnce is echo that answers once ready returns.
func echoOnce(t *testing.T, ready func(context.Context)) string { return echoOf(t, ready, "") }

// echoOf is echoOnce whose answers say what was used.
func echoOf(t *testing.T, ready func(context.Context), usage string) string {
	word := regexp.MustCompile(`m\d+`)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var asked struct {
			Messages []struct{ Content json.RawMessage } `json:"messages"`
		}
		if json.NewDecoder(io.LimitReader(r.Body, 4<<20)).Decode(&asked) != nil || len(asked.Messages) == 0 {
			return // the bot was killed while it asked
		}
		var text string
		last := asked.Messages[len(asked.Messages)-1].Content
		if json.Unmarshal(last, &text) != nil {
			text = string(last)
		}
		ready(r.Context())
		_, input, _ := strings.Cut(text, `"payload":{"text":`)
		input, _, _ = strings.Cut(input, `"input_source"`)
		reply, err := json.Marshal(fmt.Sprintf(`{"response":"re %s"}`, strings.Join(word.FindAllString(input, -1), " ")))
		if err != nil {
			t.Error(err)
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"choices":[{"message":{"role":"assistant","content":%s},"finish_reason":"stop"}]%s}`, reply, usage)
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// TestKill feeds the program itself through a platform that knows no idempotency
// keys, and kills it with SIGKILL again and again: every message is answered, and no
// reply is there twice but one that was on its way when the program died. How long a
// life lasts is measured by what happens in it, not by time.
func TestKill(t *testing.T) {
	if testing.Short() {
		t.Skip("kills the program for a while")
	}
	k := newKilling(t, echo(t))
	each := *killMessages / *kills
	said, requests := 0, 0
	left := func() []string { return unanswered(k.platform, said) }
	for n := range *kills {
		for range each {
			person := k.someChat()
			k.platform.Say(person, person, telegramtest.Saying{Text: fmt.Sprintf("m%d", said)})
			said++
		}
		if n%2 == 0 {
			requests = 1 + rand.IntN(3*each)
		} else {
			requests = 3*each + 1 - requests // late after an early death, so that messages are answered in between
		}
		k.death(requests, left)
	}
	before := said - len(left())
	t.Logf("%d of %d were answered before the last life", before, said)
	if before < said/4 {
		t.Error("too little happened for the deaths to show anything")
	}
	k.end(left)
	t.Logf("%d messages, %d kills, %d replies are there twice", said, *kills, k.doubles())
}

// killing is the program, run and killed again and again, at a platform that
// stays.
type killing struct {
	*testing.T
	file     string
	platform *telegramtest.Server
	log      *os.File
	pressed  map[string]bool // messages whose button was pressed, by chat and text
	starts   []time.Time     // of the lives
	deaths   int
}

// newKilling configures the program for a platform of killChats private chats and the
// model at an address, and for the server of the test, if there is one.
func newKilling(t *testing.T, model string) *killing {
	t.Helper()
	dir := t.TempDir()
	k := &killing{T: t, file: filepath.Join(dir, "config.toml"), platform: telegramtest.New(t), pressed: make(map[string]bool)}
	for i := range killChats {
		k.platform.AddPerson(telegramtest.Person{ID: int64(1000 + i), Name: fmt.Sprint("P", i)})
	}
	write(t, k.file, fmt.Sprintf(`
[bot]
data_dir = "data"
[[engine]]
provider = "vllm"
model = "m"
base_url = %q
stream = false
[interfaces.telegram]
token = %q
api_url = %q
pace = "off"
[access]
per_minute = 0
[budget]
person_tokens = 0
bot_tokens = 0
[plugins.memory]
extract = false
`, model, telegramtest.Token, k.platform.URL)+onServerOf())
	var err error
	if k.log, err = os.Create(filepath.Join(dir, "log")); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		k.log.Close()
		raw, err := os.ReadFile(k.log.Name())
		if err != nil || strings.Contains(string(raw), "DATA RACE") {
			t.Errorf("the program has a race: %s, %v", raw, err)
		}
	})
	return k
}

// someChat is one of the private chats.
func (k *killing) someChat() int64 { return int64(1000 + rand.IntN(killChats)) }

// life runs the program, and kills it when until returns. When life returns, the
// platform has dealt with all that the program asked of it.
func (k *killing) life(until func()) {
	k.Helper()
	c := itself(k, "run", "-c", k.file)
	c.Stdout, c.Stderr = k.log, k.log
	k.starts = append(k.starts, time.Now())
	if err := c.Start(); err != nil {
		k.Fatal(err)
	}
	until()
	if err := c.Process.Kill(); err != nil {
		k.Fatal(err)
	}
	_ = c.Wait() // killed
	k.patiently("the platform has not noticed the death", 2*time.Millisecond, k.platform.Connected)
}

// death runs the program until it has made so many requests of the platform, or
// nothing is left for it to do, and kills it. No message meets more than two deaths,
// since what was sent three times without a reply is given up.
func (k *killing) death(requests int, left func() []string) {
	k.Helper()
	if k.deaths++; k.deaths%3 == 0 {
		k.end(left)
	}
	begin := k.platform.Count()
	k.life(func() {
		k.patiently("the program makes no requests", 5*time.Millisecond, func() int {
			more := max(0, begin+requests-k.platform.Count())
			if more > 0 && len(left()) == 0 {
				more = 0
			}
			return more
		})
	})
}

// end runs the program until nothing is left for it to do, and kills it.
func (k *killing) end(left func() []string) {
	k.Helper()
	k.life(func() {
		var list []string
		defer func() {
			if len(list) > 0 {
				k.Logf("not answered: %q", list)
			}
		}()
		k.patiently("messages are not answered", 20*time.Millisecond, func() int {
			list = left()
			return len(list)
		})
	})
}

// patiently waits until left, which it calls every so often, returns 0. It fails when
// that has not changed for long.
func (k *killing) patiently(failure string, every time.Duration, left func() int) {
	k.Helper()
	last, since := left(), time.Now()
	for last != 0 {
		if time.Since(since) > coretest.Patience {
			k.Fatalf("%s: %d are left\n%s", failure, last, k.tail())
		}
		time.Sleep(every)
		if n := left(); n != last {
			last, since = n, time.Now()
		}
	}
}

// standing is a text in a chat.
type standing struct {
	chat int64
	text string
}

// doubles counts the messages of the bot that are there once more, and fails for each
// whose cause is not a death: the copy before it must be the last one that the chat got
// in its life. No message is there more than three times.
func (k *killing) doubles() (twice int) {
	k.Helper()
	copies := make(map[standing][]telegramtest.Call)
	last := make(map[int64]map[int]time.Time) // by chat and life
	for _, c := range k.platform.Calls("sendMessage") {
		if c.Status != http.StatusOK {
			continue
		}
		key := standing{c.Chat, c.Params["text"]}
		copies[key] = append(copies[key], c)
		if last[c.Chat] == nil {
			last[c.Chat] = make(map[int]time.Time)
		}
		if life := k.lifeAt(c.At); c.At.After(last[c.Chat][life]) {
			last[c.Chat][life] = c.At
		}
	}
	for key, list := range copies {
		twice += len(list) - 1
		if len(list) > 3 {
			k.Errorf("%.80q stands %d times", key.text, len(list))
		}
		for i, c := range list[1:] {
			before := list[i]
			life := k.lifeAt(before.At)
			if life == k.lifeAt(c.At) || before.At.Before(last[key.chat][life]) {
				k.Errorf("%.80q stands twice, and no death explains it: sent in life %d and %d", key.text, life, k.lifeAt(c.At))
			}
		}
	}
	return twice
}

// lifeAt is the number of the life at that time.
func (k *killing) lifeAt(at time.Time) (n int) {
	for n < len(k.starts) && k.starts[n].Before(at) {
		n++
	}
	return n
}

// pressAll presses the first button of each message that has one, once.
func (k *killing) pressAll() {
	for i := range killChats {
		chat := int64(1000 + i)
		for _, m := range k.platform.Messages(chat) {
			key := fmt.Sprint(chat, "/", m.Text)
			if m.From == telegramtest.BotID && len(m.Markup) > 0 && !k.pressed[key] {
				k.pressed[key] = true
				k.platform.Press(chat, m.ID, chat, 0)
			}
		}
	}
}

// replies counts the bot's messages by their text.
func replies(platform *telegramtest.Server) map[string]int {
	counts := make(map[string]int)
	for i := range killChats {
		for _, m := range platform.Messages(int64(1000 + i)) {
			counts[m.Text]++
		}
	}
	return counts
}

// unanswered lists the messages that no reply names.
func unanswered(platform *telegramtest.Server, said int) (list []string) {
	named := make(map[string]bool)
	for text := range replies(platform) {
		for _, word := range strings.Fields(text) {
			named[word] = true
		}
	}
	for i := range said {
		if word := fmt.Sprintf("m%d", i); !named[word] {
			list = append(list, word)
		}
	}
	return list
}

// answered counts the messages that some reply names.
func answered(platform *telegramtest.Server, said int) int {
	return said - len(unanswered(platform, said))
}
