package discord

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode"

	"synthbot/core"
	"synthbot/core/markdown"
)

// Bounds of the platform.
const (
	maxEmbeds     = 10
	maxButtons    = 25
	rowButtons    = 5
	maxSuggestion = 75 // bytes
	maxCustom     = 100
	maxFileSize   = 10 << 20
	nonceAge      = 2 * time.Minute // how long the platform certainly knows a nonce
)

const flagSilent = 1 << 12

// nobody keeps a message from pinging anybody at all.
func nobody() map[string]any { return map[string]any{"parse": []string{}} }

// pings lets a reply ping the person replied to, and nobody else.
func pings(reply bool) map[string]any {
	m := nobody()
	if reply {
		m["replied_user"] = true
	}
	return m
}

// say is the payload of the message action.
type say struct {
	Text     string     `json:"text"`
	Path     core.Path  `json:"interface_path"`
	ReplyTo  messageID  `json:"reply_to_message_id"`
	Embeds   []sayEmbed `json:"embeds"`
	Buttons  []button   `json:"buttons"`
	Suggest  []string   `json:"suggestions"`
	For      string     `json:"buttons_for"`
	Silent   bool       `json:"silent"`
	Priority string     `json:"priority"`
}

type sayEmbed struct {
	Title       string `json:"title,omitempty"`
	Description string `json:"description,omitempty"`
	URL         string `json:"url,omitempty"`
	Color       int    `json:"color,omitempty"`
	Fields      []struct {
		Name   string `json:"name"`
		Value  string `json:"value"`
		Inline bool   `json:"inline,omitempty"`
	} `json:"fields,omitempty"`
}

type button struct {
	Label string `json:"label"`
	Data  string `json:"data"`
	URL   string `json:"url"`
	Style string `json:"style"`
}

// outgoing is one message as the platform takes it.
type outgoing struct {
	Content    string           `json:"content,omitempty"`
	Nonce      string           `json:"nonce,omitempty"`
	Enforce    bool             `json:"enforce_nonce,omitempty"`
	Embeds     []sayEmbed       `json:"embeds,omitempty"`
	Components []any            `json:"components,omitempty"`
	Mentions   map[string]any   `json:"allowed_mentions"`
	Reference  map[string]any   `json:"message_reference,omitempty"`
	Flags      int              `json:"flags,omitempty"`
	Poll       any              `json:"poll,omitempty"`
	Files      []map[string]any `json:"attachments,omitempty"`

	files []upload
	text  string // what joins the history
}

// read reads a call's payload and finds its channel.
func (d *Driver) read(call core.Call, into any, path *core.Path) (channel string, err error) {
	if err := json.Unmarshal(call.Payload, into); err != nil {
		return "", &core.Error{Kind: core.Invalid, Text: "the payload does not fit the schema", Err: err}
	}
	if path.IsZero() {
		*path = call.Path
	}
	if channel, err = d.channelOf(*path); err != nil {
		return "", err
	}
	return channel, d.targets.refused(channel)
}

// channelOf is the channel that a path of ours names.
func (d *Driver) channelOf(path core.Path) (string, error) {
	e := path.Elements()
	if len(e) < 3 || len(e) > 4 || e[0] != d.name || path.IsPerson() {
		return "", core.Errorf(core.Invalid, "%s is no place of %s: write %s/<guild>/<channel>, or leave interface_path out", path, d.name, d.name)
	}
	return e[len(e)-1], nil
}

// messageID is an id of the platform, which models write as a number at times.
type messageID string

// UnmarshalJSON reads a text or a number.
func (m *messageID) UnmarshalJSON(text []byte) error {
	var n json.Number
	if err := json.Unmarshal(text, &n); err == nil {
		*m = messageID(n)
		return nil
	}
	var s string
	err := json.Unmarshal(text, &s)
	*m = messageID(strings.TrimSpace(s))
	return err
}

