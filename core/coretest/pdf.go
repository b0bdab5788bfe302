package coretest

import (
	"bytes"
	"compress/zlib"
	"fmt"
	"io"
	"strings"
)

// PDF returns a PDF of one page with a line of text.
func PDF(line string) []byte {
	content := "BT /F1 12 Tf 72 720 Td (" + line + ") Tj ET"
	return pdf(fmt.Sprintf("<< /Length %d >>\nstream\n%s\nendstream", len(content), content))
}

// PackedPDF returns a PDF of one page with a compressed text, which is repeated so many times
// that it is large when it is decompressed.
func PackedPDF(text string, times int) []byte {
	var packed bytes.Buffer
	z := zlib.NewWriter(&packed)
	_, _ = io.WriteString(z, "BT /F1 12 Tf 72 720 Td [") // a buffer takes all
	chunk := []byte(strings.Repeat("("+text+")1 ", 1000))
	for range times / 1000 {
		_, _ = z.Write(chunk)
	}
	_, _ = io.WriteString(z, "] TJ ET")
	_ = z.Close()
	return pdf(fmt.Sprintf("<< /Length %d /Filter /FlateDecode >>\nstream\n%s\nendstream", packed.Len(), packed.String()))
}

// pdf returns a PDF of one page with a content stream.
func pdf(content string) []byte {
	objects := []string{
		"<< /Type /Catalog /Pages 2 0 R >>",
		"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
		"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Resources << /Font << /F1 5 0 R >> >> /Contents 4 0 R >>",
		content,
		"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>",
	}
	var b bytes.Buffer
	b.WriteString("%PDF-1.4\n")
	offsets := make([]int, len(objects))
	for i, o := range objects {
		offsets[i] = b.Len()
		fmt.Fprintf(&b, "%d 0 obj\n%s\nendobj\n", i+1, o)
	}
	xref := b.Len()
	fmt.Fprintf(&b, "xref\n0 %d\n0000000000 65535 f \n", len(objects)+1)
	for _, o := range offsets {
		fmt.Fprintf(&b, "%010d 00000 n \n", o)
	}
	fmt.Fprintf(&b, "trailer\n<< /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n", len(objects)+1, xref)
	return b.Bytes()
}
