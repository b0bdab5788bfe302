package document

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	pdflib "github.com/ledongthuc/pdf"
)

const maxPages = 100

// PDFText returns the text of the first 100 pages of a PDF. It does not panic, but a hostile file can make the parser
// run forever or use up the memory. Call it in a separate process with limits (see the hidden command pdf-text).
func PDFText(data []byte) (text string, err error) {
	defer func() {
		r := recover()
		if r != nil {
			err = fmt.Errorf("pdf: the parser crashed: %v", r)
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
			continue // other pages may be readable
		}
		b.WriteString(strings.TrimSpace(words) + "\n\n")
	}
	text = strings.TrimSpace(strings.ToValidUTF8(b.String(), string(utf8.RuneError)))
	if text == "" {
		return "", errors.New("pdf: it contains no text (perhaps it was scanned)")
	}
	return text, nil
}
