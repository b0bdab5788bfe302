package commands

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"synthbot/core/coretest"
	"synthbot/interfaces/discord/discordtest"
)

// modelServer starts an OpenAI-compatible server that answers every request with the plan reply.
func modelServer(t *testing.T, reply string) (url string, asked *[]string) {
	asked = new([]string)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(io.LimitReader(r.Body, 1<<20))
		if err != nil {
			t.Error(err)
		}
		*asked = append(*asked, string(body))
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"choices":[{"message":{"role":"assistant","content":%q},"finish_reason":"stop"}],"usage":{"prompt_tokens":900,"completion_tokens":100}}`, reply)
	}))
	t.Cleanup(server.Close)
	return server.URL, asked
}

func TestModelOverHTTP(t *testing.T) {
	url, asked := modelServer(t, `{"response":"Hello from the model.","intent":"greeting"}`)
	dir := t.TempDir()
	file := filepath.Join(dir, "config.toml")
	write(t, file, fmt.Sprintf(`
[bot]
data_dir = "data"
[[engine]]
name = "home"
provider = "vllm"
model = "m"
base_url = %q
price_in = 1.0
stream = false
[budget]
person_tokens = 2400
`, url))
	out, errs, status := runChat(t, "hello\nhello again\n", "-c", file)
	lines := strings.Split(strings.TrimSpace(out), "\n")
	if status != 0 || len(lines) != 2 || lines[0] != "Hello from the model." {
		t.Fatalf("status %d, says %q, errors %q", status, out, errs)
	}
	if !strings.Contains(lines[1], "share of my thinking") {
		t.Errorf("answer with the budget spent: %q", lines[1])
	}
	if len(*asked) != 1 || !strings.Contains((*asked)[0], "You are Aria") {
		t.Errorf("requests to the model: got %q, want one", *asked)
	}
	var o, e bytes.Buffer
	if status := run(t.Context(), []string{"usage", "-c", file}, nil, &o, &e); status != 0 || !strings.Contains(o.String(), "home      1  900       0  100  0.0009") {
		t.Errorf("usage: status %d\n%s%s", status, o.String(), e.String())
	}
}

// TestCostsStay checks that what a call cost counts until the end of the day, however the engine is named and priced
// later.
func TestCostsStay(t *testing.T) {
	url, asked := modelServer(t, `{"response":"Hello."}`)
	file := filepath.Join(t.TempDir(), "config.toml")
	for _, engine := range []string{"name = \"home\"\nprice_in = 1.0", "name = \"moved\"\nprice_in = 0.1", "name = \"home\"\nprice_in = 0.1"} {
		write(t, file, fmt.Sprintf("[bot]\ndata_dir = \"data\"\n[[engine]]\nprovider = \"vllm\"\nmodel = \"m\"\nbase_url = %q\n"+
			"%s\n[budget]\nperson_cost = 0.0009\n", url, engine))
		out, errs, status := runChat(t, "hello\n", "-c", file)
		if status != 0 || strings.Contains(out, "share of my thinking") != strings.Contains(engine, "0.1") {
			t.Errorf("%s: status %d, says %q, errors %q", engine, status, out, errs)
		}
		var o, e bytes.Buffer
		run(t.Context(), []string{"usage", "-c", file}, nil, &o, &e)
		if used := strings.Join(strings.Fields(o.String()), " "); !strings.HasSuffix(used, "home 1 900 0 100 0.0009") {
			t.Errorf("%s: usage %s%s", engine, used, e.String())
		}
	}
	if len(*asked) != 1 {
		t.Errorf("requests to the model: got %d, want one", len(*asked))
	}
}

// TestReconIsBooked checks that the usage includes the small model that is asked during a turn.
func TestReconIsBooked(t *testing.T) {
	url, _ := modelServer(t, `{"response":"Hello.","language":"en"}`)
	file := filepath.Join(t.TempDir(), "config.toml")
	engines := ""
	for _, name := range []string{"home", "small"} {
		engines += fmt.Sprintf("[[engine]]\nname = %q\nprovider = \"vllm\"\nmodel = \"m\"\nbase_url = %q\n", name, url)
	}
	write(t, file, "[bot]\ndata_dir = \"data\"\n[prompt]\nrecon = \"small\"\n"+engines)
	if out, errs, status := runChat(t, "hello\n", "-c", file); status != 0 {
		t.Fatalf("status %d, says %q, errors %q", status, out, errs)
	}
	var o, e bytes.Buffer
	status := run(t.Context(), []string{"usage", "-c", file}, nil, &o, &e)
	if used := strings.Join(strings.Fields(o.String()), " "); !strings.Contains(used, "small 1 900 0 100") {
		t.Errorf("usage: status %d\n%s%s", status, o.String(), e.String())
	}
}

// TestSmallWindow checks that a server with a small context window answers every message of a long conversation
// and rejects at most three prompts. Its tokenizer needs twice as many tokens as estimated.
func TestSmallWindow(t *testing.T) {
	for _, window := range []int{6000, 4500} { // 4500 leaves little room for an answer
		t.Run(fmt.Sprint(window), func(t *testing.T) { holdSmallWindow(t, window) })
	}
}

func holdSmallWindow(t *testing.T, window int) {
	t.Helper()
	refused, answered := 0, 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var asked struct{ Messages []struct{ Content string } }
		if err := json.NewDecoder(r.Body).Decode(&asked); err != nil {
			t.Error(err)
		}
		tokens := 0
		for _, m := range asked.Messages {
			tokens += len(m.Content) * 2 / 3
		}
		w.Header().Set("Content-Type", "application/json")
		if tokens > window {
			refused++
			w.WriteHeader(http.StatusBadRequest)
			fmt.Fprintf(w, `{"error":{"code":400,"message":"the request exceeds the available context size","type":"exceed_context_size_error","n_prompt_tokens":%d,"n_ctx":%d}}`, tokens, window)
			return
		}
		answered++
		fmt.Fprintf(w, `{"choices":[{"message":{"content":"{\"response\":\"answer %d\"}"},"finish_reason":"stop"}],"usage":{"prompt_tokens":%d,"completion_tokens":9}}`, answered, tokens)
	}))
	defer server.Close()
	file := filepath.Join(t.TempDir(), "config.toml")
	write(t, file, fmt.Sprintf("[bot]\ndata_dir = \"data\"\n[[engine]]\nprovider = \"llamacpp\"\nmodel = \"any\"\nbase_url = %q\nmax_tokens = 512\n", server.URL))
	n := coretest.Sample(40, 15)
	said := strings.Repeat(strings.Repeat("and then we walked on ", 20)+"\n", n)
	out, errs, status := runChat(t, said, "-c", file)
	lines := strings.Split(strings.TrimSpace(out), "\n")
	if status != 0 || len(lines) != n {
		t.Fatalf("status %d, %d lines, errors %q", status, len(lines), errs)
	}
	for i, line := range lines {
		if line != fmt.Sprintf("answer %d", i+1) {
			t.Errorf("message %d: %q", i+1, line)
		}
	}
	if refused == 0 || refused > 3 {
		t.Errorf("%d calls were rejected, want 1 to 3", refused)
	}
}

// TestThoughtsInAnAnswer checks that a model's thoughts inside its response are neither shown nor in later
// prompts.
func TestThoughtsInAnAnswer(t *testing.T) {
	url, asked := modelServer(t, `{"response":"<think>What a bore.</think>\n\nGood morning!","suggestions":["<thinking>bore</thinking>Why?"]}`)
	file := filepath.Join(t.TempDir(), "config.toml")
	write(t, file, fmt.Sprintf("[bot]\ndata_dir = \"data\"\n[[engine]]\nprovider = \"vllm\"\nmodel = \"m\"\nbase_url = %q\n", url))
	out, errs, status := runChat(t, "hello\nhello again\n", "-c", file)
	if status != 0 || strings.Contains(out, "bore") || strings.Count(out, "Good morning!") != 2 {
		t.Errorf("status %d, says %q, errors %q", status, out, errs)
	}
	if last := (*asked)[len(*asked)-1]; len(*asked) != 2 || strings.Contains(last, "bore") || !strings.Contains(last, "Good morning!") {
		t.Errorf("%d requests, want 2; the last one: %s", len(*asked), last)
	}
}

// TestDeletedQuestions checks that a user who deletes questions while the model works on them does not make the
// engine unavailable for others, and that the questions are counted in the usage.
func TestDeletedQuestions(t *testing.T) {
	thinks, gone := make(chan struct{}), make(chan struct{})
	ctx, cancel := context.WithTimeout(t.Context(), coretest.Patience)
	say := func(c chan struct{}) {
		select {
		case c <- struct{}{}:
		case <-ctx.Done():
		}
	}
	model := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked, err := io.ReadAll(io.LimitReader(r.Body, 4<<20))
		if err != nil || strings.Contains(string(asked), "ponder") {
			say(thinks)
			select {
			case <-r.Context().Done():
				say(gone)
			case <-ctx.Done():
			}
			return
		}
		fmt.Fprint(w, `{"choices":[{"message":{"content":"{\"response\":\"Here I am.\"}"},"finish_reason":"stop"}],"usage":{"prompt_tokens":9,"completion_tokens":1}}`)
	}))
	defer model.Close()
	defer cancel() // before the server closes, which waits for its requests
	s := discordtest.New(t)
	address := freeAddress(t)
	d := startDaemon(t, onDiscord(s, model.URL, "[metrics]\nlisten = \""+address+"\"\n"))
	d.awaitNotice("READY")
	if !s.Await(ctx, func() bool { return s.Live() > 0 }) {
		t.Fatal("the account does not connect")
	}
	const n = 6
	for range n {
		id := s.Say(discordtest.DirectID, discordtest.AnnID, "please ponder this")
		for _, c := range []chan struct{}{thinks, gone} {
			select {
			case <-c:
			case <-ctx.Done():
				t.Fatal("the model is not asked, or its request not cancelled")
			}
			s.Delete(discordtest.DirectID, id)
		}
	}
	s.Say(discordtest.HallID, discordtest.OwnerID, "hello <@"+discordtest.BotID+">")
	awaitText(t, s, discordtest.HallID, "Here I am.")
	counted := 0
	if in := regexp.MustCompile(`synthbot_tokens_total\{engine="vllm",kind="in"\} (\d+)`).FindStringSubmatch(fetch(t, "http://"+address+"/metrics")); in != nil {
		counted, _ = strconv.Atoi(in[1])
	}
	if counted < n*100 { // the last question has 9
		t.Errorf("got %d tokens, want at least 100 for each question", counted)
	}
	d.end()
	var o, e bytes.Buffer
	run(t.Context(), []string{"usage", "-c", d.file}, nil, &o, &e)
	if used := strings.Join(strings.Fields(o.String()), " "); !strings.Contains(used, fmt.Sprint("vllm ", n+1)) {
		t.Errorf("usage: %s%s", o.String(), e.String())
	}
}
