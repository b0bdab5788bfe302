// Package document reads foreign files: what users attach to messages (text files, PDFs, pictures, sounds),
// and web pages. It limits size, number and time, and does not trust what a file says about itself. It does
// not fetch anything by itself.
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
	maxFiles = 4 // files of each kind
	// MaxText is how many characters of one file's text are kept.
	MaxText = 20000
)

// Options configure Open.
type Options struct {
	// Fetch returns a file's content. It fails if that is longer than max bytes. It may be called concurrently.
	Fetch func(ctx context.Context, place core.Path, a core.Attachment, max int64) ([]byte, error)
	// PDF returns the text of a PDF. It must return when ctx ends, even if the file makes the parser hang.
	// Nil: PDFs are not read.
	PDF             func(ctx context.Context, data []byte) (string, error)
	Vision, Hearing bool // an engine accepts pictures, or sounds
	Log             *slog.Logger
}

// Open reads the files of a message. It blocks until all are read or ctx ends. Files that cannot be read are
// left out, and logged without their names.
func Open(ctx context.Context, o Options, place core.Path, files []core.Attachment) llm.Contents {
	r := &reading{Options: o, place: place, content: llm.Contents{
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

type kind int

const (
	none kind = iota
	text
	pdf
	picture
	sound
)

// limits are the most bytes of one file.
var limits = [...]int64{text: 1 << 20, pdf: 10 << 20, picture: 5 << 20, sound: 10 << 20}

// kind returns how a file is read, by what the platform says about it.
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
	case isText(mime, a.Name):
		k = text
	}
	if a.Size > limits[k] {
		return none
	}
	return k
}

type reading struct {
	Options
	place core.Path

	mu      sync.Mutex
	content llm.Contents
}

func (r *reading) read(ctx context.Context, k kind, a core.Attachment) error {
	data, err := r.Fetch(ctx, r.place, a, limits[k])
	if err != nil {
		return err
	}
	if len(data) == 0 || int64(len(data)) > limits[k] {
		return errors.New("the file is empty, or larger than the platform said")
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
			err = errors.New("not a picture format that models support")
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

var pictureTypes = []string{"image/jpeg", "image/png", "image/gif", "image/webp"}
