package prompt

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"unicode/utf8"

	"synthbot/core"
	"synthbot/core/coretest"
	"synthbot/core/llm"
)

// random makes prompts of all shapes, from empty to far too long.
type random struct{ *rand.Rand }

// pool is the text from which random texts are cut at any byte.
var pool = func() string {
	alphabet := []string{"a", "word ", "é", "猫", "\n", `"`, `\`, "\x00", "😀", "\xff", "<b>", "\u2028", "another word "}
	r, b := rand.New(rand.NewPCG(1, 2)), strings.Builder{}
	for b.Len() < 1<<16 {
		b.WriteString(alphabet[r.IntN(len(alphabet))])
	}
	return b.String()
}()

func (r random) text(most int) string {
	n := r.IntN(most + 1)
	from := r.IntN(len(pool) - n)
	return pool[from : from+n]
}

// length is mostly small, but sometimes huge.
func (r random) length() int {
	switch r.IntN(80) {
	case 0:
		return 6000
	case 1:
		return 1500
	}
	return 60
}

func (r random) entries(most int) []core.Entry {
	list := make([]core.Entry, r.IntN(most+1))
	seq := uint64(r.IntN(50))
	for i := range list {
		seq += uint64(1 + r.IntN(3))
		list[i] = said("telegram/-100/7", seq, "P"+r.text(8), fmt.Sprintf("%d ", seq)+r.text(r.length()))
		list[i].Self = r.IntN(2) == 0
	}
	return list
}

func (r random) values(most int) []json.RawMessage {
	list := make([]json.RawMessage, r.IntN(most+1))
	for i := range list {
		list[i] = quoted(r.text(r.length()))
	}
	return list
}

func (r random) parts() Parts {
	p := hello()
	p.Persona.Text = "You are Aria."
	p.History, p.Recent = r.entries(24), r.entries(8)
	p.Participants, p.Memories = r.values(5), r.values(6)
	p.Messages = r.entries(3)
	p.Messages = append(p.Messages, said("telegram/-100/7", 900, "Jay", r.text(r.length())))
	if r.IntN(3) == 0 {
		p.Messages[0].Message.ReplyTo = &core.Quote{ID: "41", Text: r.text(300), From: core.Author{Name: "Ann"}}
	}
	if r.IntN(4) == 0 {
		p.Messages[0].Message.Attachments = []core.Attachment{{Kind: core.MediaFile, Name: "a.txt", Ref: "r"}}
		p.Texts = map[string]string{"r": r.text(4000)}
	}
	if r.IntN(3) == 0 {
		p.Injections = map[string]json.RawMessage{"weather": quoted("w" + r.text(400)), "diary": quoted("d" + r.text(400))}
		p.State.Topic = r.text(200)
		p.Recon.Snippets = []string{r.text(300)}
	}
	if r.IntN(5) == 0 {
		p.Kind = Delivery
		p.Outputs = []Output{{Action: "web_read", Progress: core.ProgressDone, Output: quoted(r.text(4000)), Payload: json.RawMessage(`{"url":"x"}`)}}
	}
	return p
}

// keptTail checks that got is the end of all, each entry whole or marked as cut, and returns how
// many are missing.
func keptTail(t *testing.T, what string, got []line, all []core.Entry) (missing int) {
	t.Helper()
	missing = len(all) - len(got)
	if missing < 0 {
		t.Fatalf("%s grew from %d to %d entries", what, len(all), len(got))
	}
	for i, l := range got {
		want := whole(all[missing+i].Message.Text)
		if l.Text != want && !(marked(l.Text) && l.Text[:3] == want[:3]) {
			t.Fatalf("%s: entry %d is %.60q, want %.60q, whole or marked as cut", what, i, l.Text, want)
		}
	}
	return missing
}

// whole returns a text as JSON carries it.
func whole(s string) string { return strings.ToValidUTF8(fix(s), "\uFFFD") }

// fix replaces each invalid byte, like the encoder.
func fix(s string) string {
	var b strings.Builder
	for _, r := range s {
		b.WriteRune(r)
	}
	return b.String()
}

func marked(s string) bool { return strings.Contains(s, " characters cut…] ") }

func TestReduction(t *testing.T) {
	seeds := coretest.Sample(40_000, 2500)
	if raced { // the race detector makes it ten times slower, and there is one goroutine
		seeds /= 10
	}
	refused, reduced, emptied := 0, 0, 0
	for seed := range seeds {
		r := random{rand.New(rand.NewPCG(uint64(seed), 4))}
		p := r.parts()
		full := mustBuild(t, p, llm.Limits{})
		limit := full.chars()
		if r.IntN(8) > 0 {
			limit = 2400 + r.IntN(3500)
		}
		got, err := Build(&p, llm.Limits{Engine: "e", Chars: limit})
		if err != nil {
			checkRefusal(t, p, err, limit)
			refused++
			continue
		}
		if full.chars() > limit {
			reduced++
		}
		if s := checkReduction(t, p, &full, &got, limit); len(s.Context.Current) == 0 {
			emptied++
		}
		if t.Failed() {
			t.Fatalf("failed with seed %d, limit %d", seed, limit)
		}
	}
	t.Logf("%d prompts: %d reduced, %d without history, %d refused", seeds, reduced, emptied, refused)
	if reduced < seeds/4 || emptied < seeds/100 || refused > seeds/3 {
		t.Error("the random prompts cover too few cases")
	}
}

// checkRefusal checks that a refused prompt does not fit even when fully reduced.
func checkRefusal(t *testing.T, p Parts, err error, limit int) {
	t.Helper()
	var m *llm.Error
	if !errors.As(err, &m) || m.Kind != llm.ErrorTooLong {
		t.Fatalf("unexpected error %v", err)
	}
	p.History, p.Recent, p.Memories, p.Participants, p.Injections = nil, nil, nil, nil, nil
	p.State, p.Recon = core.State{}, Recon{Language: p.Recon.Language}
	for i := range p.Messages {
		m := &p.Messages[i].Message
		m.Text = short(m.Text)
		if m.ReplyTo != nil {
			m.ReplyTo.Text = short(m.ReplyTo.Text)
		}
	}
	for ref, text := range p.Texts {
		p.Texts[ref] = short(text)
	}
	for i := range p.Outputs {
		p.Outputs[i].Output = quoted(short(string(p.Outputs[i].Output)))
	}
	if least := mustBuild(t, p, llm.Limits{}); least.chars()+200 < limit {
		t.Fatalf("refused with the limit %d, but %d characters are enough", limit, least.chars())
	}
}

func short(s string) string { return cut(s, textFloor) }

func checkReduction(t *testing.T, p Parts, full, got *Prompt, limit int) shape {
	t.Helper()
	s := read(t, got)
	if got.chars() > limit {
		t.Errorf("the prompt has %d characters, want at most %d", got.chars(), limit)
	}
	if got.before != full.chars() || s.Before != full.chars() {
		t.Errorf("the pre-reduction size is %d, want %d", s.Before, full.chars())
	}
	same := got.instructions == full.instructions && got.verbose == full.verbose
	if !same || got.actions.raw != full.actions.raw {
		t.Error("a protected part was cut")
	}
	recent := keptTail(t, "history_recent", s.Context.Recent, p.Recent)
	current := keptTail(t, "history_current_chat", s.Context.Current, p.History)
	memories := len(p.Memories) - len(s.Context.Memories)
	others := gone(p, s)
	context := len(got.contextJSON()) == len(`{}`)
	switch {
	case current > 0 && len(s.Context.Recent) > 0:
		t.Error("history_current_chat was cut before history_recent")
	case memories > 0 && len(s.Context.Current) > 1:
		t.Error("memories were cut before history_current_chat")
	case others > 0 && len(s.Context.Memories) > 0:
		t.Error("other keys were cut before memories")
	case len(p.History) > 0 && len(s.Context.Current) == 0 && !context:
		t.Error("the newest entry was dropped, but not the other context")
	case len(s.Context.Recent) > 0 && recent > 0 && wasted(p, s, limit, limit-got.chars()-textSize(p.plan())):
		t.Error("more of history_recent was cut than needed")
	}
	said, _ := p.said()
	if own, _ := s.Input.Payload["text"].(string); own != whole(said) {
		if !marked(own) || !context {
			t.Errorf("the input's text was changed: %.80q", own)
		}
	}
	return s
}

// gone counts the context keys after the memories and the participants that were dropped.
func gone(p Parts, s shape) int {
	n := len(p.Participants) - len(s.Context.Participants) + len(p.Injections)
	for _, there := range []bool{s.Context.Weather != "", s.Context.Diary != ""} {
		if there {
			n--
		}
	}
	if p.State.Topic != "" && s.Context.State == nil {
		n++
	}
	if s.Context.Recon == nil {
		n++
	}
	return n
}

// wasted reports whether the next entry of history_recent would have fit.
func wasted(p Parts, s shape, limit, room int) bool {
	next := p.Recent[len(p.Recent)-len(s.Context.Recent)-1]
	section := (&writer{zone: p.Zone, marks: p.Marks()}).history("history_recent", spoken([]core.Entry{next}), true)
	section.shorten(0, max(longEntry, limit/longShare))
	return section.items[0].size+1 <= room
}

func TestOneHugeEntryLeavesTheOthers(t *testing.T) {
	p := hello()
	for seq := uint64(1); seq <= 20; seq++ {
		text := fmt.Sprintf("message %d", seq)
		if seq == 10 {
			text = strings.Repeat("page ", 6000)
		}
		p.History = append(p.History, said("telegram/-100/7", seq, "Ann", text))
	}
	got := mustBuild(t, p, llm.Limits{Chars: 12000})
	s := read(t, &got)
	if len(s.Context.Current) != 20 || !marked(s.Context.Current[9].Text) {
		t.Errorf("unexpected: %d of 20 entries are left; the huge one is %.50q", len(s.Context.Current), s.Context.Current[9].Text)
	}
}

func TestHugeFileLeavesTheContext(t *testing.T) {
	p := hello()
	p.History = []core.Entry{said("telegram/-100/7", 1, "Ann", "hi")}
	p.Messages[0].Message.Attachments = []core.Attachment{{Kind: core.MediaFile, Name: "book.pdf", Ref: "1"}}
	p.Texts = map[string]string{"1": strings.Repeat("chapter ", 100000)}
	got := mustBuild(t, p, llm.Limits{Chars: 12000})
	s := read(t, &got)
	if len(s.Context.Current) != 1 || s.Input.Payload["text"] != "hello" {
		t.Errorf("with a huge file: unexpected context %+v or text %q", s.Context, s.Input.Payload["text"])
	}
	file := s.Input.Payload["attachments"].([]any)[0].(map[string]any)["text"].(string)
	if n := utf8.RuneCountInString(file); !marked(file) || n < 3000 || n > 4000 {
		t.Errorf("unexpected: %d characters of the file are in the prompt", n)
	}
}

func TestReducedWindowMovesInSteps(t *testing.T) {
	p := hello()
	starts, text := map[string]bool{}, strings.Repeat("word ", 40)
	for seq := uint64(1); seq <= 120; seq++ {
		p.History = append(p.History, said("telegram/-100/7", seq, "Ann", text))
		if seq > 40 {
			got := mustBuild(t, p, llm.Limits{Chars: 9000})
			starts[read(t, &got).Context.Current[0].At] = true
		}
	}
	if most := 80/windowStep + 1; len(starts) > most {
		t.Errorf("the reduced window began at %d entries in 80 turns, want at most %d", len(starts), most)
	}
}

func TestSectionsTellWhatGaveWay(t *testing.T) {
	p := busy(t)
	got := mustBuild(t, p, llm.Limits{Chars: 20000})
	kept := len(read(t, &got).Context.Current)
	sum := 0
	for _, s := range got.Sections() {
		sum += s.Size
		if s.Name == "context.history_current_chat" && (s.Items != kept || s.Items+s.Dropped != len(p.History) || s.Dropped == 0) {
			t.Errorf("got %+v, want %d of %d entries", s, kept, len(p.History))
		}
	}
	if sum > got.chars() || sum < got.chars()-150 {
		t.Errorf("the sections take %d characters of %d", sum, got.chars())
	}
}

// TestLongForeignWordsAreShortened: long forwarded texts are cut before whole entries are dropped,
// in the history and in the input.
func TestLongForeignWordsAreShortened(t *testing.T) {
	long := []core.Foreign{{Kind: core.ForeignForward, Text: strings.Repeat("tale ", 4000)}}
	p := hello()
	p.History = dialogue(2, false)
	p.History[2].Message.Foreign = long
	p.Messages[0].Message.Foreign = long
	got := mustBuild(t, p, llm.Limits{Chars: 12000})
	if n := strings.Count(string(got.JSON()), "characters cut"); n < 2 {
		t.Errorf("%d texts were cut, want 2", n)
	}
	for _, e := range p.History {
		if !strings.Contains(got.contextJSON(), e.Message.Text[:40]) {
			t.Errorf("%q is missing", e.Message.Text)
		}
	}
}

// quoted returns a text as JSON.
func quoted(s string) json.RawMessage {
	w := new(writer)
	w.quote(s)
	return json.RawMessage(w.String())
}
