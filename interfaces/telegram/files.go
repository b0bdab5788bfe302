package telegram

import (
	"cmp"
	"context"
	"errors"
	"net"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"
	"time"

	"synthbot/core"
	"synthbot/core/txt"
	"synthbot/interfaces/telegram/botapi"
	"synthbot/interfaces/telegram/markup"
)

// The largest files, in bytes.
const (
	maxPhoto    = 10 << 20
	maxSendFile = 50 << 20
	maxContent  = 10 << 20
)

// media is the payload of the photo and document actions. Exactly one of URL, Ref and Content is set.
type media struct {
	addressed
	URL     string `json:"url"`
	Ref     string `json:"ref"`
	Content string `json:"content"` // the text of a text file
	Name    string `json:"name"`
	Caption string `json:"caption"`
}

func (m *media) check(*delivery, core.Call) error {
	given := slices.DeleteFunc([]string{m.URL, m.Ref, m.Content}, func(s string) bool { return s == "" })
	switch {
	case len(given) != 1:
		return core.Errorf(core.Invalid,
			"say which file, in exactly one way: by url or ref, or, for a document, its content")
	case m.URL != "" && !isPublicAddress(m.URL):
		return core.Errorf(core.Invalid, "url: it must be a public https address")
	case len(m.Content) > maxContent:
		return core.Errorf(core.Invalid, "the file is larger than %d bytes", maxContent)
	}
	return nil
}

// isPublicAddress reports whether an address is https and does not look like one of a local network.
func isPublicAddress(address string) bool {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "https" || u.User != nil || !markup.Linkable(address) {
		return false
	}
	host := strings.ToLower(u.Hostname())
	inside := []string{".local", ".localhost", ".internal", ".lan", ".home", ".arpa"}
	return !slices.ContainsFunc(inside, func(end string) bool { return strings.HasSuffix(host, end) }) &&
		net.ParseIP(host) == nil && strings.Trim(host, "0123456789.xabcdef") != ""
}

type form struct{ method, field, name string }

var (
	photo    = form{"sendPhoto", "photo", "picture.png"}
	textFile = form{"sendDocument", "document", "file.txt"}
)

// formOf chooses the form by the file's declared kind and its MIME type.
func formOf(f *core.Upload) form {
	mime, _, _ := strings.Cut(f.MIME, ";")
	if mime == "" || mime == "application/octet-stream" {
		mime, _, _ = strings.Cut(http.DetectContentType(f.Data), ";")
	}
	switch string(f.Kind) + " " + mime {
	case "image image/gif":
		return form{"sendAnimation", "animation", "picture.gif"}
	case "image image/png", "image image/jpeg", "image image/webp":
		if len(f.Data) <= maxPhoto {
			return photo
		}
	case "audio audio/ogg", "audio application/ogg", "audio audio/opus":
		return form{"sendVoice", "voice", "voice.ogg"}
	case "audio audio/mpeg", "audio audio/mp3", "audio audio/mp4", "audio audio/m4a", "audio audio/x-m4a",
		"audio audio/aac":
		return form{"sendAudio", "audio", "audio" + path.Ext(f.Name)}
	case "video video/mp4":
		return form{"sendVideo", "video", "video.mp4"}
	}
	return form{"sendDocument", "document", "file.bin"}
}

func (d *delivery) composeMedia(f form) func(context.Context, core.Call, *media) (outgoing, error) {
	return func(_ context.Context, call core.Call, m *media) (outgoing, error) {
		name := m.Name
		if u, err := url.Parse(m.URL); name == "" && err == nil {
			name = u.Path
		}
		file := botapi.File{Name: name, Data: []byte(m.Content), Ref: cmp.Or(m.URL, m.Ref)}
		o := d.file(f, m.to, file, "", m.Caption)
		o.addressed, o.here, o.number, o.following = m.addressed, d.isPlace(call.Path, m.to), 1, 1
		return o, nil
	}
}

