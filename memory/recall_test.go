package memory

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"synthbot/core"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// TestRecallIsExact compares the results and scores of many searches with testdata/recall.txt.
// There are more facts than a search examines closely, of several places and many ages.
func TestRecallIsExact(t *testing.T) {
	db := openWith(t, t.TempDir(), Options{Clock: func() time.Time { return day }})
	g := newTongue()
	var questions []map[string]string
	err := db.write(t.Context(), &job{run: func(tx *tx) error {
		for i := range 1600 {
			text, asked := g.say()
			if i%60 == 0 {
				questions = append(questions, asked)
			}
			f := core.Fact{
				Text: text + " everywhere" + strings.Repeat(" and so on", i%7), Language: "en", Importance: i % 11,
				Origin: []core.Path{group, group, group, group, group, group, topic, {},
					alone}[i%9], Time: day.Add(-time.Duration(i*i) * time.Minute),
			}
			if i%3 == 0 {
				f.Tags = []string{"Third"}
			}
			if i%4 == 0 {
				f.About = []core.Path{jay}
			}
			f, err := tx.facts().saveFact(f)
			if err != nil {
				return err
			}
			if v, _ := quantize("m", g.embed(text)); i%50 > 0 {
				number, _ := factNumber(f.ID)
				tx.facts().putVector(f.Origin, number, &v)
			}
		}
		return nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	search := func(name string, q core.FactQuery, meant *vector) {
		if q.N == 0 {
			q.N = 4
		}
		err := db.view(t.Context(), func(v *view) error {
			fmt.Fprintf(&out, "%s (meaning: %t)\n", name, meant != nil)
			found := v.hits(q, meant)
			for _, h := range found[:min(len(found), q.N)] {
				fmt.Fprintf(&out, "\t%.4f %s\n", h.score, factID(h.id))
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	both := func(name string, q core.FactQuery) {
		meant, _ := quantize("m", g.embed(q.Text))
		search(name, q, nil)
		search(name, q, &meant)
	}
	see := []core.Path{topic, group}
	for i, asked := range questions[:6] {
		for _, way := range []string{"in other words", "by name", "name and new words", "the same words"} {
			both(fmt.Sprintf("%d, %s", i, way), core.FactQuery{Text: asked[way], See: see})
		}
	}
	first := questions[0]["the same words"]
	both("a word of all", core.FactQuery{Text: "everywhere", See: see})
	both("and another", core.FactQuery{Text: first + " everywhere", See: see})
	both("in no language", core.FactQuery{Text: first + " everywhere", See: see})
	both("with a tag", core.FactQuery{Text: first, See: see, Tags: []string{"third"}})
	both("about jay", core.FactQuery{Text: first, See: see, About: []core.Path{jay}})
	both("a tag and jay", core.FactQuery{Text: first, See: see, Tags: []string{"third"}, About: []core.Path{jay}})
	both("a tag alone", core.FactQuery{See: see, Tags: []string{"third"}})
	both("what is known everywhere", core.FactQuery{Text: first, See: []core.Path{{}}})
	unlike := g.embed("")
	for i := range unlike {
		unlike[i] = -unlike[i]
	}
	opposite, _ := quantize("m", unlike)
	search("unlike all", core.FactQuery{Text: "unknown", See: see, N: 10}, &opposite)
	both("everything", core.FactQuery{See: see, N: 250})
	both("many", core.FactQuery{Text: questions[1]["by name"] + " everywhere", See: see, N: 205})
	const golden = "testdata/recall.txt"
	if *update {
		if err := os.WriteFile(golden, []byte(out.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	stored, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	want(t, "found", strings.Split(out.String(), "\n"), strings.Split(string(stored), "\n"))
}
