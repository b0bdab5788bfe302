package main

import (
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
	"testing"
	"time"

	"synthbot/interfaces/telegram/telegramtest"
)

var (
	killMessages = flag.Int("kill.messages", 1000, "messages of TestKill")
	kills        = flag.Int("kill.kills", 50, "kills of TestKill")
)

const killChats = 20

// echo is a model that answers with every word of the form m123 that the person
// said.
func echo(t *testing.T) string { return echoAfter(t, 0) }

// echoAfter is echo, after a while.
func echoAfter(t *testing.T, takes time.Duration) string {
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
		time.Sleep(takes)
		_, input, _ := strings.Cut(text, `"payload":{"text":`)
		input, _, _ = strings.Cut(input, `"input_source"`)
		reply, err := json.Marshal(fmt.Sprintf(`{"response":"re %s"}`, strings.Join(word.FindAllString(input, -1), " ")))
		if err != nil {
			t.Error(err)
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"choices":[{"message":{"role":"assistant","content":%s},"finish_reason":"stop"}]}`, reply)
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// TestKill feeds the program itself through a platform, and kills it with
// SIGKILL at random moments: every message is answered, and no reply stands
// twice but for those that were in flight at a kill. The platform knows no
// idempotency keys.
func TestKill(t *testing.T) {
	if testing.Short() {
		t.Skip("kills the program for a while")
	}
	k := newKilling(t, echo(t))
	platform := k.platform
	each := *killMessages / *kills
	said := 0
	for range *kills {
		for range each {
			person := k.someChat()
			platform.Say(person, person, telegramtest.Saying{Text: fmt.Sprintf("m%d", said)})
			said++
		}
		k.life(func() { time.Sleep(time.Duration(50+rand.IntN(350)) * time.Millisecond) })
	}
	k.life(func() {
		t.Logf("%d of %d were answered before the last life", answered(platform, said), said)
		waitAnswered(t, platform, said, k.log.Name())
	})
	twice := 0
	for text, n := range replies(platform) {
		twice += n - 1
		if n > 1+*kills/2 {
			t.Errorf("%q stands %d times", text, n)
		}
	}
	t.Logf("%d messages, %d kills, %d replies stand twice", said, *kills, twice)
	if limit := *kills * killChats / 4; twice > limit {
		t.Errorf("%d replies stand twice, which is more than can have been in flight", twice)
	}
}

// killing is the program, run and killed again and again, at a platform that
// stays.
type killing struct {
	*testing.T
	binary, file string
	platform     *telegramtest.Server
	log          *os.File
	pressed      map[string]bool // messages whose button was pressed
}

// newKilling builds the program, for a platform of killChats private chats and
// the model at an address.
func newKilling(t *testing.T, model string) *killing {
	t.Helper()
	dir := t.TempDir()
	k := &killing{T: t, binary: filepath.Join(dir, "synthbot"), file: filepath.Join(dir, "config.toml"), platform: telegramtest.New(t), pressed: make(map[string]bool)}
	if out, err := exec.Command("go", "build", "-o", k.binary, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
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
[budget]
person_tokens = 0
bot_tokens = 0
[plugins.memory]
extract = false
`, model, telegramtest.Token, k.platform.URL))
	var err error
	if k.log, err = os.Create(filepath.Join(dir, "log")); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { k.log.Close() })
	return k
}

// someChat is one of the private chats.
func (k *killing) someChat() int64 { return int64(1000 + rand.IntN(killChats)) }

// life runs the program, and kills it when until returns.
func (k *killing) life(until func()) {
	k.Helper()
	c := exec.Command(k.binary, "run", "-c", k.file)
	c.Stdout, c.Stderr = k.log, k.log
	if err := c.Start(); err != nil {
		k.Fatal(err)
	}
	until()
	if err := c.Process.Kill(); err != nil {
		k.Fatal(err)
	}
	_ = c.Wait() // killed
}

// pressAll presses the first button of each message that has one, once.
func (k *killing) pressAll() {
	for i := range killChats {
		chat := int64(1000 + i)
		for _, m := range k.platform.Messages(chat) {
			key := fmt.Sprint(chat, "/", m.ID)
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

// answered counts the messages that some reply names.
func answered(platform *telegramtest.Server, said int) int {
	named := make(map[string]bool)
	for text := range replies(platform) {
		for _, word := range strings.Fields(text) {
			named[word] = true
		}
	}
	n := 0
	for i := range said {
		if named[fmt.Sprintf("m%d", i)] {
			n++
		}
	}
	return n
}

func waitAnswered(t *testing.T, platform *telegramtest.Server, said int, log string) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if answered(platform, said) == said {
			return
		}
	}
	tail, _ := os.ReadFile(log)
	t.Fatalf("%d of %d messages were answered\n%s", answered(platform, said), said, tail)
}
