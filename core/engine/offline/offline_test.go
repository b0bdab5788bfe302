package offline

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"synthbot/core/engine/offline/phrases"
	"synthbot/core/llm"
)

const aria = `You are Aria, also called Ari, Captain. Profile: A companion who keeps the lights on. Would rather ask one good question. ` +
	`Likes: green tea; old maps; rain. Dislikes: loud meetings; spam. Interests: radio plays; moss. Speaking style: Short sentences. Dry jokes. ` +
	`Conversation language: "xx"; write in it unless asked for another. Reply with one JSON object and nothing else.`

const noActions = `{"actions":{"message_console":{"brief":"Send a message.","schema":{"type":"object","properties":{"text":{"type":"string"},"interface_path":{"type":"string"}},"required":["text"]}}}}`

const manyActions = `{"actions":{"message_console":{"brief":"Send a message.","schema":{"type":"object","properties":{"text":{"type":"string"}},"required":["text"]}},` +
	`"memory_save":{"brief":"Save a fact for later.","schema":{"type":"object","properties":{"text":{"type":"string"},"about":{"type":"array"},"tags":{"type":"array"}},"required":["text"]}},` +
	`"memory_search":{"brief":"Search saved facts.","schema":{"type":"object","properties":{"query":{"type":"string"},"about":{"type":"array"}}}},` +
	`"reminder_set":{"brief":"Set a reminder.","schema":{"type":"object","properties":{"text":{"type":"string"},"when":{"type":"string"}},"required":["text","when"]}}}}`

// aboutActions have a parameter for the user whom they are about, like those of plugins/memory.
const aboutActions = `{"actions":{"memory_save":{"brief":"Save a fact for later.","schema":{"type":"object","properties":{"text":{"type":"string"},"about":{"type":"array"}},"required":["text"]}},` +
	`"memory_search":{"brief":"Search saved facts.","schema":{"type":"object","properties":{"query":{"type":"string"},"about":{"type":"array"}}}}}}`

// asked is a request like those of the prompt builder.
type asked struct {
	language, text, name, id, actions string
	kind                              string // of the input; "" means message
	history                           []line
	memories                          string
}

func (a asked) request() llm.Request {
	if a.actions == "" {
		a.actions = noActions
	}
	if a.name == "" {
		a.name = "Jay"
	}
	context := map[string]any{}
	if a.history != nil {
		context["history_current_chat"] = a.history
	}
	if a.memories != "" {
		context["memories"] = json.RawMessage(a.memories)
	}
	if a.language != "" {
		context["recon"] = map[string]string{"language": a.language}
	}
	if a.kind == "" {
		a.kind = "message"
	}
	input := map[string]any{"type": a.kind, "interface": "console", "payload": map[string]any{
		"text": a.text, "timestamp": "2026-11-20T11:32:46+01:00",
		"source": map[string]string{"interface_path": "console/main", "message_id": a.id, "username": a.name},
	}}
	user, err := json.Marshal(map[string]any{"context": context, "input": input})
	if err != nil {
		panic(err)
	}
	return llm.Request{
		System:   []string{aria, "You are talking with people in a chat.", a.actions},
		Messages: []llm.Utterance{{Role: llm.RoleUser, Text: string(user)}},
	}
}

// shared is one model for all tests, because loading its books takes a moment.
var shared = sync.OnceValue(func() *Model { return New(Options{Zone: time.UTC}) })

// parsePlan returns the text of an answer's plan and its other steps.
func parsePlan(t *testing.T, answer string) (text string, others []step) {
	t.Helper()
	var p plan
	if err := json.Unmarshal([]byte(answer), &p); err != nil {
		t.Fatalf("%s: %v", answer, err)
	}
	text = p.Response
	for _, s := range p.Actions {
		if s.Type != "message_console" {
			others = append(others, s)
			continue
		}
		var payload struct {
			Text string `json:"text"`
		}
		if err := json.Unmarshal(s.Payload, &payload); err != nil || payload.Text == "" || text != "" {
			t.Fatalf("%s: invalid message step", answer)
		}
		text = payload.Text
	}
	if strings.ContainsAny(text, "\n\r{}") {
		t.Fatalf("%q is not a single line", text)
	}
	return text, others
}

