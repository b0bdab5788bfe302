package document

import (
	"strings"
	"testing"

	"golang.org/x/net/html"
)

func TestDeepRender(t *testing.T) {
	root := &html.Node{Type: html.ElementNode, Data: "div"}
	for n, i := root, 0; i < 100_000; i++ {
		child := &html.Node{Type: html.ElementNode, Data: "div"}
		n.AppendChild(child)
		n = child
		if i%50_000 == 300 {
			n.AppendChild(&html.Node{Type: html.TextNode, Data: "seen"})
		} else if i%50_000 == 500 {
			n.AppendChild(&html.Node{Type: html.TextNode, Data: "too deep"})
		}
	}
	if got := render(root, Style{Max: 1000}, nil); got != "seen" {
		t.Errorf("unexpected text %q", got)
	}
}

// TestHiddenByAnyAttribute: text that any attribute hides is not read, whatever the other
// attributes say.
func TestHiddenByAnyAttribute(t *testing.T) {
	for _, tag := range []string{
		`<p style="color:red" hidden>`, `<p aria-hidden="false" style="display:none">`, `<p style="color:red" aria-hidden="true">`,
		`<p class="x" style="opacity:0" id="y">`,
	} {
		p, err := ReadPage([]byte("<p>seen</p>"+tag+"OBEY ME</p>"), "", nil)
		if err != nil {
			t.Fatal(err)
		}
		text := p.Markdown(Style{Max: 1000})
		if !strings.Contains(text, "seen") || strings.Contains(text, "OBEY") {
			t.Errorf("%s: unexpected text %q", tag, text)
		}
	}
}
