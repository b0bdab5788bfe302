package document

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"unicode/utf8"

	"synthbot/core"
	"synthbot/core/coretest"
)

var (
	place = core.MustPath("room/1")
	png   = []byte("\x89PNG\r\n\x1a\n and so on")
)

func TestOpen(t *testing.T) {
	files := map[string][]byte{
		"t": []byte("hello\r\nworld"), "p": []byte("pdf"), "i": png, "v": []byte("OggS"), "big": []byte("x"), "liar": []byte("<html>"), "bin": {0, 1, 2},
	}
	fetched := make(chan string, 100)
	o := Options{
		Log: slog.New(slog.DiscardHandler), Vision: true, Hearing: true,
		Fetch: func(_ context.Context, _ core.Path, a core.Attachment, _ int64) ([]byte, error) {
			fetched <- a.Ref
			if a.Ref == "lost" {
				return nil, errors.New("not there")
			}
			return files[a.Ref], nil
		},
		PDF: func(_ context.Context, data []byte) (string, error) { return "read " + string(data), nil },
	}
	c := Open(t.Context(), o, place, []core.Attachment{
		{Kind: core.MediaFile, Name: "a.TXT", Ref: "t"},
		{Kind: core.MediaFile, Name: "a.pdf", MIME: "application/pdf", Ref: "p"},
		{Kind: core.MediaImage, Ref: "i"},
		{Kind: core.MediaAudio, MIME: "audio/ogg", Ref: "v"},
		{Kind: core.MediaFile, Name: "b.txt", Ref: "big", Size: limits[text] + 1},
		{Kind: core.MediaImage, Ref: "liar"},
		{Kind: core.MediaFile, Name: "c.txt", Ref: "bin"},
		{Kind: core.MediaFile, Name: "d.exe", Ref: "exe"},
		{Kind: core.MediaVideo, Ref: "film"},
		{Kind: core.MediaFile, Name: "e.md", Ref: "lost"},
		{Kind: core.MediaFile, Name: "f.md"},
	})
	if len(c.Texts) != 2 || c.Texts["t"] != "hello\nworld" || c.Texts["p"] != "read pdf" {
		t.Errorf("unexpected texts %q", c.Texts)
	}
	if len(c.Pictures) != 1 || c.Pictures["i"].MIME != "image/png" || len(c.Sounds) != 1 || c.Sounds["v"].MIME != "audio/ogg" {
		t.Errorf("unexpected pictures %v or sounds %v", c.Pictures, c.Sounds)
	}
	close(fetched)
	for ref := range fetched {
		if ref == "big" || ref == "exe" || ref == "film" {
			t.Errorf("%s was fetched although it is not used", ref)
		}
	}
	o.Vision, o.Hearing = false, false
	if c := Open(t.Context(), o, place, []core.Attachment{{Kind: core.MediaImage, Ref: "i"}, {Kind: core.MediaAudio, Ref: "v"}}); len(c.Pictures)+len(c.Sounds) > 0 {
		t.Errorf("files that no engine can use were fetched: %v", c)
	}
}

func TestFewFiles(t *testing.T) {
	n := make(chan int, 100)
	log := slog.New(slog.DiscardHandler)
	o := Options{Log: log, Fetch: func(context.Context, core.Path, core.Attachment, int64) ([]byte, error) {
		n <- 1
		return []byte("x"), nil
	}}
	var many []core.Attachment
	for i := range 20 {
		many = append(many, core.Attachment{Kind: core.MediaFile, Name: "a.txt", Ref: fmt.Sprint(i)})
	}
	Open(t.Context(), o, place, many)
	if len(n) != maxFiles {
		t.Errorf("%d files were fetched, want %d", len(n), maxFiles)
	}
}

func TestText(t *testing.T) {
	for in, want := range map[string]string{
		"\xEF\xBB\xBFmark":                  "mark",
		"\xFF\xFEh\x00i\x00":                "hi",
		"\xFE\xFF\x00h\x00i":                "hi",
		"caf\xE9":                           "café",
		"a\rb\r\nc\n":                       "a\nb\nc",
		"\x1b[1mbold\x1b[0m in a log\tfile": "\x1b[1mbold\x1b[0m in a log\tfile",
	} {
		if got, err := Text([]byte(in)); got != want || err != nil {
			t.Errorf("%q: unexpected text %q, %v", in, got, err)
		}
	}
	for _, in := range []string{"a\x00b", "\x93curly\x94", "\xFF\xFEx"} {
		if got, err := Text([]byte(in)); err == nil {
			t.Errorf("%q was accepted as the text %q", in, got)
		}
	}
}

func TestClip(t *testing.T) {
	if got := Clip(strings.Repeat("ä", MaxText+5)); !strings.HasSuffix(got, "\n[…5 characters cut…]") || utf8.RuneCountInString(got) > MaxText+30 {
		t.Errorf("unexpected end of the clipped text: …%s", got[len(got)-40:])
	}
	if s := strings.Repeat("ä", MaxText); Clip(s) != s {
		t.Error("a text that fits was cut")
	}
}

func TestPDFText(t *testing.T) {
	got, err := PDFText(coretest.PDF("The answer is 42."))
	if err != nil || !strings.Contains(got, "The answer is 42.") {
		t.Errorf("unexpected text %q, %v", got, err)
	}
	for _, bad := range [][]byte{nil, []byte("%PDF-1.4"), []byte("no pdf"), coretest.PDF("x")[:200]} {
		if got, err := PDFText(bad); err == nil {
			t.Errorf("%q was read as %q, want an error", bad, got)
		}
	}
}

func FuzzText(f *testing.F) {
	f.Add([]byte("hello"))
	f.Add([]byte("\xFF\xFEh\x00"))
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := Text(data)
		if err == nil && (!utf8.ValidString(s) || strings.ContainsRune(s, 0)) {
			t.Errorf("invalid text %q", s)
		}
	})
}
