package knowledge

import (
	"context"
	"strings"
	"unicode"

	"synthbot/core/txt"
	"synthbot/plugins/knowledge/cut"
)

// A block frames the documents of a source, as headers, footers and navigation do, if enough of them contain it.
const (
	frameMax     = 800 // bytes of such a block
	frameSample  = 64  // how many documents are compared
	frameMin     = 3   // how many of them must contain it, at least
	frameOneIn   = 5   // and at least one in so many of them
	frameLetters = 3   // letters of such a block, at least
)

// framing normalises a block for comparison: all digits count as equal, such as in page numbers and dates. It
// returns "" for a block that is too long or has too few letters.
func framing(text string) string {
	if len(text) > frameMax {
		return ""
	}
	letters := 0
	text = strings.Map(func(r rune) rune {
		switch {
		case unicode.IsDigit(r):
			return '0'
		case unicode.IsLetter(r):
			letters++
		}
		return unicode.ToLower(r)
	}, txt.Line(text))
	if letters < frameLetters {
		return ""
	}
	return text
}

// frames finds the blocks that many documents of the source contain. It returns, for each block, the name of the
// document that keeps it, so that searches still find it once. PDFs are not compared, because reading them takes
// too long.
func (r *sourceReader) frames(ctx context.Context, files []file) (keepers map[string]string) {
	var sample []file
	for i := range files {
		if files[i].read != nil && !strings.HasSuffix(strings.ToLower(files[i].name), ".pdf") {
			sample = append(sample, files[i])
		}
	}
	step := max(len(sample)/frameSample, 1)
	count, keepers := make(map[string]int), make(map[string]string)
	read := 0
	for i := 0; i < len(sample) && ctx.Err() == nil; i += step {
		text, err := sample[i].read(ctx)
		if err != nil || len(text) > maxText {
			continue // readOne reports it
		}
		read++
		found := make(map[string]bool) // see framing
		for _, block := range cut.Blocks(clean(text)) {
			found[framing(block)] = true
		}
		delete(found, "")
		for block := range found {
			if count[block]++; count[block] == 1 {
				keepers[block] = sample[i].name
			}
		}
	}
	for block, n := range count {
		if n < max(frameMin, read/frameOneIn) {
			delete(keepers, block)
		}
	}
	return keepers
}
