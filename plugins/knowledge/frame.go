package knowledge

import (
	"context"
	"strings"
	"unicode"

	"synthbot/core/txt"
	"synthbot/plugins/knowledge/cut"
)

// frame is what frames the documents of a source: headers, footers and navigation, as framing has
// them.
type frame map[string]bool

const (
	framingMost  = 800 // bytes of a block that may frame others
	frameSample  = 64  // documents that are compared
	frameLeast   = 3   // of them have the block
	frameOneIn   = 5   // and one in so many
	frameLetters = 3   // that a block has, at least
)

// framing is a block of a text as it is compared: page numbers and dates do not count. It is "" for
// what is too long, or no text.
func framing(text string) string {
	if len(text) > framingMost {
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

// frames finds the blocks that many documents of the source have. The first document that has one
// keeps it, so that it is found there. PDFs take too long to be read for this.
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
			continue // it is reported when it is read for the index
		}
		read++
		found := make(frame)
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
		if n < max(frameLeast, read/frameOneIn) {
			delete(keepers, block)
		}
	}
	return keepers
}

// drops is what is left out of a document.
func (r *sourceReader) drops(name string) func(block string) bool {
	return func(block string) bool {
		keeper, framed := r.framed[framing(block)]
		return framed && keeper != name
	}
}
