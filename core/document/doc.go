// Package document reads what users attach to their messages: the text of text files and
// PDFs, pictures, and sounds. It has limits of size, number and time, and does not trust what
// a file says about itself.
package document

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"slices"
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

// Options says where files come from and which are fetched.
type Options struct {
	// Fetch returns a file's content, at most max bytes; a larger one is an error.
	Fetch func(ctx context.Context, place core.Path, a core.Attachment, max int64) ([]byte, error)
	// PDF returns the text of a PDF. It must end with ctx, whatever the file makes the
	// parser do. Nil: PDFs are not read.
	PDF             func(ctx context.Context, data []byte) (string, error)
	Vision, Hearing bool // an engine can see, or hear
	Log             *slog.Logger
}

// Content is the content of files, by Attachment.Ref.
type Content struct {
	Texts    map[string]string
	Pictures map[string]llm.File
	Sounds   map[string]llm.File
}

// Open reads the files of a message. It blocks until all are read or ctx ends. It leaves out
// what cannot be read, and logs it without its name.
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
				o.Log.Warn("attachment not read",
					"path", place, "kind", a.Kind, "mime", a.MIME, "bytes", a.Size, "err", err)
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

// kind returns what to do with a file, by what the platform says about it.
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
	mime := a.MIME
	switch k {
	case text:
		words, err = Text(data)
	case pdf:
		words, err = r.PDF(ctx, data)
	case picture:
		mime = http.DetectContentType(data)
		if !slices.Contains(pictureTypes, mime) {
			err = errors.New("not a picture of a kind that models know")
		}
	}
	if err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case k == picture:
		r.content.Pictures[a.Ref] = llm.File{MIME: mime, Data: data}
	case k == sound:
		r.content.Sounds[a.Ref] = llm.File{MIME: mime, Data: data}
	case words != "":
		r.content.Texts[a.Ref] = Clip(words)
	}
	return nil
}

// pictureTypes are the types of pictures that models know.
var pictureTypes = []string{"image/jpeg", "image/png", "image/gif", "image/webp"}