// checkMessage says whether a message makes sense before anything is sent.
func (d *Driver) checkMessage(_ context.Context, call core.Call) error {
	var s say
	if _, err := d.read(call, &s, &s.Path); err != nil {
		return err
	}
	_, err := d.compose(call, &s)
	return err
}

// sendMessage carries the message action out: its parts in order, none twice.
func (d *Driver) sendMessage(ctx context.Context, call core.Call) (core.Result, error) {
	var s say
	channel, err := d.read(call, &s, &s.Path)
	if err != nil {
		return core.Result{}, err
	}
	list, err := d.compose(call, &s)
	if err != nil {
		return core.Result{}, err
	}
	return core.Result{}, d.deliver(ctx, call, s.Path, channel, list, priority(s.Priority))
}

func priority(name string) int {
	switch name {
	case "high":
		return high
	case "low":
		return low
	}
	return normal
}

// compose makes the messages that an action needs; the same payload always
// makes the same ones.
func (d *Driver) compose(call core.Call, s *say) ([]outgoing, error) {
	text := strings.TrimSpace(strings.ToValidUTF8(s.Text, "\uFFFD"))
	texts := parts(text)
	if !visible(text) {
		text, texts = "", nil
	}
	if len(texts) == 0 && len(s.Embeds) == 0 {
		return nil, core.Errorf(core.Invalid, "text is empty: say something, or leave the action out")
	}
	var list []outgoing
	switch {
	case len(texts) > d.set.LongParts && d.set.LongAnswers == "file":
		list = []outgoing{asFile(text, texts[0])}
	case len(texts) > 50:
		return nil, core.Errorf(core.Invalid, "text is too long: %d messages would be needed", len(texts))
	default:
		for _, t := range texts {
			list = append(list, outgoing{Content: t, text: t})
		}
	}
	if len(list) == 0 {
		list = []outgoing{{}}
	}
	if len(texts) == 1 {
		list[0].text = text
	}
	first, last := &list[0], &list[len(list)-1]
	if s.ReplyTo != "" {
		first.Reference = map[string]any{"message_id": s.ReplyTo, "fail_if_not_exists": false}
	}
	var err error
	if last.Embeds, err = embeds(s.Embeds); err == nil {
		last.Components, err = components(s.buttons(), owner(call, s.For))
	}
	for i := range list {
		list[i].Mentions = pings(list[i].Reference != nil && !s.Silent)
		if s.Silent {
			list[i].Flags = flagSilent
		}
		if list[i].text == "" && len(s.Embeds) > 0 {
			list[i].text = "[embed: " + strings.TrimSpace(s.Embeds[0].Title+" "+s.Embeds[0].Description) + "]"
		}
	}
	return list, err
}

// visible reports whether a text has anything to see.
func visible(text string) bool {
	return strings.ContainsFunc(text, func(r rune) bool {
		return !unicode.IsSpace(r) && !unicode.IsControl(r) && !unicode.Is(unicode.Cf, r)
	})
}

// asFile is a very long answer as a file, with its beginning as the message.
func asFile(text, beginning string) outgoing {
	brief := markdown.Split(beginning, 300, markdown.UTF16)[0]
	return outgoing{Content: brief + "\n…", text: text, files: []upload{{"answer.md", []byte(text)}}}
}

func embeds(list []sayEmbed) ([]sayEmbed, error) {
	if len(list) > maxEmbeds {
		return nil, core.Errorf(core.Invalid, "embeds: at most %d are allowed", maxEmbeds)
	}
	total := 0
	for i := range list {
		e := &list[i]
		e.Description, e.Color = render(e.Description), min(max(e.Color, 0), 0xffffff)
		if len(e.Fields) > 25 {
			return nil, core.Errorf(core.Invalid, "embeds[%d].fields: at most 25 are allowed", i)
		}
		total += len(e.Title) + len(e.Description)
		for _, f := range e.Fields {
			total += len(f.Name) + len(f.Value)
		}
		if e.URL != "" && !webAddress(e.URL) {
			return nil, core.Errorf(core.Invalid, "embeds[%d].url: must begin with https://", i)
		}
		if markdown.UTF16(e.Title) > 256 || markdown.UTF16(e.Description) > 4096 || e.Title == "" && e.Description == "" && len(e.Fields) == 0 {
			return nil, core.Errorf(core.Invalid, "embeds[%d]: needs a title (256 characters) or a description (4096)", i)
		}
	}
	if total > 6000 {
		return nil, core.Errorf(core.Invalid, "embeds: 6000 characters are allowed in all, not %d", total)
	}
	return list, nil
}

