package knowledge

import (
	"archive/zip"
	"bytes"
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"

	"synthbot/core"
	"synthbot/core/document"
	"synthbot/core/txt"
)

// format converts the content of a file to Markdown.
type format func(ctx context.Context, h *core.Host, data []byte) (string, error)

// formatOf returns the format of a file by its name; nil if it is not supported.
func formatOf(name string) format {
	switch strings.ToLower(path.Ext(name)) {
	case ".md", ".markdown", ".txt":
		return func(_ context.Context, _ *core.Host, data []byte) (string, error) { return document.Text(data) }
	case ".html", ".htm":
		return func(_ context.Context, _ *core.Host, data []byte) (string, error) { return readHTML(data) }
	case ".docx":
		return func(_ context.Context, _ *core.Host, data []byte) (string, error) { return readDocx(data) }
	case ".pdf":
		return func(ctx context.Context, h *core.Host, data []byte) (string, error) {
			if h.PDF == nil {
				return "", errors.New("PDFs cannot be read here")
			}
			return h.PDF(ctx, data)
		}
	}
	return nil
}

var comment = txt.Pattern(`(?s)<!--.*?-->`)

// clean removes comments and invisible characters from a text.
func clean(text string) string { return document.Clean(comment().ReplaceAllString(text, "")) }

// readHTML converts a page to Markdown, without headers, asides and navigation. Headings keep their ids as anchors.
func readHTML(data []byte) (string, error) {
	page, err := document.ReadPage(data, "", nil)
	if err != nil {
		return "", err
	}
	text := page.Markdown(document.Style{Anchors: true, Framed: true, Max: maxText})
	if text == "" {
		return "", errors.New("html: the page contains no text; perhaps scripts fill it")
	}
	if page.Title != "" && !strings.Contains("\n"+text, "\n# ") {
		text = "# " + page.Title + "\n\n" + text
	}
	return text, nil
}

const maxDocx = 32 << 20 // the maximum uncompressed size of the text of a .docx file, in bytes

// readDocx converts a .docx file to Markdown: headings, lists, tables and paragraphs (ECMA-376, WordprocessingML).
func readDocx(data []byte) (string, error) {
	archive, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		return "", fmt.Errorf("docx: %w", err)
	}
	part, err := archive.Open("word/document.xml")
	if err != nil {
		return "", fmt.Errorf("docx: %w", err)
	}
	defer part.Close()
	limited := &io.LimitedReader{R: part, N: maxDocx}
	r := docxReader{decoder: xml.NewDecoder(limited)}
	err = r.read()
	switch {
	case limited.N <= 0:
		return "", fmt.Errorf("docx: its text has more than %d MB, uncompressed", maxDocx>>20)
	case err != nil:
		return "", fmt.Errorf("docx: %w", err)
	case strings.TrimSpace(r.out.String()) == "":
		return "", errors.New("docx: the document contains no text")
	}
	return r.out.String(), nil
}

// docxReader reads the elements of a document, paragraph by paragraph.
type docxReader struct {
	decoder *xml.Decoder
	out     strings.Builder
	line    strings.Builder // the present paragraph or table cell
	prefix  string          // of the paragraph: "## ", "- "
	cells   int             // of the row so far
	tables  int             // how many tables enclose the paragraph
	visible bool            // inside of a text run
	last    string          // the prefix of the previous paragraph
}

func (r *docxReader) read() error {
	for {
		token, err := r.decoder.Token()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		switch token := token.(type) {
		case xml.StartElement:
			r.begin(&token)
		case xml.EndElement:
			r.end(token.Name.Local)
		case xml.CharData:
			if r.visible {
				r.line.Write(token)
			}
		}
	}
}

// docxHeading matches the names of the styles of headings, which depend on the language.
var docxHeading = txt.Pattern(`(?i)^(?:heading|.?berschrift|titolo|titre|t.tulo|kop)\s*([1-6])$`)

func (r *docxReader) begin(e *xml.StartElement) {
	switch e.Name.Local {
	case "t":
		r.visible = true
	case "tab":
		r.line.WriteByte(' ')
	case "br", "cr":
		r.line.WriteByte('\n')
	case "numPr":
		r.prefix = "- "
	case "tbl":
		r.tables++
	case "pStyle":
		for _, a := range e.Attr {
			level := docxHeading().FindStringSubmatch(a.Value)
			switch {
			case strings.EqualFold(a.Value, "title"):
				r.prefix = "# "
			case level != nil:
				r.prefix = strings.Repeat("#", int(level[1][0]-'0')) + " "
			}
		}
	}
}

func (r *docxReader) end(name string) {
	switch name {
	case "t":
		r.visible = false
	case "p":
		if r.tables > 0 {
			r.line.WriteByte(' ')
			return
		}
		r.paragraph()
	case "tc":
		if r.cells == 0 {
			r.out.WriteByte('|')
		}
		r.cells++
		r.out.WriteString(" " + txt.Line(r.line.String()) + " |")
		r.line.Reset()
		r.prefix = ""
	case "tr":
		r.out.WriteByte('\n')
		r.cells = 0
	case "tbl":
		r.tables--
		r.out.WriteByte('\n')
	}
}

func (r *docxReader) paragraph() {
	text := strings.TrimSpace(r.line.String())
	if text != "" {
		if r.last != r.prefix || r.prefix != "- " {
			r.out.WriteByte('\n')
		}
		if strings.HasPrefix(r.prefix, "#") {
			text = txt.Line(text)
		}
		r.out.WriteString(r.prefix + text + "\n")
		r.last = r.prefix
	}
	r.line.Reset()
	r.prefix = ""
}