func ask1(t *testing.T, r llm.Request) (string, []step) {
	t.Helper()
	answer, err := shared().Generate(context.Background(), r)
	if err != nil {
		t.Fatal(err)
	}
	return parsePlan(t, answer.Text)
}

func TestConversations(t *testing.T) {
	jay := func(text string) line { return line{From: "Jay", Text: text} }
	me := func(text string) line { return line{From: "Aria", Text: text, Self: true} }
	for _, tc := range []struct {
		asked
		want string // a part of the text
		act  string // a part of the other steps, as "type payload"
	}{
		{asked{text: "hello"}, `(?i)hello|hi|hey`, ""},
		{asked{text: "Hey Aria, how are you?"}, `(?i)fine|well|quiet`, ""},
		{asked{text: "Who are you?"}, `Aria`, ""},
		{asked{text: "what's your name"}, `Aria`, ""},
		{asked{text: "are you a bot?"}, `bot`, ""},
		{asked{text: "what do you like?"}, `green tea|old maps|rain`, ""},
		{asked{text: "What do you dislike?"}, `meetings|spam`, ""},
		{asked{text: "what are you interested in?"}, `radio plays|moss|green tea`, ""},
		{asked{text: "Do you like tea?"}, `green tea`, ""},
		{asked{text: "do you like moss?"}, `moss`, ""},
		{asked{text: "do you like spam?"}, `(?i)spam`, ""},
		{asked{text: "do you like cars?"}, `opinion|never thought|not on my list`, ""},
		{asked{text: "thanks a lot!"}, `(?i)welcome|pleasure|any time`, ""},
		{asked{text: "bye"}, `(?i)bye|see you|take care`, ""},
		{asked{text: "tell me a joke"}, `programmers|neutron|UDP|binary`, ""},
		{asked{text: "hello, what time is it?"}, `11:32`, ""},
		{asked{text: "what day is it today?"}, `Friday, 20 November 2026`, ""},
		{asked{text: "what can you do?"}, `time`, ""},
		{asked{text: "what can you do?", actions: manyActions}, `sums.*my sister is Anna.*water the plants`, ""},
		{asked{text: "what did I say?", history: []line{jay("I had soup today"), me("Good.")}}, `I had soup today`, ""},
		{asked{text: "what did I say?"}, `(?i)earlier|first`, ""},
		{asked{text: "what did you say?", history: []line{jay("x"), me("The moon.")}}, `The moon\.`, ""},
		{asked{text: "what is my name?"}, `Jay`, ""},
		{asked{text: "what is my name?", name: "x1__"}, `(?i)don't know|can't see`, ""},
		{asked{text: "what's my name?", history: []line{jay("my name is Robert by the way"), me("Nice.")}}, `Robert`, ""},
		{asked{text: "my name is anna"}, `Anna`, ""},
		{asked{text: "what is my favourite colour?", history: []line{jay("my favourite colour is blue"), me("Ok.")}}, `Your favourite colour is blue\.`, ""},
		{asked{text: "Where is my cat?", history: []line{jay("My cat is called Miso"), me("Nice.")}}, `Your cat is called Miso\.`, ""},
		{asked{text: "how old are you?"}, `program|age`, ""},
		{asked{language: "de", text: "Wo wohnst du?"}, `programm|computer`, ""},
		{asked{text: "thanks, bye"}, `(?i)bye|see you|take care`, ""},
		{asked{text: "I love old maps so much"}, `(?i)old maps`, ""},
		{asked{text: "Explain quantum chromodynamics"}, `built-in|model`, ""},
		{asked{text: "  "}, `(?i)words`, ""},
		{asked{text: "remember that I hate olives", actions: manyActions}, `I hate olives`, `memory_save {"about":["me"],"text":"I hate olives"}`},
		{asked{text: "remember that I hate olives"}, `(?i)notes|notebook`, ""},
		{asked{text: "what do you know about olives?", actions: manyActions}, `^$`, `memory_search {"query":"olives"}`},
		{asked{text: "what do you know about olives?", memories: `[{"text":"Jay hates olives"}]`, actions: manyActions}, `Jay hates olives`, ""},
		{asked{text: "what do you know about olives?"}, `(?i)nothing about olives`, ""},
		{asked{text: "drink tea", kind: "event_reminder"}, `drink tea`, ""},
		{asked{text: "remind me in 10 minutes to drink tea", actions: manyActions}, `^$`, `reminder_set {"text":"drink tea","when":"2026-11-20T11:42:46+01:00"}`},
		{asked{text: "Remind me tomorrow at 9 to call Mum", actions: manyActions}, `^$`, `reminder_set {"text":"call Mum","when":"2026-11-21T09:00:00"}`},
		{asked{text: "remind me to call mum in half an hour", actions: manyActions}, `^$`, `reminder_set {"text":"call mum","when":"2026-11-20T12:02:46+01:00"}`},
		{asked{text: "remind me to call mum", actions: manyActions}, `(?i)when should|need a time`, ""},
		{asked{text: "remind me", actions: manyActions}, `(?i)of\?`, ""},
		{asked{text: "remind me in 10 minutes to drink tea"}, `(?i)reminders`, ""},

		{asked{language: "de", text: "Hallo"}, `(?i)hallo|hi|grüß`, ""},
		{asked{language: "de-AT", text: "hello"}, `(?i)hello|hi|hey`, ""},
		{asked{language: "de", text: "Wie spät ist es?"}, `11:32`, ""},
		{asked{language: "de", text: "Welcher Tag ist heute?"}, `Freitag, 20\. November 2026`, ""},
		{asked{language: "de", text: "Was kannst du?"}, `plaudern|Plaudern`, ""},
		{asked{language: "de", text: "Was magst du?"}, `green tea|rain|old maps`, ""},
		{asked{language: "de", text: "Erinnere mich in 10 Minuten an den Tee", actions: manyActions}, `^$`, `reminder_set {"text":"den Tee","when":"2026-11-20T11:42:46+01:00"}`},
		{asked{language: "de", text: "Merk dir, dass ich Oliven hasse", actions: manyActions}, `ich hasse Oliven`, `memory_save {"about":["me"],"text":"ich hasse Oliven"}`},
		{asked{language: "de", text: "Erklär mir die Relativitätstheorie"}, `(?i)eingebaute|sprachmodell`, ""},
		{asked{language: "it", text: "ciao, come stai?"}, `(?i)bene|tranquillo`, ""},
		{asked{language: "it", text: "che ore sono"}, `11:32`, ""},
		{asked{language: "it", text: "ricordami tra 2 ore di chiamare Anna", actions: manyActions}, `^$`, `reminder_set {"text":"chiamare Anna","when":"2026-11-20T13:32:46+01:00"}`},
		{asked{language: "it", text: "che giorno è oggi?"}, `venerdì 20 novembre 2026`, ""},
		{asked{language: "it", text: "spiegami la relatività"}, `incorporat|modello`, ""},
		{asked{language: "es", text: "¿Qué hora es?"}, `11:32`, ""},
		{asked{language: "es", text: "Hola"}, `¡Hola`, ""},
		{asked{language: "es", text: "¿qué día es hoy?"}, `viernes, 20 de noviembre de 2026`, ""},
		{asked{language: "es", text: "recuérdame en 15 minutos que llame a Ana", actions: manyActions}, `^$`, `reminder_set {"text":"llame a Ana","when":"2026-11-20T11:47:46+01:00"}`},
		{asked{language: "fr", text: "Quelle heure est-il ?"}, `11:32`, ""},
		{asked{language: "fr", text: "Bonjour !"}, `(?i)bonjour|salut`, ""},
		{asked{language: "fr", text: "Rappelle-moi dans 5 minutes de sortir", actions: manyActions}, `^$`, `reminder_set {"text":"sortir","when":"2026-11-20T11:37:46+01:00"}`},
		{asked{language: "fr", text: "qui es-tu ?"}, `Aria`, ""},
		{asked{language: "ja", text: "hello"}, `(?i)hello|hi|hey`, ""},
		{asked{text: "guten Morgen"}, `Guten Morgen`, ""},
	} {
		t.Run(tc.language+" "+tc.text, func(t *testing.T) {
			for id := range 12 { // every variant must match
				tc.id = fmt.Sprint(id)
				text, others := ask1(t, tc.request())
				if !regexp.MustCompile("(?i)" + tc.want).MatchString(text) {
					t.Errorf("text: got %q, want %s", text, tc.want)
				}
				var acts []string
				for _, s := range others {
					acts = append(acts, s.Type+" "+string(s.Payload))
				}
				if got := strings.Join(acts, "\n"); got != tc.act {
					t.Errorf("steps: got %s, want %s", got, tc.act)
				}
			}
		})
	}
}

