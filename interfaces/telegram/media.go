package telegram

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/url"
	"path"
	"strings"

	tgbotapi "github.com/go-telegram-bot-api/telegram-bot-api/v5"

	"synthbot/core"
	"synthbot/core/markdown"
)

// media is what the photo and document actions send: exactly one of URL, Ref,
// Content and Data says which file.
type media struct {
	URL     string `json:"url"`
	Ref     string `json:"ref"`
	Content string `json:"content"` // a text
	Data    []byte `json:"data"`    // base64
	Name    string `json:"name"`
	Caption string `json:"caption"`
	text
}

const maxUpload = 10 << 20

func (d *Driver) media(call core.Call) (media, target, error) {
	var m media
	if err := payload(call, &m); err != nil {
		return m, target{}, err
	}
	to, err := d.target(call, m.Path)
	if err != nil {
		return m, to, err
	}
	given := 0
	for _, is := range []bool{m.URL != "", m.Ref != "", m.Content != "", len(m.Data) > 0} {
		if is {
			given++
		}
	}
	switch {
	case given != 1:
		err = core.Errorf(core.Invalid, "say which file, in exactly one way: url, ref, content or data")
	case m.URL != "" && !fetchable(m.URL):
		err = core.Errorf(core.Invalid, "url: it must be a public https address")
	case len(m.Content)+len(m.Data) > maxUpload:
		err = core.Errorf(core.Invalid, "the file is larger than %d bytes", maxUpload)
	default:
		_, err = d.keyboard(to.spot.chat, m.Buttons)
	}
	return m, to, err
}

// fetchable refuses addresses that a server of one's own might reach and the
// outside world not.
func fetchable(address string) bool {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "https" || u.User != nil || !linkable(address) {
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

func (d *Driver) checkMedia(_ context.Context, call core.Call) error {
	_, _, err := d.media(call)
	return err
}

func (d *Driver) sendPhoto(ctx context.Context, call core.Call) (core.Result, error) {
	return d.sendMedia(ctx, call, "photo", "sendPhoto", "picture.png")
}

func (d *Driver) sendDocument(ctx context.Context, call core.Call) (core.Result, error) {
	return d.sendMedia(ctx, call, "document", "sendDocument", "file.txt")
}

// sendMedia sends a file with its caption. What the caption cannot hold follows
// as messages.
func (d *Driver) sendMedia(ctx context.Context, call core.Call, kind, method, fallback string) (core.Result, error) {
	m, to, err := d.media(call)
	if err != nil {
		return core.Result{}, err
	}
	list := []part{{}}
	if speaks(visible(m.Caption)) {
		list = parts(m.Caption, maxCaption)
	}
	file := m.file(kind, fallback)
	said := strings.TrimSpace(fmt.Sprintf("[%s %s] %s", kind, m.title(fallback), list[0].source))
	err = call.Parts.Send(ctx, 1, core.Sent{Path: to.path, Text: said}, func(ctx context.Context, _ string) (string, error) {
		params, err := d.mediaParams(to, m, len(list) == 1)
		if err != nil {
			return "", err
		}
		r := request{method: method, params: params, files: []tgbotapi.RequestFile{file}, chat: to.spot.chat, rank: rank(m.Priority)}
		return d.sent(to, r, func(r request) (json.RawMessage, error) {
			if list[0].html == "" {
				return d.do(ctx, r)
			}
			return d.styled(ctx, r, "caption", list[0])
		})
	})
	if err != nil || len(list) == 1 {
		return core.Result{}, err
	}
	m.ReplyTo = 0
	return core.Result{}, d.sendParts(ctx, call, to, m.text, list[1:], 2)
}

func (d *Driver) mediaParams(to target, m media, last bool) (tgbotapi.Params, error) {
	params := to.params()
	params.AddBool("disable_notification", m.Silent)
	replyTo(params, m.ReplyTo)
	if !last {
		return params, nil
	}
	markup, err := d.keyboard(to.spot.chat, m.Buttons)
	params.AddNonEmpty("reply_markup", markup)
	return params, err
}

// file is what travels, in the way that was chosen.
func (m *media) file(kind, fallback string) tgbotapi.RequestFile {
	f := tgbotapi.RequestFile{Name: kind}
	switch {
	case m.URL != "":
		f.Data = tgbotapi.FileURL(m.URL)
	case m.Ref != "":
		f.Data = tgbotapi.FileID(m.Ref)
	case m.Content != "":
		f.Data = tgbotapi.FileBytes{Name: m.title(fallback), Bytes: []byte(m.Content)}
	default:
		f.Data = tgbotapi.FileBytes{Name: m.title(fallback), Bytes: m.Data}
	}
	return f
}

// title is the file's name.
func (m *media) title(fallback string) string {
	name := path.Base("/" + strings.ReplaceAll(visible(m.Name), "\\", "/"))
	if u, err := url.Parse(m.URL); m.Name == "" && err == nil && m.URL != "" {
		name = path.Base("/" + u.Path)
	}
	if name = oneLine(cut(name, 128)); name == "" || name == "/" || name == "." {
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

func (d *Driver) question(call core.Call) (question, target, error) {
	var q question
	if err := payload(call, &q); err != nil {
		return q, target{}, err
	}
	to, err := d.target(call, q.Path)
	if err != nil {
		return q, to, err
	}
	q.Question = visible(q.Question)
	if n := markdown.UTF16(q.Question); !speaks(q.Question) || n > 300 {
		return q, to, core.Errorf(core.Invalid, "question: between 1 and 300 characters are possible")
	}
	if len(q.Options) < 2 || len(q.Options) > 12 {
		return q, to, core.Errorf(core.Invalid, "options: between 2 and 12 are possible")
	}
	for i, o := range q.Options {
		q.Options[i] = visible(o)
		if n := markdown.UTF16(q.Options[i]); !speaks(q.Options[i]) || n > 100 {
			return q, to, core.Errorf(core.Invalid, "options[%d]: between 1 and 100 characters are possible", i)
		}
	}
	return q, to, nil
}

func (d *Driver) checkPoll(_ context.Context, call core.Call) error {
	_, _, err := d.question(call)
	return err
}

func (d *Driver) sendPoll(ctx context.Context, call core.Call) (core.Result, error) {
	q, to, err := d.question(call)
	if err != nil {
		return core.Result{}, err
	}
	var options []map[string]string
	for _, o := range q.Options {
		options = append(options, map[string]string{"text": o})
	}
	data, err := json.Marshal(options)
	if err != nil {
		return core.Result{}, err
	}
	params := to.params()
	params["question"], params["options"] = q.Question, string(data)
	params.AddBool("allows_multiple_answers", q.Multiple)
	params.AddBool("disable_notification", q.Silent)
	if q.Anonymous != nil && !*q.Anonymous {
		params["is_anonymous"] = "false"
	}
	replyTo(params, q.ReplyTo)
	said := "[poll: " + q.Question + ": " + strings.Join(q.Options, " | ") + "]"
	err = call.Parts.Send(ctx, 1, core.Sent{Path: to.path, Text: said}, func(ctx context.Context, _ string) (string, error) {
		r := request{method: "sendPoll", params: params, chat: to.spot.chat}
		return d.sent(to, r, func(r request) (json.RawMessage, error) { return d.do(ctx, r) })
	})
	return core.Result{}, err
}
