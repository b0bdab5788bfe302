package discord

import (
	"cmp"
	"context"
	"net/http"
	"net/url"
	"path"
	"strings"

	"synthbot/core"
	"synthbot/core/markdown"
	"synthbot/core/txt"
	"synthbot/interfaces/discord/markup"
	"synthbot/interfaces/discord/rest"
)

const (
	maxFileSize = 10 << 20
	maxAlt      = 1024 // UTF-16 units
)

// restParts is how many messages the rest of a caption may need. They are the parts after
// n*restParts of the step, and so do not clash with its other parts.
const restParts = 256

// SendFile implements core.FileSender. A long caption continues in further messages. A sound with
// a waveform and no caption is sent as a voice message.
func (d *Driver) SendFile(ctx context.Context, parts core.Deliveries, n int, what core.Sent, f core.Upload) error {
	channel, err := d.checkedChannel(ctx, what.Path)
	if err != nil {
		return err
	}
	list := fileMessages(what.Text, f)
	switch {
	case len(f.Data) == 0:
		return core.Errorf(core.Broken, "the file %q is empty", f.Name)
	case len(f.Data) > maxFileSize:
		return core.Errorf(core.Broken,
			"the file %q has %d MB, and Discord allows %d", f.Name, len(f.Data)>>20, maxFileSize>>20)
	case len(list) > maxMessages:
		return core.Errorf(core.Invalid, "the caption is too long")
	}
	list[0].number = n
	if len(list) > 1 {
		list[1].number = n*restParts + 1
	}
	return d.deliver(ctx, parts, destination{channel: channel, place: what.Path}, list, priorityNormal)
}

// fileMessages returns the messages for a file and its caption. In the history, the first one
// says what kind of file it is.
func fileMessages(caption string, f core.Upload) []outgoing {
	base := path.Base(strings.ReplaceAll(f.Name, `\`, "/"))
	name := cmp.Or(short(strings.Trim(unfitCharacters().ReplaceAllString(base, "_"), "._"), 80), "file.txt")
	alt := shorten(line(f.Alt, 4*maxAlt), maxAlt)
	kinds := map[core.Media]string{core.MediaImage: "picture", core.MediaAudio: "sound", core.MediaVideo: "video"}
	kind, said := cmp.Or(kinds[f.Kind], "file"), cmp.Or(alt, name)
	texts := []string{""}
	if txt.HasVisible(caption) {
		texts = markup.Messages(caption)
	}
	list := make([]outgoing, len(texts))
	for i, t := range texts {
		list[i] = outgoing{Content: t, Mentions: noMentions(), text: t}
	}
	first := &list[0]
	if len(list) == 1 {
		first.text = caption
	}
	first.text = strings.TrimSpace(first.text + "\n[" + kind + ": " + said + "]")
	first.files = []core.Upload{{Name: name, Data: f.Data, MIME: f.MIME}}
	opus := f.Kind == core.MediaAudio && f.MIME == "audio/ogg" && f.Length > 0 && len(f.Waveform) > 0
	switch {
	case opus && !txt.HasVisible(caption): // a voice message has no text
		first.Flags, first.text = flagVoice, "[voice message]"
		first.Files = []map[string]any{{
			"id": 0, "filename": name, "duration_secs": f.Length.Seconds(), "waveform": f.Waveform, // as base64
		}}
	case alt != "":
		first.Files = []map[string]any{{"id": 0, "filename": name, "description": alt}}
	}
	return list
}

// shorten shortens a text visibly to so many UTF-16 units.
func shorten(text string, units int) string {
	if markdown.UTF16(text) <= units {
		return text
	}
	return markdown.Split(text, units-1, markdown.UTF16)[0] + "…"
}

var unfitCharacters = txt.Pattern(`[^\pL\pN._-]+`)

// refreshed requests a new address of a file, because the signatures of addresses expire.
func (a *account) refreshed(ctx context.Context, address string) (fresh string, ok bool) {
	var answer struct {
		URLs []struct {
			Fresh string `json:"refreshed"`
		} `json:"refreshed_urls"`
	}
	body := map[string]any{"attachment_urls": []string{address}}
	q := rest.Request{Method: "POST", Route: "/attachments/refresh-urls", Body: body, Out: &answer}
	if a.rest.Do(ctx, q) != nil || len(answer.URLs) == 0 {
		return "", false
	}
	return a.set.cdn.String() + fileRef(answer.URLs[0].Fresh), true
}

// Fetch implements core.Fetcher. It fetches files only from cdn_url.
func (d *Driver) Fetch(ctx context.Context, a core.Attachment, max int64) ([]byte, error) {
	ref, err := url.Parse(a.Ref)
	if err != nil || ref.IsAbs() || ref.Host != "" || !strings.HasPrefix(ref.Path, "/") ||
		strings.Contains(ref.Path, "..") {
		return nil, core.Errorf(core.Invalid, "the address of the file %q is missing or invalid", a.Name)
	}
	address := d.set.cdn.String() + ref.RequestURI()
	data, status, err := d.rest.Download(ctx, address, max)
	if err == nil && (status == http.StatusForbidden || status == http.StatusNotFound) {
		if fresh, ok := d.refreshed(ctx, address); ok {
			data, status, err = d.rest.Download(ctx, fresh, max)
		}
	}
	switch {
	case err != nil:
		return nil, rest.Failure("fetching the file", err)
	case status != http.StatusOK:
		return nil, rest.Failure("fetching the file", &rest.Error{Route: "file", Status: status})
	case int64(len(data)) > max:
		return nil, core.Errorf(core.Invalid, "the file %q is larger than %d bytes", a.Name, max)
	}
	return data, nil
}
