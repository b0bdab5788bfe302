package discord

import (
	"context"
	"path"
	"regexp"
	"strings"

	"synthbot/core"
	"synthbot/core/markdown"
)

var _ core.Carrier = (*Driver)(nil)

// Bounds of files.
const (
	maxFileSize = 10 << 20
	maxAlt      = 1024 // UTF-16 units
)

// Carry sends a file with its caption. A caption that is too long for one
// message is shortened, visibly; what a picture shows becomes its description.
func (d *Driver) Carry(ctx context.Context, parts core.Parts, n int, what core.Sent, f core.Upload) error {
	channel, err := d.channelOf(what.Path)
	if err != nil {
		return err
	}
	switch {
	case len(f.Data) == 0:
		return core.Errorf(core.Broken, "the file %q is empty", f.Name)
	case len(f.Data) > maxFileSize:
		return core.Errorf(core.Broken, "the file %q has %d MB, and Discord takes %d", f.Name, len(f.Data)>>20, maxFileSize>>20)
	}
	leave, err := d.lanes.enter(ctx, channel, normal)
	if err != nil {
		return failure("sending the file", err)
	}
	defer leave()
	return d.part(ctx, parts, n, destination{channel: channel, place: what.Path}, fileMessage(what.Text, f))
}

// fileMessage is a message that carries a file. In the history it says what kind
// of file that was.
func fileMessage(caption string, f core.Upload) *outgoing {
	name, alt := fileName(f.Name), cut(line(f.Alt, 4*maxAlt), maxAlt)
	what := map[core.Media]string{core.Image: "picture", core.Audio: "sound", core.Video: "video"}[f.Kind]
	if what == "" {
		what = "file"
	}
	said := name
	if alt != "" {
		said = alt
	}
	m := &outgoing{
		Mentions: nobody(), files: []upload{{name: name, data: f.Data, mime: f.MIME, alt: alt}},
		text: strings.TrimSpace(caption + "\n[" + what + ": " + said + "]"),
	}
	if alt != "" {
		m.Files = []map[string]any{{"id": 0, "filename": name, "description": alt}}
	}
	if visible(caption) {
		m.Content = single(caption)
	}
	return m
}

// cut shortens a text to so many UTF-16 units, visibly.
func cut(text string, units int) string {
	if markdown.UTF16(text) <= units {
		return text
	}
	return markdown.Split(text, units-1, markdown.UTF16)[0] + "…"
}

var unfit = regexp.MustCompile(`[^\pL\pN._-]+`)

// fileName makes a name that is nothing but one.
func fileName(s string) string {
	s = strings.Trim(unfit.ReplaceAllString(path.Base(strings.ReplaceAll(s, `\`, "/")), "_"), "._")
	if s = short(s, 80); s == "" {
		return "file.txt"
	}
	return s
}
