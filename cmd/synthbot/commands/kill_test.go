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

// synthbotCommand returns a command that runs this test binary as synthbot, in a process of its own.
func synthbotCommand(t testing.TB, args ...string) *exec.Cmd {
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

// newEchoModel starts a model that answers with each word of the form m123 in the user's message. It returns
// the URL.
func newEchoModel(t *testing.T) string { return newSlowEchoModel(t, 0) }

// newSlowEchoModel starts an echo model that waits before each answer.
func newSlowEchoModel(t *testing.T, takes time.Duration) string {
	return newGatedEchoModel(t, func(context.Context) { time.Sleep(takes) })
}

// newBillingEchoModel starts an echo model that reports so many tokens for each answer and adds them to used.
func newBillingEchoModel(t *testing.T, tokens int64, used *atomic.Int64) string {
	usage := fmt.Sprintf(`,"usage":{"prompt_tokens":%d,"completion_tokens":0,"total_tokens":%d}`, tokens, tokens)
	return startEchoModel(t, func(context.Context) { used.Add(tokens) }, usage)
}

// newGatedEchoModel starts an echo model that answers once ready returns.
func newGatedEchoModel(t *testing.T, ready func(context.Context)) string {
	return startEchoModel(t, ready, "")
}

// startEchoModel starts an echo model that answers once ready returns, with usage appended to the JSON.
func startEchoModel(t *testing.T, ready func(context.Context), usage string) string {
	word := regexp.MustCompile(`m\d+`)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var asked struct {
			Messages []struct{ Content json.RawMessage } `json:"messages"`
		}
		if json.NewDecoder(io.LimitReader(r.Body, 4<<20)).Decode(&asked) != nil || len(asked.Messages) == 0 {
			return // the bot was killed while it sent the request
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

// TestKill checks that every message is answered although the program is killed with SIGKILL again and again,
// on a platform without idempotency keys. A reply may appear twice only if it was being sent when the program
// died. A run ends after a number of requests, not after a time.
func TestKill(t *testing.T) {
	if testing.Short() {
		t.Skip("kills the program for a while")
	}
	k := newKillTest(t, newEchoModel(t))
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
			requests = 3*each + 1 - requests // a short run is followed by a long one, in which messages are answered
		}
		k.killAfter(requests, left)
	}
	before := said - len(left())
	t.Logf("%d of %d messages were answered before the last run", before, said)
	if before < said/4 {
		t.Error("too few messages were answered between the kills to test anything")
	}
	k.killWhenDone(left)
	t.Logf("%d messages, %d kills, %d duplicate replies", said, *kills, k.duplicates())
}

// killTest runs and kills the program repeatedly. The platform keeps running.
type killTest struct {
	*testing.T
	file     string
	platform *telegramtest.Server
	log      *os.File
	pressed  map[string]bool // messages whose button was pressed, by chat and text
	starts   []time.Time     // of the runs
	kills    int
}

// newKillTest configures the program for a platform with killChats private chats, a model's URL and, if the
// test has one, the PostgreSQL server.
func newKillTest(t *testing.T, model string) *killTest {
	t.Helper()
	dir := t.TempDir()
	k := &killTest{T: t, file: filepath.Join(dir, "config.toml"), platform: telegramtest.New(t), pressed: make(map[string]bool)}
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
`, model, telegramtest.Token, k.platform.URL)+storeTable())
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

// someChat returns a random private chat.
func (k *killTest) someChat() int64 { return int64(1000 + rand.IntN(killChats)) }

// runUntil runs the program and kills it when until returns. It returns after the platform has finished the
// program's requests.
func (k *killTest) runUntil(until func()) {
	k.Helper()
	c := synthbotCommand(k, "run", "-c", k.file)
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
	k.waitForZero("connections to the platform stay open after the kill", 2*time.Millisecond, k.platform.Connected)
}

// killAfter runs the program until it has sent so many requests to the platform, or has answered everything,
// and kills it. Every third call lets the program answer everything first, because a turn that was started
// three times without a reply is given up.
func (k *killTest) killAfter(requests int, left func() []string) {
	k.Helper()
	if k.kills++; k.kills%3 == 0 {
		k.killWhenDone(left)
	}
	begin := k.platform.Count()
	k.runUntil(func() {
		k.waitForZero("the program sends no more requests", 5*time.Millisecond, func() int {
			more := max(0, begin+requests-k.platform.Count())
			if more > 0 && len(left()) == 0 {
				more = 0
			}
			return more
		})
	})
}

// killWhenDone runs the program until it has answered everything, and kills it.
func (k *killTest) killWhenDone(left func() []string) {
	k.Helper()
	k.runUntil(func() {
		var list []string
		defer func() {
			if len(list) > 0 {
				k.Logf("not answered: %q", list)
			}
		}()
		k.waitForZero("messages are not answered", 20*time.Millisecond, func() int {
			list = left()
			return len(list)
		})
	})
}

// waitForZero polls left until it returns 0. It fails if the number stays the same for coretest.Patience.
func (k *killTest) waitForZero(failure string, every time.Duration, left func() int) {
	k.Helper()
	last, since := left(), time.Now()
	for last != 0 {
		if time.Since(since) > coretest.Patience {
			k.Fatalf("%s: %d left\n%s", failure, last, k.tail())
		}
		time.Sleep(every)
		if n := left(); n != last {
			last, since = n, time.Now()
		}
	}
}

// sentText is a text in a chat.
type sentText struct {
	chat int64
	text string
}

// duplicates returns how many of the bot's messages are copies of another one. A copy is an error unless a kill
// explains it: the message before it must be the last one that its chat got in that run. More than three equal
// messages are an error, too.
func (k *killTest) duplicates() (twice int) {
	k.Helper()
	copies := make(map[sentText][]telegramtest.Call)
	last := make(map[int64]map[int]time.Time) // by chat and run
	for _, c := range k.platform.Calls("sendMessage") {
		if c.Status != http.StatusOK {
			continue
		}
		key := sentText{c.Chat, c.Params["text"]}
		copies[key] = append(copies[key], c)
		if last[c.Chat] == nil {
			last[c.Chat] = make(map[int]time.Time)
		}
		if run := k.runAt(c.At); c.At.After(last[c.Chat][run]) {
			last[c.Chat][run] = c.At
		}
	}
	for key, list := range copies {
		twice += len(list) - 1
		if len(list) > 3 {
			k.Errorf("%.80q was sent %d times, want at most 3", key.text, len(list))
		}
		for i, c := range list[1:] {
			before := list[i]
			run := k.runAt(before.At)
			if run == k.runAt(c.At) || before.At.Before(last[key.chat][run]) {
				k.Errorf("%.80q was sent in run %d and again in run %d, and no kill explains it", key.text, run, k.runAt(c.At))
			}
		}
	}
	return twice
}

// runAt returns the number of the run at a time.
func (k *killTest) runAt(at time.Time) (n int) {
	for n < len(k.starts) && k.starts[n].Before(at) {
		n++
	}
	return n
}

// pressAll presses the first button of each message that has buttons, once.
func (k *killTest) pressAll() {
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

// replies counts the messages in all chats by their text.
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
