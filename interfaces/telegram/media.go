package telegram

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"net"
	"net/url"
	"path"
	"slices"
	"strings"

	"synthbot/core"
	"synthbot/core/markdown"
	"synthbot/interfaces/telegram/botapi"
	"synthbot/interfaces/telegram/markup"
)

// media is what the photo and document actions send: exactly one of URL, Ref and
// Content says which file.
type media struct {
	URL     string `json:"url"`
	Ref     string `json:"ref"`
	Content string `json:"content"` // a text
	Name    string `json:"name"`
	Caption string `json:"caption"`
	Path    string `json:"interface_path"`
	ReplyTo anyID  `json:"reply_to_message_id"`
	Silent  bool   `json:"silent"`
}

const maxUpload = 10 << 20

func (c *catalogue) media(call core.Call) (media, target, error) {
	var m media
	if err := payload(call, &m); err != nil {
		return m, target{}, err
	}
	to, err := c.send.target(call, m.Path)
	if err != nil {
		return m, to, err
	}
	given := slices.DeleteFunc([]string{m.URL, m.Ref, m.Content}, func(s string) bool { return s == "" })
	switch {
	case len(given) != 1:
		err = core.Errorf(core.Invalid,
			"say which file, in exactly one way: by url or ref, or, for a document, its content")
	case m.URL != "" && !fetchable(m.URL):
		err = core.Errorf(core.Invalid, "url: it must be a public https address")
	case len(m.Content) > maxUpload:
		err = core.Errorf(core.Invalid, "the file is larger than %d bytes", maxUpload)
	}
	return m, to, err
}

// fetchable refuses addresses that only a server in the same network may reach.
func fetchable(address string) bool {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "https" || u.User != nil || !markup.Linkable(address) {
		return false
	}
	host := strings.ToLower(u.Hostname())
	for _, inside := range []string{".local", ".localhost", ".internal", ".lan", ".home", ".arpa"} {
		if strings.HasSuffix(host, inside) {
			return false
		}
	}
	return net.ParseIP(host) == nil && strings.Trim(host, "0123456789.xabcdef") != ""
}

func (c *catalogue) sendPhoto(ctx context.Context, call core.Call, to target, m media) error {
	return c.sendMedia(ctx, call, to, m, photo)
}

func (c *catalogue) sendDocument(ctx context.Context, call core.Call, to target, m media) error {
	return c.sendMedia(ctx, call, to, m, textFile)
}

// sendMedia sends a file in that form with its caption. What the caption cannot hold
// follows as messages.
func (c *catalogue) sendMedia(ctx context.Context, call core.Call, to target, m media, f form) error {
	list, title := captions(m.Caption), m.title(f.name)
	file := botapi.File{Field: f.field, Name: title, Data: []byte(m.Content), Ref: cmp.Or(m.URL, m.Ref)}
	send := attached{method: f.method, file: file, caption: list[0], params: to.params(),
		here: c.send.same(call.Path, to)}
	send.params.AddTrue("disable_notification", m.Silent)
	c.send.replyTo(send.params, to, m.ReplyTo)
	what := core.Sent{Path: to.path, Text: shownFile(f.noun, title, "", list[0].Source)}
	return core.SendAll(len(list), func(i int) error {
		if i == 0 {
			return c.send.part(ctx, call.Deliveries, 1, what, c.send.attach(to, send))
		}
		return c.send.sendPart(ctx, call, to, text{Silent: m.Silent}, list, i, 1+i)
	})
}

// captions splits the caption of a file: the first part is short.
func captions(text string) []markup.Part {
	if !markup.HasVisible(markup.Visible(text)) {
		return []markup.Part{{}}
	}
	return markup.Parts(text, markup.MaxCaption)
}

// shownFile is a file in the history.
func shownFile(kind, name, alt, caption string) string {
	said := "[" + kind + " " + name
	alt = oneLine(alt)
	if alt != "" {
		said += ": " + alt
	}
	return strings.TrimSpace(said + "] " + caption)
}

type attached struct {
	method  string
	file    botapi.File
	caption markup.Part
	params  botapi.Params
	here    bool // it goes to the place of its turn
}

