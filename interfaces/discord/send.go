package discord

import (
	"bytes"
	"context"
	"encoding/json"
	"regexp"
	"strings"

	"synthbot/core"
	"synthbot/interfaces/discord/rest"
)

// maxMessages is how many messages one answer may be at all.
const maxMessages = 50

// Flags of messages that are sent.
const (
	flagPlain  = 1 << 2 // no previews of links, nor any embeds
	flagSilent = 1 << 12
)

// plain is the flag of a message with these embeds.
func (s *settings) plain(embeds []sayEmbed) int {
	if s.Previews || len(embeds) > 0 {
		return 0
	}
	return flagPlain
}

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
	Poll       *sayPoll         `json:"poll,omitempty"`
	Files      []map[string]any `json:"attachments,omitempty"`

	files   []rest.File
	text    string     // what joins the history
	instead []outgoing // where no files may be
}

// read reads a call's payload and finds its channel.
func (d *Driver) read(ctx context.Context, call core.Call, into any, path *core.Path) (channel string, err error) {
	if err := json.Unmarshal(call.Payload, into); err != nil {
		return "", &core.Error{Kind: core.Invalid, Text: "the payload does not fit the schema", Err: err}
	}
	if m, ok := into.(*onMessage); ok && m.ID == "" {
		return "", core.Errorf(core.Invalid, "message_id is no message's id: that is a number")
	}
	if path.IsZero() {
		*path = call.Path
	}
	if channel, err = d.channelOf(*path); err == nil && *path != call.Path {
		err = d.stands(ctx, *path, channel)
	}
	if err != nil {
		return channel, err
	}
	at := destination{channel: channel, answers: call.Answers}
	if _, called := d.replies.find(at.gave); called {
		return channel, nil
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

// stands reports as an error that a channel is not where a path says: who may write
// to a place and below it would reach every channel by its id.
func (d *Driver) stands(ctx context.Context, path core.Path, id string) error {
	p, known := d.book.place(id)
	if !known {
		err := d.targets.refused(id)
		if err != nil {
			return err
		}
		if p, err = d.whereIs(ctx, id); err != nil {
			d.mark(id, path, &outgoing{}, err)
			return rest.Failure("writing to "+path.String(), err)
		}
	}
	if where, _, _ := d.book.path(id, p); where != path {
		return core.Errorf(core.Invalid, "there is no place %s", path)
	}
	return nil
}

// whereIs is the place of a channel that the gateway did not tell of.
func (d *Driver) whereIs(ctx context.Context, id string) (place, error) {
	if cur, known := d.cursors.get(id); known {
		return cur.place, nil
	}
	d.mu.Lock()
	p, known := d.asked[id]
	d.mu.Unlock()
	if known {
		return p, nil
	}
	var c channel
	if err := d.rest.Do(ctx, rest.Request{Method: "GET", Route: "/channels/{}", IDs: []string{id}, Out: &c}); err != nil {
		return p, err
	}
	p = place{Guild: c.Guild, Parent: c.Parent, Kind: uint8(min(max(c.Type, 0), 255))}
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.asked) >= maxDirect {
		clear(d.asked)
	}
	d.asked[id] = p
	return p, nil
}

// messageID is an id of the platform, which models write as a number at times. It
// is empty where they wrote what can be none: the platform would refuse that, or take
// it for a part of an address.
type messageID string

// UnmarshalJSON reads a text or a number.
func (m *messageID) UnmarshalJSON(text []byte) error {
	var n json.Number
	var s string
	err := json.Unmarshal(text, &n)
	if s = n.String(); err != nil {
		err = json.Unmarshal(text, &s)
	}
	if s = strings.TrimSpace(s); !snowflake.MatchString(s) {
		s = ""
	}
	*m = messageID(s)
	return err
}

var snowflake = regexp.MustCompile(`^[0-9]{1,20}$`)

// checkMessage says whether a message makes sense before anything is sent.
func (d *Driver) checkMessage(ctx context.Context, call core.Call) error {
	var s say
	if _, err := d.read(ctx, call, &s, &s.Path); err != nil {
		return err
	}
	_, err := d.compose(call, &s)
	return err
}

// sendMessage carries the message action out: its parts in order, none twice.
func (d *Driver) sendMessage(ctx context.Context, call core.Call) (core.Result, error) {
	var s say
	channel, err := d.read(ctx, call, &s, &s.Path)
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

// compact is a value as JSON that a model can read.
func compact(v any) json.RawMessage {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(v)
	return bytes.TrimSpace(b.Bytes())
}
