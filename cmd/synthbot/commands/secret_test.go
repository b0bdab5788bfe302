package commands

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"synthbot/core/coretest"
	"synthbot/interfaces/telegram/telegramtest"
)

// canary is a secret word that a user tells the bot in private.
const canary = "zanzibar"

// scribe is a model that stores the secret word with every action that stores anything, and keeps the requests.
type scribe struct {
	*httptest.Server
	mu    sync.Mutex
	asked []string
}

func newScribe(t *testing.T) *scribe {
	s := &scribe{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		raw, err := io.ReadAll(io.LimitReader(r.Body, 8<<20))
		if err != nil {
			return
		}
		s.mu.Lock()
		s.asked = append(s.asked, string(raw))
		s.mu.Unlock()
		plan := `{"response":"ok"}`
		if strings.Contains(string(raw), `\"payload\":{\"text\":\"my secret word is`) && !strings.Contains(string(raw), `\"outputs\"`) {
			plan = `{"response":"I will keep it.","context":{"topic":"` + canary + `","entities":{"word":"` + canary + `"}},"actions":[` +
				`{"type":"memory_save","payload":{"text":"The secret word is ` + canary + `","about":["me"],"importance":10,"tags":["secret"]}},` +
				`{"type":"bio_update","payload":{"facts":["secret word ` + canary + `"],"likes":["` + canary + `"]}},` +
				`{"type":"diary_write","payload":{"summary":"Told me ` + canary + `","private_thought":"` + canary + `!","people":["me"]}},` +
				`{"type":"reminder_set","payload":{"text":"` + canary + `","when":"in 2 hours"}}]}`
		}
		reply, _ := json.Marshal(plan)
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"choices":[{"message":{"role":"assistant","content":%s},"finish_reason":"stop"}]}`, reply)
	}))
	t.Cleanup(s.Close)
	return s
}

func (s *scribe) since(n int) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.asked[n:]...)
}

// onTelegram returns a configuration with a Telegram account and a model at a URL.
func onTelegram(model, platform, more string) string {
	return fmt.Sprintf(`
[bot]
data_dir = "data"
admins = ["telegram/@user/900"]
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
%s`, model, telegramtest.Token, platform, more)
}

// atTelegram runs the program with a Telegram server of its own until the test ends.
func atTelegram(t testing.TB, model, more string) (*telegramtest.Server, string) {
	t.Helper()
	platform := telegramtest.New(t)
	file := filepath.Join(t.TempDir(), "config.toml")
	write(t, file, onTelegram(model, platform.URL, more))
	daemonOf(t, file, io.Discard)
	return platform, file
}

// awaitReplies waits until the bot has sent n messages to a chat, and returns them.
func awaitReplies(t *testing.T, platform *telegramtest.Server, chat int64, n int) (texts []string) {
	t.Helper()
	for end := time.Now().Add(coretest.Patience); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		texts = nil
		for _, m := range platform.Messages(chat) {
			if m.From == telegramtest.BotID {
				texts = append(texts, m.Text)
			}
		}
		if len(texts) >= n {
			return texts
		}
	}
	t.Fatalf("got messages %q in chat %d, want %d of them", texts, chat, n)
	return nil
}

// TestSecretStaysInItsPlace checks that a word from a private chat is in no prompt of a group, although the
// model stored it with every plugin that remembers. After /forgetme it is stored nowhere.
func TestSecretStaysInItsPlace(t *testing.T) {
	model := newScribe(t)
	platform, file := atTelegram(t, model.URL, `
[prompt]
scope = "unified"
[[share]]
paths = ["telegram"]
[plugins.people]
[plugins.diary]
`)
	platform.AddPerson(telegramtest.Person{ID: 1000, Name: "Jay"})
	platform.AddChat(telegramtest.Chat{ID: -100500, Type: "supergroup", Title: "Club"})
	platform.AddChat(telegramtest.Chat{ID: -100600, Type: "supergroup", Title: "Pub"})
	platform.Say(1000, 1000, telegramtest.Saying{Text: "my secret word is " + canary})
	awaitReplies(t, platform, 1000, 2)
	platform.Say(1000, 1000, telegramtest.Saying{Text: "do you remember the secret word?"})
	awaitReplies(t, platform, 1000, 3)
	private := model.since(0)
	if last := private[len(private)-1]; strings.Count(last, canary) < 3 {
		t.Errorf("the private prompt has the secret %d times, want at least 3, else this test proves nothing: %s", strings.Count(last, canary), last)
	}
	groups := 0
	for i, chat := range []int64{-100500, -100600, -100500} {
		platform.Say(chat, 1000, telegramtest.Saying{Text: "Aria, what is the secret word? What do you know about me?"})
		awaitReplies(t, platform, chat, 1+i/2)
	}
	for _, prompt := range model.since(0) {
		if !strings.Contains(prompt, `\"interface_path\":\"telegram/-100`) {
			continue
		}
		groups++
		if strings.Contains(prompt, canary) {
			at := strings.Index(prompt, canary)
			t.Errorf("a group's prompt has the secret: …%s…", prompt[max(0, at-400):min(len(prompt), at+100)])
		}
	}
	if groups != 3 {
		t.Errorf("got %d prompts of groups, want 3", groups)
	}
	platform.Say(1000, 1000, telegramtest.Saying{Text: "/forgetme yes"})
	if texts := awaitReplies(t, platform, 1000, 4); !strings.Contains(texts[3], "It is done") {
		t.Fatalf("/forgetme: got %q", texts)
	}
	var out, errs strings.Builder
	if status := run(t.Context(), []string{"memory", "export", "-c", file}, strings.NewReader(""), &out, &errs); status != 0 {
		t.Fatalf("export: %s", errs.String())
	}
	if strings.Contains(out.String(), canary) {
		t.Errorf("after /forgetme, the export still has: %s", out.String())
	}
}