// attach returns the sender of a file. It is sent as a document if the platform does not take
// it as what it is.
func (d *delivery) attach(to target, a attached) sender {
	return func(ctx context.Context, _ string) (string, error) {
		if a.here {
			if _, _, err := d.finish(ctx, to, botapi.Request{Method: a.method}, markup.Part{}, ""); err != nil {
				return "", err
			}
		}
		raw, err := d.upload(ctx, to, a)
		if aboutFile(err) && a.file.Field != "document" && a.file.Ref == "" {
			d.log.Info("sent as a document", "chat", to.key.chat, "method", a.method, "err", err)
			document := a
			document.method, document.file.Field = "sendDocument", "document"
			raw, err = d.upload(ctx, to, document)
		}
		return d.sent(to, raw, err)
	}
}

func (d *delivery) upload(ctx context.Context, to target, a attached) (json.RawMessage, error) {
	files := []botapi.File{a.file}
	r := botapi.Request{Method: a.method, Params: maps.Clone(a.params), Files: files, Chat: to.key.chat}
	if a.caption.HTML == "" {
		return d.api.Do(ctx, r)
	}
	return d.styled(ctx, r, "caption", a.caption)
}

// aboutFile reports whether a refusal is about what a file holds or may be.
func aboutFile(err error) bool {
	var e *botapi.Error
	return errors.As(err, &e) && e.Code == 400 &&
		e.Says("IMAGE_PROCESS_FAILED", "PHOTO_", "wrong type of", "wrong file", "VOICE_MESSAGES_FORBIDDEN", "VIDEO_",
			"file must be", "failed to get HTTP URL", "WEBPAGE_", "file is too big")
}

func (m *media) title(fallback string) string {
	name := m.Name
	if u, err := url.Parse(m.URL); name == "" && err == nil {
		name = u.Path
	}
	return fileName(name, fallback)
}

// fileName returns the last element of a foreign name.
func fileName(foreign, fallback string) string {
	name := path.Base("/" + strings.ReplaceAll(markup.Visible(foreign), "\\", "/"))
	name = oneLine(cut(name, 128))
	if name == "" || name == "/" || name == "." {
		return fallback
	}
	return name
}

// question is what the poll action sends.
type question struct {
	Path      string   `json:"interface_path"`
	Question  string   `json:"question"`
	Options   []string `json:"options"`
	Multiple  bool     `json:"multiple"`
	Anonymous *bool    `json:"anonymous"`
	Silent    bool     `json:"silent"`
	ReplyTo   anyID    `json:"reply_to_message_id"`
}

func (c *catalogue) question(call core.Call) (question, target, error) {
	var q question
	if err := payload(call, &q); err != nil {
		return q, target{}, err
	}
	to, err := c.send.target(call, q.Path)
	if err != nil {
		return q, to, err
	}
	q.Question = markup.Visible(q.Question)
	n := markdown.UTF16(q.Question)
	if !markup.HasVisible(q.Question) || n > 300 {
		return q, to, core.Errorf(core.Invalid, "question: between 1 and 300 characters are possible")
	}
	if len(q.Options) < 2 || len(q.Options) > 12 {
		return q, to, core.Errorf(core.Invalid, "options: between 2 and 12 are possible")
	}
	for i, o := range q.Options {
		q.Options[i] = markup.Visible(o)
		n := markdown.UTF16(q.Options[i])
		if !markup.HasVisible(q.Options[i]) || n > 100 {
			return q, to, core.Errorf(core.Invalid, "options[%d]: between 1 and 100 characters are possible", i)
		}
	}
	return q, to, nil
}

func (c *catalogue) sendPoll(ctx context.Context, call core.Call, to target, q question) error {
	var options []map[string]string
	for _, o := range q.Options {
		options = append(options, map[string]string{"text": o})
	}
	params := to.params()
	params["question"] = q.Question
	params.AddJSON("options", options)
	params.AddTrue("allows_multiple_answers", q.Multiple)
	params.AddTrue("disable_notification", q.Silent)
	if q.Anonymous != nil && !*q.Anonymous {
		params["is_anonymous"] = "false"
	}
	c.send.replyTo(params, to, q.ReplyTo)
	said := "[poll: " + q.Question + ": " + strings.Join(q.Options, " | ") + "]"
	return c.send.part(ctx, call.Deliveries, 1, core.Sent{Path: to.path, Text: said},
		func(ctx context.Context, _ string) (string, error) {
			r := botapi.Request{Method: "sendPoll", Params: params, Chat: to.key.chat}
			raw, err := c.send.api.Do(ctx, r)
			return c.send.sent(to, raw, err)
		})
}
