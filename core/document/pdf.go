package document

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	pdflib "github.com/ledongthuc/pdf"
)

// maxPages is how many pages of a PDF are read.
const maxPages = 100

// PDFText returns the text of a PDF, of its first pages. The parser trusts
// files more than it should: it may run for ever and take all memory, so this
// belongs into a process of its own, with limits and a time (see the hidden
// command pdf-text). It does not panic.
func PDFText(data []byte) (text string, err error) {
	defer func() {
		r := recover()
		if r != nil {
			err = fmt.Errorf("pdf: the parser gave up: %v", r)
		}
	}()
	r, err := pdflib.NewReader(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		return "", fmt.Errorf("pdf: %w", err)
	}
	var b strings.Builder
	fonts := make(map[string]*pdflib.Font)
	for n := 1; n <= min(r.NumPage(), maxPages) && b.Len() < 8*MaxText; n++ {
		page := r.Page(n)
		if page.V.IsNull() {
			continue
		}
		words, err := page.GetPlainText(fonts)
		if err != nil {
			continue // the other pages may be better
		}
		b.WriteString(strings.TrimSpace(words) + "\n\n")
	}
	text = strings.TrimSpace(strings.ToValidUTF8(b.String(), string(utf8.RuneError)))
	if text == "" {
		return "", errors.New("pdf: no text in it (perhaps it was scanned)")
	}
	return text, nil
}