// TestOfSelf checks that facts that users tell about themselves, and their questions about themselves, are
// stored and searched as being about them, if the actions support that.
func TestOfSelf(t *testing.T) {
	for _, tc := range []struct {
		asked
		want, act string
	}{
		{asked{text: "remember that I hate olives", actions: aboutActions}, `I hate olives`, `memory_save {"about":["me"],"text":"I hate olives"}`},
		{asked{text: "remember that olives are green", actions: aboutActions}, `olives`, `memory_save {"text":"olives are green"}`},
		{asked{text: "what do you know about me?", actions: aboutActions}, "", `memory_search {"about":["me"]}`},
		{asked{text: "what do you know about my olives?", actions: aboutActions}, "", `memory_search {"query":"my olives"}`},
		{asked{language: "de", text: "Was weißt du über mich?", actions: aboutActions}, "", `memory_search {"about":["me"]}`},
		{asked{language: "fr", text: "Que sais-tu de moi ?", actions: aboutActions}, "", `memory_search {"about":["me"]}`},
		{asked{language: "it", text: "Cosa sai di me?", actions: aboutActions}, "", `memory_search {"about":["me"]}`},
		{asked{language: "es", text: "¿Qué sabes de mí?", actions: aboutActions}, "", `memory_search {"about":["me"]}`},
		{asked{text: "what do you know about me?", actions: manyActions}, "", `memory_search {"about":["me"]}`},
	} {
		t.Run(tc.language+" "+tc.text, func(t *testing.T) {
			text, others := ask1(t, tc.request())
			if !strings.Contains(text, tc.want) || len(others) != 1 || others[0].Type+" "+string(others[0].Payload) != tc.act {
				t.Errorf("got %q and steps %v, want %s and %s", text, others, tc.want, tc.act)
			}
		})
	}
}

