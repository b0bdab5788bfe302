package commands

import (
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"synthbot/core/coretest"
	"synthbot/interfaces/telegram/telegramtest"
)

// manner says how the model of TestKillRest answers a message. Messages take turns by their number.
type manner int

const (
	plainly    manner = iota // with a short reply
	atLength                 // in three parts
	afterwards               // after a follow-up round
	laterOn                  // with a short reply and a reminder
	ifPressed                // with a button, and another reply when it is pressed
	manners
)

var (
	messageName = regexp.MustCompile(`m(\d+)`)
	typeOf      = regexp.MustCompile(`"input":\{"type":"([a-z_]+)"`)
)

// newMannersModel starts a model that answers each message in its manner. It returns the URL.
func newMannersModel(t *testing.T) string {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var asked struct {
			Messages []struct{ Content json.RawMessage } `json:"messages"`
		}
		if json.NewDecoder(io.LimitReader(r.Body, 4<<20)).Decode(&asked) != nil || len(asked.Messages) == 0 {
			return // the bot was killed while it sent the request
		}
		var all strings.Builder
		for _, m := range asked.Messages {
			var text string
			if json.Unmarshal(m.Content, &text) != nil {
				text = string(m.Content)
			}
			all.WriteString(text)
		}
		reply, err := json.Marshal(planFor(all.String()))
		if err != nil {
			t.Error(err)
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"choices":[{"message":{"role":"assistant","content":%s},"finish_reason":"stop"}]}`, reply)
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// planFor returns the plan that answers a prompt.
func planFor(prompt string) string {
	_, input, _ := strings.Cut(prompt, `"payload":{"text":`)
	text, _, _ := strings.Cut(input, `"input_source"`)
	kind := ""
	if m := typeOf.FindStringSubmatch(prompt); m != nil {
		kind = m[1]
	}
	if kind == "event_reminder" {
		return response("due " + strings.Join(messageNames(text), " "))
	}
	if strings.HasPrefix(strings.TrimLeft(text, `"`), "go ") {
		return response("pressed " + strings.Join(messageNames(text), " "))
	}
	var plan struct {
		Response    string           `json:"response,omitempty"`
		Actions     []map[string]any `json:"actions,omitempty"`
		Suggestions []string         `json:"suggestions,omitempty"`
	}
	plan.Response = "re " + strings.Join(messageNames(text), " ")
	var presses []string
	var search []map[string]any // searches run before the reply
	again := strings.Contains(prompt, `"attempted":`) || strings.Contains(prompt, `"outputs"`)
	for _, word := range messageNames(text) {
		switch mannerOf(word) {
		case atLength:
			for i := range 3 {
				plan.Response += fmt.Sprintf("\n\n%s part %d %s", word, i+1, strings.Repeat("and so on ", 300))
			}
		case afterwards:
			search = append(search, map[string]any{"type": "memory_search", "payload": map[string]any{"query": word}})
		case laterOn:
			if again {
				continue // the reminder is already set
			}
			plan.Actions = append(plan.Actions, map[string]any{"type": "reminder_set", "payload": map[string]any{
				"text": word, "when": time.Now().Add(1500 * time.Millisecond).Format(time.RFC3339Nano),
			}})
		case ifPressed:
			presses = append(presses, word)
		}
	}
	if len(search) > 0 && !again {
		plan.Response, plan.Actions, presses = "", append(plan.Actions, search...), nil
	}
	if len(presses) > 0 {
		plan.Suggestions = []string{"go " + strings.Join(presses, " ")}
	}
	raw, err := json.Marshal(plan)
	if err != nil {
		return err.Error()
	}
	return string(raw)
}

func response(text string) string {
	raw, err := json.Marshal(map[string]string{"response": text})
	if err != nil {
		return err.Error()
	}
	return string(raw)
}

func messageNames(text string) []string { return messageName.FindAllString(text, -1) }

func mannerOf(word string) manner {
	var n int
	fmt.Sscanf(word, "m%d", &n)
	return manner(n % int(manners))
}

// wantedTexts returns how the texts begin that answer a message completely.
func wantedTexts(n int) []string {
	word := fmt.Sprintf("m%d", n)
	list := []string{"re " + word}
	switch mannerOf(word) {
	case atLength:
		list = append(list, word+" part 1 ", word+" part 2 ", word+" part 3 ")
	case laterOn:
		list = append(list, "due "+word)
	case ifPressed:
		list = append(list, "pressed "+word)
	}
	return list
}

// TestKillRest repeats TestKill with answers that take several steps: long answers in parts, follow-up rounds,
// reminders and button presses.
func TestKillRest(t *testing.T) {
	if testing.Short() {
		t.Skip("kills the program for a while")
	}
	k := newKillTest(t, newMannersModel(t))
	messages, deaths := coretest.Sample(150, 20), coretest.Sample(15, 2)
	if os.Getenv("DATABASE_URL") != "" { // each run waits until the lease of the run before has expired
		messages, deaths = min(messages, 60), min(deaths, 6)
	}
	said := 0
	left := func() []string {
		k.pressAll()
		return k.missing(said)
	}
	for range deaths {
		for range messages / deaths {
			chat := k.someChat()
			k.platform.Say(chat, chat, telegramtest.Saying{Text: fmt.Sprintf("m%d", said)})
			said++
		}
		k.killAfter(1+rand.IntN(3*messages/deaths), left)
	}
	k.killWhenDone(left)
	t.Logf("%d messages, %d kills, %d duplicate messages of the bot", said, deaths, k.duplicates())
}

// missing lists what is still wanted.
// missing lists the texts that are still to come.
func (k *killTest) missing(said int) (list []string) {
	var all strings.Builder
	for i := range killChats {
		for _, m := range k.platform.Messages(int64(1000 + i)) {
			all.WriteString("\n" + m.Text + " ")
		}
	}
	text := all.String()
	for n := range said {
		for _, want := range wantedTexts(n) {
			if !hasReply(text, want) {
				list = append(list, want)
			}
		}
	}
	return list
}

// hasReply reports whether a line of the text begins like want and names its message. A line may name several
// messages, because one turn may answer several.
func hasReply(text, want string) bool {
	if strings.Contains(want, " part ") {
		return strings.Contains(text, want)
	}
	verb, word, _ := strings.Cut(want, " ")
	for line := range strings.SplitSeq(text, "\n") {
		if strings.HasPrefix(line, verb+" ") && strings.Contains(line+" ", " "+word+" ") {
			return true
		}
	}
	return false
}

// tail returns the end of the log.
func (k *killTest) tail() string {
	raw, _ := os.ReadFile(k.log.Name())
	return string(raw[max(0, len(raw)-4000):])
}
