package prompt

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"synthbot/core"
	"synthbot/core/llm"
)

// flat returns a request as a provider's cache sees it.
func flat(r llm.Request) (system, messages string) {
	var b strings.Builder
	for _, tool := range r.Tools {
		fmt.Fprintf(&b, "%s %s %s\n", tool.Name, tool.Brief, tool.Schema)
	}
	b.WriteString(strings.Join(r.System, "\n"))
	var m strings.Builder
	for _, u := range r.Messages {
		m.WriteString("\n" + string(u.Role) + "\n" + u.Text)
	}
	return b.String(), m.String()
}

// common returns how many leading characters are equal.
func common(a, b string) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

// dialogue is a long chat of three users with the bot. With namesakes, the first and the last have
// the same name.
func dialogue(turns int, namesakes bool) []core.Entry {
	names := []string{"Jay", "Ann", "Bob"}
	var log []core.Entry
	for i := range turns {
		seq := uint64(len(log) + 1)
		ask := said("telegram/-100/7", seq, names[i%3], fmt.Sprintf("And what about number %d? I was told it is the best of them all, but I am not so sure.", i))
		if namesakes && i%3 != 1 {
			ask.Message.Author.Name, ask.Message.Author.Tag = "Owner", ""
		}
		answer := said("telegram/-100/7", seq+1, "Aria", fmt.Sprintf("Number %d is fine. Take the second one anyway: it costs less, and you will not miss the extra pocket that everybody praises.", i))
		answer.Self = true
		log = append(log, ask, answer)
	}
	return log
}

func TestConsecutivePromptsShareTheirBeginning(t *testing.T) {
	const n, turns, namesakes = 20, 50, "namesakes"
	people := []json.RawMessage{json.RawMessage(`{"username":"Ann","bio":"a gardener"}`), json.RawMessage(`{"username":"Bob","bio":"plays the tuba"}`), json.RawMessage(`{"username":"Jay","bio":"asks a lot"}`)}
	const most = 24000
	tools := llm.Limits{Chars: most, Dialect: llm.DialectTools}
	for _, l := range []llm.Limits{{Chars: most}, tools, {Chars: most, Engine: namesakes}} {
		log := dialogue(turns, l.Engine == namesakes)
		system, before, resets, most := "", "", 0, 0
		for i := range turns {
			p := hello()
			last := uint64(2*i + 1)
			p.Messages = log[2*i : 2*i+1]
			p.History = log[WindowStart(last, n) : 2*i]
			p.Participants = people
			p.Memories = []json.RawMessage{json.RawMessage(fmt.Sprintf(`{"text":"Jay likes number %d."}`, i))}
			p.Recon.MessageTone = []string{"curious", "playful", ""}[i%3]
			out := mustBuild(t, p, l)
			s, m := flat(out.Request())
			if system != "" && s != system {
				t.Fatalf("%s: the system part changed in turn %d", l.Dialect, i)
			}
			fresh := utf8.RuneCountInString(m[common(before, m):]) - textSize(log[2*i].Message.Text)
			switch moved := WindowStart(last, n) != WindowStart(last-2, n); {
			case i == 0:
			case moved:
				resets++
			case fresh > 900 && l.Engine == namesakes && i == 2: // marks tell the two apart from now on
			case fresh > 900:
				t.Errorf("dialect %q: turn %d has %d fresh characters", l.Dialect, i, fresh)
			default:
				most = max(most, fresh)
			}
			system, before = s, m
		}
		t.Logf("dialect %q: at most %d fresh characters, %d resets", l.Dialect, most, resets)
		if allowed := 2 * turns / n; resets > allowed {
			t.Errorf("dialect %q: the window moved %d times in %d turns, want at most %d", l.Dialect, resets, turns, allowed)
		}
	}
}