func TestNeverRepeatsItself(t *testing.T) {
	for _, text := range []string{"hello", "what is love?", "how are you", "ok", "xyzzy plugh", "", "thanks", "was magst du", "do you like jazz"} {
		var history []line
		for i := range 12 {
			got, _ := ask1(t, asked{text: text, history: history, id: fmt.Sprint(i)}.request())
			if n := len(history); n > 0 && history[n-1].Text == got {
				t.Fatalf("%q: %q twice in a row", text, got)
			}
			history = append(history, line{From: "Jay", Text: text}, line{From: "Aria", Text: got, Self: true})
		}
	}
}

func TestSameAskedSameAnswered(t *testing.T) {
	r := asked{text: "what do you think of the moon?", id: "7"}.request()
	first, _ := ask1(t, r)
	for range 20 {
		if again, _ := ask1(t, r); again != first {
			t.Fatalf("%q, then %q", first, again)
		}
	}
	seen := map[string]bool{}
	for i := range 30 {
		text, _ := ask1(t, asked{text: "hello", id: fmt.Sprint(i)}.request())
		seen[text] = true
	}
	if len(seen) < 4 {
		t.Errorf("got %d different greetings, too few", len(seen))
	}
}

func TestEveryLanguageKnowsEveryTopic(t *testing.T) {
	books := phrases.ReadBooks()
	if len(books) != 5 {
		t.Fatalf("%d books", len(books))
	}
	all := kinds()
	for _, b := range books {
		for topic, lines := range books[0].Says {
			if len(b.Says[topic]) == 0 {
				t.Errorf("%s has no phrase for the topic %s", b.Language, topic)
			}
			for _, l := range lines {
				if strings.Count(l, "{") != strings.Count(l, "}") {
					t.Errorf("%s: got %q", b.Language, l)
				}
			}
		}
		asked := map[string]bool{}
		text, err := os.ReadFile("phrases/words/" + b.Language + ".txt")
		if err != nil {
			t.Fatal(err)
		}
		for _, section := range strings.Split(string(text), "\n[")[1:] {
			topic, phrases, _ := strings.Cut(section, "]\n")
			topic, _, _ = strings.Cut(topic, ":")
			if !strings.Contains("\n"+phrases, "\n? ") || topic == "foreign" {
				continue
			}
			asked[topic] = true
			if _, ok := all[topic]; topic != "filler" && !ok {
				t.Errorf("%s: %s is of no kind", b.Language, topic)
			}
		}
		for topic, k := range all {
			if asked[topic] == (k.class == contextual) {
				t.Errorf("%s: no phrase asks for %s", b.Language, topic)
			}
		}
		for list, words := range books[0].Lists {
			if len(b.Lists[list]) == 0 {
				t.Errorf("%s has no %d words of %s", b.Language, len(words), list)
			}
		}
	}
}