func webAddress(text string) bool {
	u, err := url.Parse(text)
	return err == nil && (u.Scheme == "https" || u.Scheme == "http") && u.Host != ""
}

// owner is who may press the buttons of a message: who asked for it, unless
// they are for everyone or nobody asked.
func owner(call core.Call, whom string) string {
	if whom == "everyone" || call.Author.ID == "" || call.Author.Rank == core.Bot {
		return anyone
	}
	return call.Author.ID
}

// buttons are those that were asked for, and behind them one for each suggestion
// there is room for; who presses that one says it.
func (s *say) buttons() []button {
	list := s.Buttons
	for _, text := range s.Suggest {
		text = strings.Join(strings.Fields(text), " ")
		same := func(b button) bool { return b.Data == text }
		if text != "" && len(text) <= maxSuggestion && len(list) < maxButtons && !slices.ContainsFunc(list, same) {
			list = append(slices.Clip(list), button{Label: text, Data: text})
		}
	}
	return list
}

// components are rows of buttons.
func components(list []button, whom string) ([]any, error) {
	if len(list) > maxButtons {
		return nil, core.Errorf(core.Invalid, "buttons: at most %d are allowed", maxButtons)
	}
	var rows []any
	var row []any
	seen := make(map[string]bool)
	for i, b := range list {
		c, id, err := component(b, whom)
		if err != nil {
			return nil, core.Errorf(core.Invalid, "buttons[%d]: %v", i, err)
		}
		if seen[id] {
			return nil, core.Errorf(core.Invalid, "buttons[%d]: its data is another one's as well", i)
		}
		seen[id] = true
		if row = append(row, c); len(row) == rowButtons || i == len(list)-1 {
			rows = append(rows, map[string]any{"type": 1, "components": row})
			row = nil
		}
	}
	return rows, nil
}

func component(b button, whom string) (c map[string]any, id string, err error) {
	label := line(b.Label, 200)
	if label == "" || markdown.UTF16(label) > 80 {
		return nil, "", fmt.Errorf("label must have 1 to 80 characters")
	}
	if b.URL != "" {
		if !webAddress(b.URL) || len(b.URL) > 512 {
			return nil, "", fmt.Errorf("url must begin with https:// and have at most 512 characters")
		}
		return map[string]any{"type": 2, "style": 5, "label": label, "url": b.URL}, b.URL, nil
	}
	data := b.Data
	if data == "" {
		data = label
	}
	id = whom + ":" + data
	if markdown.UTF16(id) > maxCustom {
		return nil, "", fmt.Errorf("data must have at most %d characters", maxCustom-len(whom)-1)
	}
	style := map[string]int{"primary": 1, "success": 3, "danger": 4}[b.Style]
	if style == 0 {
		style = 2
	}
	return map[string]any{"type": 2, "style": style, "label": label, "custom_id": id}, id, nil
}

