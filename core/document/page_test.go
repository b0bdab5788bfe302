package document

import (
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
		t.Errorf("%q", got)
	}
}