// TestSlotWithoutWords checks that a phrase's slot may contain only a punctuation mark if a word next to it has
// another one.
func TestSlotWithoutWords(t *testing.T) {
	for language, text := range map[string]string{"de": "welcher tag war am letzten € machs", "fr": "quelle date était ce il y a € t'es"} {
		if got, _ := ask1(t, asked{language: language, text: text}.request()); got == "" {
			t.Errorf("no answer to %q", text)
		}
	}
}

func TestWithoutMessageAction(t *testing.T) {
	r := asked{text: "hello"}.request()
	r.System = r.System[:1]
	answer, err := New(Options{}).Generate(context.Background(), r)
	if err != nil {
		t.Fatal(err)
	}
	var p plan
	if err := json.Unmarshal([]byte(answer.Text), &p); err != nil || p.Response == "" || len(p.Actions) != 0 {
		t.Errorf("got %s, %v", answer.Text, err)
	}
}

func TestNotices(t *testing.T) {
	notice := func(text string) llm.Request {
		r := asked{text: "what do you know about tea?", actions: manyActions}.request()
		r.Messages = append(r.Messages, llm.Utterance{Role: llm.RoleModel, Text: "{}"}, llm.Utterance{Role: llm.RoleUser, Text: text})
		return r
	}
	for _, tc := range []struct{ notice, want, act string }{
		{`{"system_message":{"type":"output","message":"m","outputs":[{"action":"memory_search","outcome":"done","output":[{"text":"Jay drinks tea"}]}]}}`, `Jay drinks tea`, ""},
		{`{"system_message":{"type":"output","message":"m","outputs":[{"action":"memory_search","outcome":"done","output":[]}]}}`, `nothing|Nothing`, ""},
		{`{"system_message":{"type":"output","message":"m","outputs":[{"action":"memory_save","outcome":"failed","error":"disk full"}]}}`, `(?i)didn't work|wrong`, ""},
		{`{"system_message":{"type":"output","message":"m","outputs":[{"action":"memory_save","outcome":"done","output":"id 7"}],"already_sent":["Noted."]}}`, `^$`, "IGNORE"},
		{`{"system_message":{"type":"output","message":"m","outputs":[{"action":"dice","outcome":"done","output":{"result":"six"}}]}}`, `six`, ""},
		{`{"system_message":{"type":"error","message":"bad","your_reply":"{}","original_user_message":"what time is it"}}`, `(?i)didn't work|wrong`, ""},
	} {
		text, others := ask1(t, notice(tc.notice))
		if !regexp.MustCompile(tc.want).MatchString(text) || len(others) != strings.Count(tc.act, "IGNORE") {
			t.Errorf("%s: got %q and steps %v", tc.notice, text, others)
		}
	}
}

