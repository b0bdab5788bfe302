package offline_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"synthbot/core"
	"synthbot/core/engine/offline"
	"synthbot/core/llm"
	"synthbot/core/turn"
	"synthbot/plugins/memory"
	"synthbot/plugins/plugintest"
	"synthbot/plugins/reminders"
)

// asker asks the engine without a chain.
type asker struct{ model *offline.Model }

func (a asker) Ask(ctx context.Context, q core.Question) (llm.Answer, error) {
	r, err := q.Build(a.model.Limits())
	if err != nil {
		return llm.Answer{}, err
	}
	return a.model.Generate(ctx, r)
}

// exchange is a message and the bot's answer.
type exchange struct {
	who, ask, answer string
}

// readExchanges reads conversations. A line after "> " is a message in private, after "group> " one in a group,
// and after "< " a line of the answer. A blank line ends a conversation. The next one has another user.
func readExchanges(t *testing.T, file string) (list []exchange) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	who := 1
	for i, line := range strings.Split(string(text), "\n") {
		kind, rest, _ := strings.Cut(line, " ")
		switch {
		case line == "":
			who++
		case kind == ">":
			list = append(list, exchange{who: fmt.Sprintf("P%d (private)", who), ask: rest})
		case kind == "group>":
			list = append(list, exchange{who: fmt.Sprintf("P%d @ room/g%d", who, who), ask: rest})
		case kind == "<" && len(list) > 0:
			last := &list[len(list)-1]
			last.answer = strings.TrimPrefix(last.answer+"\n"+rest, "\n")
		case strings.HasPrefix(line, "#"):
		default:
			t.Fatalf("%s:%d: %q", file, i+1, line)
		}
	}
	return list
}

// TestExchanges runs the conversations through the real pipeline with the default plugins, on a Friday in Rome.
func TestExchanges(t *testing.T) {
	files, _ := filepath.Glob("testdata/*.txt")
	count := 0
	for _, file := range files {
		list := readExchanges(t, file)
		count += len(list)
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) { checkExchanges(t, list) })
	}
	if count < 300 {
		t.Errorf("got %d exchanges, too few", count)
	}
}

// checkExchanges runs the exchanges as a script: each line of an answer is a message of the test interface.
func checkExchanges(t *testing.T, list []exchange) {
	script := &strings.Builder{}
	script.WriteString("zone Europe/Rome\nclock 2026-11-20T11:32:00+01:00\n")
	for _, e := range list {
		fmt.Fprintf(script, "%s> %s\n", e.who, e.ask)
		for line := range strings.SplitSeq(e.answer, "\n") {
			fmt.Fprintf(script, "bot= %s\n", line)
		}
	}
	plugintest.Text(t, script.String(), plugintest.Of(memory.New), plugintest.Of(reminders.New),
		plugintest.Tune(func(o *turn.Options) {
			o.Asker = asker{offline.New(offline.Options{Seed: 1})}
		}))
}
