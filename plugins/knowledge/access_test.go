package knowledge

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"synthbot/core"
)

// TestAccess checks that no passage of a source is offered, found or cited outside of the source's places.
func TestAccess(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 8))
	paths := []string{"room", "room/1", "room/1/a", "room/2", "room/2/b", "other/1", "room/11"}
	var c Config
	for i := range 12 {
		dir := t.TempDir()
		write(t, dir, map[string]string{"d.md": fmt.Sprintf("# Topic\n\nThe canary of source%d sings about tea, boats and refunds.", i)})
		s := Source{Name: fmt.Sprintf("source%d", i), Path: dir}
		for range random.IntN(3) {
			s.Places = append(s.Places, core.MustPath(paths[random.IntN(len(paths))]))
		}
		c.Sources = append(c.Sources, s)
	}
	p := made(t, c)
	p.config.Passages, p.config.Chars = 20, 12000
	synced(t, p)
	shown := 0
	for range 300 {
		place := core.MustPath(paths[random.IntN(len(paths))])
		texts := []string{"canary", "tea boats", "refunds", "source3 canary", "sings about tea, boats and refunds"}
		text := texts[random.IntN(len(texts))]
		offered, err := p.Inject(t.Context(), core.Scene{Path: place, Text: text})
		if err != nil {
			t.Fatal(err)
		}
		found, err := p.search(t.Context(), core.Call{Path: place}, searchPayload{Query: text})
		if err != nil {
			t.Fatal(err)
		}
		all := string(offered) + string(found.Output)
		for i := range p.config.Sources {
			s := &p.config.Sources[i]
			allowed := len(s.Places) == 0 || slices.ContainsFunc(s.Places, place.Within)
			there := strings.Contains(all, fmt.Sprintf("source%d ", i)) || strings.Contains(all, s.Name+"/")
			if there && !allowed {
				t.Fatalf("a passage of %s is shown in %s: %s", s.Name, place, all)
			}
			if there {
				shown++
			}
		}
	}
	if shown < 100 {
		t.Errorf("got %d passages, too few", shown)
	}
}