// TestFailedPlan checks that the engine says that a request failed if its plan was refused.
func TestFailedPlan(t *testing.T) {
	for _, text := range []string{"wake me at 7", "timer for 5 minutes", "remind me at 9 to run", "again", "roll 2d6"} {
		r := asked{text: text, actions: manyActions}.request()
		r.Messages = append(r.Messages, llm.Utterance{Role: llm.RoleModel, Text: "{}"},
			llm.Utterance{Role: llm.RoleUser, Text: `{"system_message":{"type":"error","message":"bad"}}`})
		if got, _ := ask1(t, r); !regexp.MustCompile("didn't work|wrong").MatchString(got) {
			t.Errorf("%s: got %q", text, got)
		}
	}
}

func TestRefusesWhatIsNoChat(t *testing.T) {
	_, err := New(Options{}).Generate(context.Background(), llm.Request{Messages: []llm.Utterance{{Role: llm.RoleUser, Text: "Summarise this."}}})
	failed, ok := err.(*llm.Error)
	if !ok || failed.Kind != llm.ErrorRefused {
		t.Errorf("got %v", err)
	}
}

func BenchmarkGenerate(b *testing.B) {
	r := asked{text: "explain quantum chromodynamics to me, please"}.request()
	for b.Loop() {
		if _, err := shared().Generate(context.Background(), r); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkReadBooks(b *testing.B) {
	for b.Loop() {
		phrases.ReadBooks()
	}
}

func FuzzGenerate(f *testing.F) {
	f.Add("hello", "Jay", aria, "en")
	f.Add("remind me in 10 minutes to x", "\x00", "You are . Likes: ;;.", "de")
	f.Add("E#", "0", "0", "it")
	f.Add("merk dir dass", "{you}", "", "it")
	f.Fuzz(func(t *testing.T, text, name, persona, language string) {
		history := []line{{From: name, Text: text}, {Text: persona, Self: true}}
		r := asked{text: text, name: name, language: language, actions: manyActions, history: history}.request()
		r.System[0] = persona
		answer, err := shared().Generate(context.Background(), r)
		if err != nil {
			t.Fatal(err)
		}
		var p plan
		if err := json.Unmarshal([]byte(answer.Text), &p); err != nil || p.Response == "" && len(p.Actions) == 0 {
			t.Fatalf("%s: %v", answer.Text, err)
		}
	})
}

// TestStandbyInAGroup checks that the engine says in a group that it replaces a model, and makes no small
// talk.
func TestStandbyInAGroup(t *testing.T) {
	standIn := New(Options{Zone: time.UTC, Standby: true})
	for text, is := range map[string]bool{
		"what do you think of tea?": true, "what do you like?": true, "was denkst du über Ritter?": true, "how are you?": true,
		"what is 2 + 3?": false, "what time is it in Tokyo?": false,
	} {
		request := asked{text: text}.request()
		request.Messages[0].Text = strings.Replace(request.Messages[0].Text, `"context":{`, `"context":{"participants":[{"name":"Ann"},{"name":"Bob"}],`, 1)
		request.Messages[0].Text = strings.Replace(request.Messages[0].Text, `"Bob"}],}`, `"Bob"}]}`, 1)
		answer, err := standIn.Generate(t.Context(), request)
		if err != nil {
			t.Fatal(err)
		}
		said, _ := parsePlan(t, answer.Text)
		if says := strings.Contains(said, "language model") || strings.Contains(said, "Sprachmodell"); says != is {
			t.Errorf("%s: got %s", text, said)
		}
	}
}
