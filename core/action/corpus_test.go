package action

import (
	"bytes"
	"encoding/json"
	"flag"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"synthbot/core"
	"synthbot/core/llm"
	"synthbot/core/plan"
	"synthbot/core/prompt"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// TestCorpus reads and checks replies of models, real and invented. NAME.in is a text and
// NAME.answer an llm.Answer. NAME.want holds the plan that may run, the faults, the actions that a
// correction shows, the correction prompt, and what users see if the model does not correct itself.
func TestCorpus(t *testing.T) {
	files, err := filepath.Glob("testdata/corpus/*.txtar")
	if err != nil {
		t.Fatal(err)
	}
	cases := 0
	for _, file := range files {
		archive, err := txtar.ParseFile(file)
		if err != nil {
			t.Fatal(err)
		}
		cases += corpusFile(t, file, archive)
	}
	if cases < 120 {
		t.Errorf("unexpected: only %d cases", cases)
	}
}

func corpusFile(t *testing.T, file string, archive *txtar.Archive) (cases int) {
	t.Helper()
	fresh := &txtar.Archive{Comment: archive.Comment}
	wants := make(map[string]string)
	for _, f := range archive.Files {
		if name, ok := strings.CutSuffix(f.Name, ".want"); ok {
			wants[name] = string(f.Data)
		}
	}
	for _, f := range archive.Files {
		name, kind, _ := strings.Cut(f.Name, ".")
		if kind == "want" {
			continue
		}
		cases++
		got := verdict(t, name, kind, f.Data)
		if got != wants[name] && !*update {
			t.Errorf("%s: %s\n%s\ngot:\n%s\nwant:\n%s", filepath.Base(file), name, f.Data, got, wants[name])
		}
		fresh.Files = append(fresh.Files, f, txtar.File{Name: name + ".want", Data: []byte(got)})
	}
	if *update {
		if err := os.WriteFile(file, txtar.Format(fresh), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return cases
}

// corpusCatalogue returns the actions that the corpus uses.
func corpusCatalogue(t testing.TB) *Snapshot {
	var w world
	form := func(s string) func(*core.Action) {
		return func(a *core.Action) { a.Schema = json.RawMessage(s) }
	}
	return w.catalogue(t,
		w.act("book", form(`{"type":"object","properties":{"seats":{"type":"integer","minimum":1,"maximum":9},"id":{"type":"integer"},"class":{"type":"string","enum":["a","b"],"default":"b"},
			"who":{"type":"object","properties":{"name":{"type":"string"},"vip":{"type":"boolean","default":false}},"required":["name"]}},"required":["seats"]}`)),
		w.act("invoices.list", form(`{"type":"object","properties":{"status":{"type":"string","enum":["pending","paid","overdue"]},"limit":{"type":"number","minimum":1,"maximum":100}},"required":["status"]}`)),
	)
}

func verdict(t *testing.T, name, kind string, data []byte) string {
	answer := llm.Answer{Text: string(data)}
	if kind == "answer" {
		answer = answerOf(t, data)
	}
	who := by(core.RankMember)
	if strings.HasPrefix(name, "admin-") {
		who = by(core.RankAdmin)
	}
	s := corpusCatalogue(t)
	p, faults := plan.Read(answer)
	checked, more := s.Check(p, who)
	faults = append(faults, more...)
	var b strings.Builder
	p = checked
	p.Steps = nil
	if rest, _ := json.Marshal(p); string(rest) != "{}" {
		b.WriteString("plan " + string(rest) + "\n")
	}
	for i := range checked.Steps {
		line, _ := json.Marshal(checked.Steps[i])
		b.WriteString("run " + string(line) + "\n")
	}
	for _, f := range faults {
		b.WriteString("fault " + f.String() + "\n")
	}
	concerned := s.Concerned(faults)
	if len(concerned) > 0 {
		b.WriteString("concerned " + list(concerned) + "\n")
	}
	if len(faults) > 0 {
		b.WriteString("correction " + corrected(t, name, answer, faults, concerned) + "\n")
	}
	if prose, ok := plan.Prose(answer.Text); ok && len(checked.Steps) == 0 {
		b.WriteString("prose " + prose + "\n")
	}
	return b.String()
}

// corrected returns the correction prompt. For one action it has less than 2,000 characters without
// its quotes.
func corrected(t *testing.T, name string, a llm.Answer, faults []core.Fault, concerned []*Definition) string {
	t.Helper()
	const said = "please do it"
	base, err := prompt.Build(&prompt.Parts{Cache: prompt.NewCache(), Interface: "telegram", Chat: true, Messages: []core.Entry{{Event: core.Event{
		Kind: core.KindMessage, Message: core.Message{Path: core.MustPath("telegram/-100/7"), ID: "1", Text: said},
	}}}}, llm.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	c := prompt.Correction{Prompt: &base, Faults: faults, Reply: a.Text, Calls: a.Calls}
	for _, d := range concerned {
		c.Actions = append(c.Actions, prompt.CorrectionAction{
			Name: d.Name, Brief: d.Brief, Schema: d.CorrectionSchema(), Examples: d.Examples,
		})
	}
	asked := c.Request().Messages
	text := asked[len(asked)-1].Text
	var quotes struct {
		System struct {
			Message  string `json:"message"`
			Reply    string `json:"your_reply"`
			Original string `json:"original_user_message"`
		} `json:"system_message"`
	}
	if err := json.Unmarshal([]byte(text), &quotes); err != nil {
		t.Errorf("%s: the correction is not JSON: %v", name, err)
	}
	q := quotes.System
	if own := len([]rune(text)) - len([]rune(q.Reply)) - len([]rune(q.Original)); len(concerned) == 1 && own >= 2000 {
		t.Errorf("%s: the correction has %d characters without its quotes", name, own)
	}
	return text
}

func answerOf(t testing.TB, data []byte) llm.Answer {
	var a struct {
		Text      string
		Truncated bool
		Calls     []struct{ ID, Name, Arguments string }
	}
	if err := json.Unmarshal(data, &a); err != nil {
		t.Fatal(err)
	}
	answer := llm.Answer{Text: a.Text, Truncated: a.Truncated}
	for _, c := range a.Calls {
		call := llm.ToolCall{ID: c.ID, Name: c.Name, Arguments: json.RawMessage(c.Arguments)}
		answer.Calls = append(answer.Calls, call)
	}
	return answer
}

// TestNoFirstHalfRuns: of a truncated plan only messages may run, wherever it is cut.
func TestNoFirstHalfRuns(t *testing.T) {
	s := corpusCatalogue(t)
	for _, whole := range []string{
		`{"response":"ok","actions":[{"type":"ban","payload":{"user":"42"}},{"type":"send_file","payload":{"path":"a"},"fallbackAction":{"type":"ban","payload":{}}}]}`,
		`Well, [{"type":"ban","payload":{"user":"42"}}, {"type":"message","payload":{"text":"bye"}}]`,
		"```json\n[\n  {\"type\":\"ban\",\"payload\":{\"user\":\"42\"}},\n  {\"type\":\"send_file\",\"payload\":{}}\n]\n```",
		`{"action":"ban","action_input":{"user":"42"}}`,
	} {
		end := strings.LastIndexAny(whole, "}]")
		for n := range end {
			p, _ := plan.Read(llm.Answer{Text: whole[:n]})
			checked, _ := s.Check(p, by(core.RankAdmin))
			for i := range checked.Steps {
				for step := &checked.Steps[i]; step != nil; step = step.Fallback {
					_, control := Control(step.Type)
					if d, ok := s.Resolve(step.Type); !control && (!ok || !d.IsMessage()) {
						t.Fatalf("%s of the truncated plan %q may run", step.Type, whole[:n])
					}
				}
			}
		}
	}
}

// BenchmarkCorrections counts how many of 1,000 replies need a correction: for each part of the
// corpus, and for random plans that follow the schema. For the latter it also counts faults of
// syntax.
func BenchmarkCorrections(b *testing.B) {
	files, _ := filepath.Glob("testdata/corpus/*.txtar")
	for _, file := range files {
		archive, err := txtar.ParseFile(file)
		if err != nil {
			b.Fatal(err)
		}
		var answers []llm.Answer
		for _, f := range archive.Files {
			switch _, kind, _ := strings.Cut(f.Name, "."); kind {
			case "in":
				answers = append(answers, llm.Answer{Text: string(f.Data)})
			case "answer":
				answers = append(answers, answerOf(b, f.Data))
			}
		}
		s := corpusCatalogue(b)
		b.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(b *testing.B) {
			corrections := 0
			for b.Loop() {
				corrections = 0
				for i := range 1000 {
					p, faults := plan.Read(answers[i%len(answers)])
					_, more := s.Check(p, by(core.RankAdmin))
					corrections += min(1, len(faults)+len(more))
				}
			}
			b.ReportMetric(float64(corrections), "corrections/1000")
		})
	}
	s, names := replyCatalogue(b)
	for form, strict := range map[string]bool{"random-schema": false, "random-strict": true} {
		raw := s.ReplySchema(names, nil, strict)
		b.Run(form, func(b *testing.B) { syntaxOf(b, s, randomPlans(b, raw), strict) })
		tool := os.Getenv("GRAMMAR") // see scripts/corrections.sh
		if tool != "" {
			b.Run("llama.cpp-"+form, func(b *testing.B) {
				c := exec.Command(tool, "1000")
				c.Stdin = bytes.NewReader(raw)
				out, err := c.Output()
				if err != nil {
					b.Fatal(err)
				}
				syntaxOf(b, s, strings.Split(strings.TrimSpace(string(out)), "\n"), strict)
			})
		}
	}
}

func randomPlans(b *testing.B, schema json.RawMessage) []string {
	var root map[string]any
	if err := json.Unmarshal(schema, &root); err != nil {
		b.Fatal(err)
	}
	g := generator{root: root, random: rand.New(rand.NewPCG(1, 2))}
	plans := make([]string, 1000)
	for i := range plans {
		plans[i] = string(core.JSON(g.value(root, 0)))
	}
	return plans
}

func syntaxOf(b *testing.B, s *Snapshot, plans []string, strict bool) {
	syntax := 0
	for b.Loop() {
		syntax = 0
		for _, text := range plans {
			syntax += min(1, len(syntaxFaults(s, text, strict)))
		}
	}
	if len(plans) != 1000 {
		b.Errorf("unexpected number of plans: %d", len(plans))
	}
	b.ReportMetric(float64(syntax), "syntax/1000")
}
