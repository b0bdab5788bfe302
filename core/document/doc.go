// Package document reads what people attach to their messages, so far as a model
// can be told of it: the text of text files and PDFs, pictures, and sounds. It
// fetches within limits of size, number and time, and trusts nothing that a file
// says of itself. It decides nothing about prompts.
package document

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"sync"

	"synthbot/core"
	"synthbot/core/llm"
)

// Limits of one message's files.
const (
	maxTextFile = 1 << 20  // bytes of a text file
	maxPDF      = 10 << 20 // bytes of a PDF
	maxPicture  = 5 << 20
	maxSound    = 10 << 20
	maxFiles    = 4     // of each kind that are read
	MaxText     = 20000 // characters of one file's text that are kept
)

// Options say where files come from and what is worth fetching.
type Options struct {
	// Fetch returns a file's content, at most max bytes; a larger one is an error.
	Fetch func(ctx context.Context, place core.Path, a core.Attachment, max int64) ([]byte, error)
	// PDF returns the text of a PDF. It must end with ctx whatever the file makes
	// the parser do. Nil: PDFs are not read.
	PDF             func(ctx context.Context, data []byte) (string, error)
	Vision, Hearing bool // an engine can see, or hear
	Log             *slog.Logger
}

// Content is what stands in files, each by its Attachment.Ref.
type Content struct {
	Texts    map[string]string
	Pictures map[string]llm.File
	Sounds   map[string]llm.File
}

// Open reads the files of a message. It blocks until all are read or ctx ends;
// what cannot be read is left out, and logged without its name.
func Open(ctx context.Context, o Options, place core.Path, files []core.Attachment) Content {
	r := &reading{Options: o, place: place, content: Content{
		Texts: make(map[string]string), Pictures: make(map[string]llm.File), Sounds: make(map[string]llm.File),
	}}
	count := make(map[kind]int)
	var all sync.WaitGroup
	for _, a := range files {
		k := o.kind(&a)
		if count[k]++; k == none || a.Ref == "" || count[k] > maxFiles {
			continue
		}
		all.Go(func() {
			if err := r.read(ctx, k, a); err != nil {
				o.Log.Warn("attachment not read", "path", place, "kind", a.Kind, "mime", a.MIME, "bytes", a.Size, "err", err)
			}
		})
	}
	all.Wait()
	return r.content
}

// kind is what a file is to us.
type kind int

const (
	none kind = iota
	text
	pdf
	picture
	sound
)

var limits = [...]int64{text: maxTextFile, pdf: maxPDF, picture: maxPicture, sound: maxSound}

// kind says what to do with a file, by what the platform says of it.
func (o *Options) kind(a *core.Attachment) kind {
	mime, _, _ := strings.Cut(strings.ToLower(a.MIME), ";")
	k := none
	switch {
	case a.Kind == core.MediaImage && o.Vision:
		k = picture
	case a.Kind == core.MediaAudio && o.Hearing:
		k = sound
	case a.Kind != core.MediaFile:
	case o.PDF != nil && (mime == "application/pdf" || mime == "" && ending(a.Name) == "pdf"):
		k = pdf
	case textual(mime, a.Name):
		k = text
	}
	if a.Size > limits[k] {
		return none
	}
	return k
}

// reading is one Open on its way.
type reading struct {
	Options
	place core.Path

	mu      sync.Mutex
	content Content
}

func (r *reading) read(ctx context.Context, k kind, a core.Attachment) error {
	data, err := r.Fetch(ctx, r.place, a, limits[k])
	if err != nil {
		return err
	}
	if len(data) == 0 || int64(len(data)) > limits[k] {
		return errors.New("empty, or larger than it was said to be")
	}
	var words string
	switch k {
	case text:
		words, err = Text(data)
	case pdf:
		words, err = r.PDF(ctx, data)
	case picture:
		mime := http.DetectContentType(data)
		if shown(mime) {
			r.keep(func(c *Content) { c.Pictures[a.Ref] = llm.File{MIME: mime, Data: data} })
			return nil
		}
		return errors.New("no picture of a kind that models know")
	case sound:
		r.keep(func(c *Content) { c.Sounds[a.Ref] = llm.File{MIME: a.MIME, Data: data} })
		return nil
	}
	if err == nil && words != "" {
		r.keep(func(c *Content) { c.Texts[a.Ref] = Clip(words) })
	}
	return err
}

func (r *reading) keep(f func(*Content)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	f(&r.content)
}

// shown reports whether models can be shown pictures of the type.
func shown(mime string) bool {
	switch mime {
	case "image/jpeg", "image/png", "image/gif", "image/webp":
		return true
	}
	return false
}
