package knowledge

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/pelletier/go-toml/v2"

	"synthbot/core/passage"
)

// TestEval checks the hit rate of the search by words with the repository's questions.
func TestEval(t *testing.T) {
	p := made(t, Config{Sources: []Source{{Name: "handbook", Path: "testdata/handbook"}}})
	if _, err := p.Sync(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile("testdata/questions.toml")
	if err != nil {
		t.Fatal(err)
	}
	var q Questions
	if err := toml.Unmarshal(data, &q); err != nil {
		t.Fatal(err)
	}
	r, err := p.Rate(t.Context(), q.Questions, passage.Words)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d questions: %.3f at 1, %.3f at 3, %.3f at 8, rank %.3f", len(q.Questions), r.Hits[0], r.Hits[1], r.Hits[2], r.Rank)
	if len(q.Questions) < 200 || r.Hits[1] < 0.9 {
		t.Errorf("got %d questions, hit rate %.3f at 3", len(q.Questions), r.Hits[1])
	}
	var out bytes.Buffer
	if err := p.Eval(t.Context(), &out, q.Questions[:5]); err != nil || !strings.Contains(out.String(), "words") {
		t.Errorf("got %s, %v", out.String(), err)
	}
}
