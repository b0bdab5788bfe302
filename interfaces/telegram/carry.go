package telegram

import (
	"context"
	"net/http"
	"path"
	"strconv"
	"strings"
	"time"

	"synthbot/core"
	"synthbot/interfaces/telegram/botapi"
	"synthbot/interfaces/telegram/markup"
)

var (
	_ core.Teller     = (*Driver)(nil)
	_ core.FileSender = (*Driver)(nil)
)

// Tell writes to a place, or to a user in private who has written to the bot before.
// Each message is tried again only if the platform certainly did not take it.
func (d *Driver) Tell(ctx context.Context, to core.Path, text string) error {
	s, err := chatKeyOf(d.opt.Name, to)
	if err != nil {
		return core.Errorf(core.Invalid, "%q is not a place of %s", to, d.opt.Name)
	}
	if !markup.HasVisible(markup.Visible(text)) {
		return core.Errorf(core.Invalid, "there is nothing to tell")
	}
	for _, p := range markup.Parts(text, markup.MaxText) {
		r := botapi.Request{Method: "sendMessage", Params: target{key: s}.params(), Chat: s.chat, Rank: 1, Once: true}
		if _, err := d.send.written(ctx, r, p); err != nil {
			return explain(err)
		}
	}
	return nil
}

// What the platform takes, in bytes.
const (
	maxPhoto = 10 << 20
	maxCarry = 50 << 20
)

// restParts is how many parts the rest of one caption may have. They are numbered from
// n*restParts, apart from all other parts of the step.
const restParts = 256

// SendFile sends a file as a picture, an animation, a video or a voice message (Ogg) if it
// is one, and else as a document. What does not fit into the caption follows as
// messages.
func (d *Driver) SendFile(ctx context.Context, parts core.Deliveries, n int, what core.Sent, f core.Upload) error {
	to, err := d.send.target(core.Call{Path: what.Path}, "")
	switch {
	case err != nil:
		return err
	case len(f.Data) == 0:
		return core.Errorf(core.Invalid, "the file is empty")
	case len(f.Data) > maxCarry:
		return core.Errorf(core.Invalid, "the file is larger than %d bytes", maxCarry)
	}
	form := formOf(&f)
	name := fileName(f.Name, form.name)
	list := captions(what.Text)
	send := attached{
		method: form.method, file: botapi.File{Field: form.field, Name: name, Data: f.Data}, caption: list[0],
		params: to.params(), here: true,
	}
	if form.method == "sendVoice" && f.Length > 0 {
		send.params["duration"] = strconv.Itoa(int(f.Length.Round(time.Second).Seconds()))
	}
	said := core.Sent{Path: to.path, Text: shownFile(form.noun, name, f.Alt, list[0].Source), Data: what.Data}
	return core.SendAll(len(list), func(i int) error {
		if i == 0 {
			return d.send.part(ctx, parts, n, said, d.send.attach(to, send))
		}
		return d.send.sendPart(ctx, core.Call{Path: what.Path, Deliveries: parts}, to, text{}, list, i, n*restParts+i)
	})
}

// form is how a file is sent.
type form struct{ method, field, noun, name string }

var (
	photo    = form{"sendPhoto", "photo", "photo", "picture.png"}
	textFile = form{"sendDocument", "document", "document", "file.txt"}
)

// formOf chooses the form by what the file wants to be and what it is.
func formOf(f *core.Upload) form {
	mime, _, _ := strings.Cut(f.MIME, ";")
	if mime == "" || mime == "application/octet-stream" {
		mime, _, _ = strings.Cut(http.DetectContentType(f.Data), ";")
	}
	switch string(f.Kind) + " " + mime {
	case "image image/gif":
		return form{"sendAnimation", "animation", "animation", "picture.gif"}
	case "image image/png", "image image/jpeg", "image image/webp":
		if len(f.Data) <= maxPhoto {
			return photo
		}
	case "audio audio/ogg", "audio application/ogg", "audio audio/opus":
		return form{"sendVoice", "voice", "voice", "voice.ogg"}
	case "audio audio/mpeg", "audio audio/mp3", "audio audio/mp4", "audio audio/m4a", "audio audio/x-m4a",
		"audio audio/aac":
		return form{"sendAudio", "audio", "audio", "audio" + path.Ext(f.Name)}
	case "video video/mp4":
		return form{"sendVideo", "video", "video", "video.mp4"}
	}
	return form{"sendDocument", "document", "document", "file.bin"}
}