// deliver sends messages to a channel, in order and with nothing between them.
func (d *Driver) deliver(ctx context.Context, call core.Call, to core.Path, channel string, list []outgoing, priority int) error {
	leave, err := d.lanes.enter(ctx, channel, priority)
	if err != nil {
		return failure("the message", err)
	}
	defer leave()
	for i := range list {
		m := &list[i]
		err := call.Parts.Send(ctx, i+1, core.Sent{Path: to, Text: m.text}, func(ctx context.Context, key string) (string, error) {
			m.Nonce, m.Enforce = key, key != ""
			return d.post(ctx, call, channel, to, m)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// post sends one message. The first answer to a command takes the place of the
// sign that it is being thought about.
func (d *Driver) post(ctx context.Context, call core.Call, channel string, to core.Path, m *outgoing) (string, error) {
	if err := d.targets.refused(channel); err != nil {
		return "", err
	}
	p, ok := d.replies.take(func(p pending) bool { return p.channel == channel && p.who == call.Author.ID })
	if ok && time.Since(p.at) < replyAge {
		d.finish(ctx, channel, nil)
		if id, err := d.fulfil(ctx, p, m); err == nil {
			d.cursors.spoke(channel, d.clock())
			return id, nil
		}
	}
	if id, ok := d.finish(ctx, channel, m); ok {
		d.cursors.spoke(channel, d.clock())
		return id, nil
	}
	id, err := d.create(ctx, channel, m)
	if err != nil {
		d.mark(channel, to, err)
		var own *core.Error
		if errors.As(err, &own) {
			return "", err
		}
		return "", failure("sending a message", err)
	}
	d.cursors.spoke(channel, d.clock())
	return id, nil
}

type created struct {
	ID string `json:"id"`
}

// fulfil answers a command.
func (d *Driver) fulfil(ctx context.Context, p pending, m *outgoing) (string, error) {
	body := *m
	body.Nonce, body.Enforce, body.Reference, body.Flags = "", false, nil, 0
	var got created
	err := d.rest.do(ctx, request{
		method: "PATCH", route: "/webhooks/{}/{}/messages/@original", ids: []string{p.app, p.token}, body: &body, files: m.files, out: &got, fast: true,
	})
	return got.ID, err
}

// create puts a message into a channel, once: the platform knows the nonce for
// some minutes. Where an attempt may have worked longer ago than that, the
// channel itself is looked at first.
func (d *Driver) create(ctx context.Context, channel string, m *outgoing) (string, error) {
	q := request{method: "POST", route: "/channels/{}/messages", ids: []string{channel}, body: m, files: m.files, once: true}
	var doubt time.Time // when an attempt first may have worked
	wait := d.tempo.retry
	for try := 1; ; try++ {
		var got created
		q.out = &got
		err := d.rest.do(ctx, q)
		if err == nil {
			return got.ID, nil
		}
		if !unsure(err) || try >= maxTries || ctx.Err() != nil {
			return "", err
		}
		if doubt.IsZero() {
			doubt = time.Now()
		}
		if !sleep(ctx, jitter(wait)) {
			return "", err
		}
		wait = min(2*wait, 20*time.Second)
		if time.Since(doubt) > nonceAge {
			if id := d.look(ctx, channel, m.Content, doubt); id != "" {
				return id, nil
			}
			doubt = time.Now()
		}
	}
}

// unsure reports whether a request that failed may have worked all the same.
func unsure(err error) bool {
	var api *apiError
	if errors.As(err, &api) {
		return api.status >= 500
	}
	return !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded)
}

// look finds our own text among a channel's latest messages.
func (d *Driver) look(ctx context.Context, channel, text string, since time.Time) string {
	var page []message
	err := d.rest.do(ctx, request{method: "GET", route: "/channels/{}/messages", ids: []string{channel}, query: url.Values{"limit": {"50"}}, out: &page})
	if err != nil {
		return ""
	}
	self, _ := d.book.me()
	for i := range page {
		m := &page[i]
		if m.Author != nil && m.Author.ID == self.ID && m.Content == text && m.Time.After(since.Add(-time.Minute)) {
			return m.ID
		}
	}
	return ""
}

// compact is a value as JSON that a model can read.
func compact(v any) json.RawMessage {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(v)
	return bytes.TrimSpace(b.Bytes())
}