// restParts is how many messages the rest of a caption may need. For the file with the number n, they are numbered
// from n*restParts, so that they differ from all other parts of the step.
const restParts = 256

// SendFile implements core.FileSender. It sends a file as a picture, animation, video, sound or voice message (Ogg) if
// it is one, and otherwise as a document. What does not fit into the caption follows in further messages.
func (d *Driver) SendFile(ctx context.Context, parts core.Deliveries, n int, what core.Sent, f core.Upload) error {
	to, err := d.send.target(what.Path, "")
	switch {
	case err != nil:
		return err
	case len(f.Data) == 0:
		return core.Errorf(core.Invalid, "the file is empty")
	case len(f.Data) > maxSendFile:
		return core.Errorf(core.Invalid, "the file is larger than %d bytes", maxSendFile)
	}
	form := formOf(&f)
	o := d.send.file(form, to, botapi.File{Name: f.Name, Data: f.Data}, f.Alt, what.Text)
	o.here, o.number, o.following, o.what.Data = true, n, n*restParts, what.Data
	if form.method == "sendVoice" {
		o.params = botapi.Params{"duration": int(f.Length.Round(time.Second).Seconds())}
	}
	return d.send.send(ctx, parts, o)
}

// file returns the messages of a file: one with the file and its caption, then the rest of the caption.
func (d *delivery) file(f form, to chatKey, file botapi.File, alt, caption string) outgoing {
	file.Field = f.field
	file.Name = oneLine(cut(path.Base("/"+strings.ReplaceAll(markup.Visible(file.Name), "\\", "/")), 128))
	if file.Name == "" || file.Name == "/" || file.Name == "." {
		file.Name = f.name
	}
	parts := []markup.Part{{}}
	if txt.HasVisible(markup.Visible(caption)) {
		parts = markup.Parts(caption, markup.MaxCaption)
	}
	shown := "[" + f.field + " " + file.Name
	alt = oneLine(alt)
	if alt != "" {
		shown += ": " + alt
	}
	shown = strings.TrimSpace(shown + "] " + parts[0].Source)
	return outgoing{
		addressed: addressed{to: to}, method: f.method, files: []botapi.File{file}, parts: parts,
		what: core.Sent{Path: d.path(to), Text: shown},
	}
}

// Fetch implements core.Fetcher. It returns the content of an attachment of this driver. A file of more than most bytes
// or Config.MaxFile is an error. It only reads files of the Bot API server, for at most ten times Config.Timeout.
func (d *Driver) Fetch(ctx context.Context, a core.Attachment, most int64) ([]byte, error) {
	most = min(most, cmp.Or(d.opt.Config.MaxFile, 20<<20))
	tooLarge := core.Errorf(core.Invalid, "the file is larger than %d bytes", most)
	switch {
	case a.Ref == "":
		return nil, core.Errorf(core.Broken, "the file does not exist")
	case a.Size > most:
		return nil, tooLarge
	}
	var f struct {
		Path string `json:"file_path"`
		Size int64  `json:"file_size"`
	}
	params := botapi.Params{"file_id": a.Ref}
	err := d.api.Do(ctx, &botapi.Request{Method: "getFile", Params: params, Repeatable: true, Result: &f})
	switch {
	case botapi.Says(err, "file is too big"), f.Size > most:
		return nil, tooLarge
	case err != nil:
		return nil, explain(err)
	case f.Path == "":
		return nil, core.Errorf(core.Broken, "the file no longer exists")
	}
	data, err := d.api.File(ctx, f.Path, d.opt.Config.FilesDir, most)
	switch {
	case errors.Is(err, botapi.ErrTooLarge):
		return nil, tooLarge
	case errors.Is(err, botapi.ErrNoFile):
		return nil, &core.Error{Kind: core.Broken, Text: "the file no longer exists", Err: err}
	case err != nil:
		return nil, explain(err)
	}
	return data, nil
}
