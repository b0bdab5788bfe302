package discord

import (
	"cmp"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"synthbot/core"
	"synthbot/interfaces/discord/rest"
)

// epoch is the Unix time from which Discord's ids count, in milliseconds.
const epoch = 1420070400000

// idTime returns when an id was created; zero if it is not an id of Discord.
func idTime(id string) time.Time {
	n, err := strconv.ParseUint(id, 10, 64)
	if err != nil || n < 1<<22 {
		return time.Time{}
	}
	return time.UnixMilli(int64(n>>22) + epoch).UTC()
}

// idAt returns the first id that could be created at t.
func idAt(t time.Time) string {
	return strconv.FormatUint(uint64(max(t.UnixMilli()-epoch, 0))<<22, 10)
}

// compareIDs compares two ids by age, the older one first.
func compareIDs(a, b string) int {
	if len(a) != len(b) {
		return len(a) - len(b)
	}
	return strings.Compare(a, b)
}

func newer(a, b string) bool { return compareIDs(a, b) > 0 }

// toCore converts a message. ok is false if it is the bot's own, a notice that nobody wrote, or empty.
func (c *cache) toCore(m *message, p place) (out core.Message, ok bool) {
	self, app := c.bot()
	own := m.Author != nil && m.Author.ID == self.ID && self.ID != "" && m.Type != messageResult
	if m.ID == "" || m.Author == nil || own || m.Webhook != "" && m.Webhook == app {
		return out, false
	}
	switch m.Type {
	case messagePlain, messageReply, messageCommand, messageMenu:
	case messageResult: // Discord names the user who started the poll as its author
		result := *m
		result.Content = ""
		m = &result
	default:
		return out, false
	}
	at, scopes, err := c.path(m.Channel, p)
	if err != nil {
		return out, false
	}
	out = core.Message{
		Path: at, ID: m.ID, Scopes: scopes, Private: p.private(), Time: m.Time.Time, Voice: m.Flags&flagVoice != 0,
	}
	if out.Time.IsZero() {
		out.Time = idTime(m.ID)
	}
	out.Locale, _ = c.locales.Get(m.Author.ID)
	out.Author = c.author(m.Author, m.Member, p)
	out.Author.Bot = out.Author.Bot || m.Webhook != "" || m.Author.System
	if m.Webhook != "" && m.Interaction == nil { // other bots' answers to commands have a webhook, too
		out.Author.Channel = core.ChannelLinked
	}
	read := c.reader(m, p.Guild)
	content, _ := splitQuotes(m.Content)
	title, said := c.postTitle(m, p), read.ownText(m, content)
	out.Text, out.Foreign = short(title+said, core.MaxText/4), read.foreign(m)
	bare := read
	bare.bare = true
	spoken := bare.ownText(m, ownWords(m.Content))
	if spoken != said {
		out.Spoken = title + " " + spoken
	}
	out.Attachments = attachments(m)
	if m.Type != messageResult {
		c.addQuote(m, p, &out)
		out.Addressed = c.addressed(m, p, self)
	}
	says := out.Text != "" || len(out.Foreign) > 0 || len(out.Attachments) > 0
	return out, says || out.Addressed != ""
}

// postTitle returns the title of a forum post if the message is the first one of the post, and so has its id.
func (c *cache) postTitle(m *message, p place) string {
	if m.ID != m.Channel || !p.thread() || p.name == "" {
		return ""
	}
	if parent, ok := c.place(p.Parent); !ok || !isForum(parent) {
		return ""
	}
	return "[post: " + line(p.name, 100) + "]\n"
}

func (c *cache) author(u *user, m *member, p place) core.Author {
	a := core.Author{ID: u.ID, Name: displayName(u, m), Bot: u.Bot, Rank: c.rank(p, u.ID, m)}
	name := line(u.Name, core.MaxName-8)
	if name != "" {
		a.Tag = "@" + name
		if u.Discr != "" && u.Discr != "0" && u.Discr != "0000" {
			a.Tag += "#" + line(u.Discr, 4)
		}
	}
	return a
}

// addQuote adds the message that m replies to, and the foreign texts of that one.
func (c *cache) addQuote(m *message, p place, out *core.Message) {
	if m.Reference == nil || m.Reference.Type != 0 || m.Reference.Message == "" {
		return
	}
	q := &core.Quote{ID: m.Reference.Message, Time: idTime(m.Reference.Message)}
	r := m.Referenced
	if r != nil {
		read := c.reader(r, p.Guild)
		q.Text = short(read.fullText(r), core.MaxQuote)
		theirs := read.forwards(r)
		if r.Author != nil && r.Author.ID == m.Author.ID {
			theirs = append(theirs, read.quotes(r)...) // the rest is the author's own
		}
		for _, o := range theirs {
			o.Text = short(o.Text, core.MaxQuote)
			out.Foreign = append(out.Foreign, o)
		}
		if !r.Time.IsZero() {
			q.Time = r.Time.Time
		}
		if r.Author != nil {
			q.From = c.author(r.Author, r.Member, p)
		}
	}
	out.ReplyTo = q
}

// addressed returns how a message addresses the bot. A reply also has the author of the other message in
// its list of mentions, so only mentions in the text count, outside of code and quotes. @everyone does not count.
func (c *cache) addressed(m *message, p place, self user) core.Addressed {
	if p.private() {
		return core.AddressedDirect
	}
	if self.ID == "" {
		return ""
	}
	words := ownWords(m.Content)
	named := strings.Contains(words, "<@"+self.ID+">") || strings.Contains(words, "<@!"+self.ID+">")
	roles := slices.DeleteFunc(slices.Clone(m.Roles), func(id string) bool {
		return m.Content != "" && !strings.Contains(words, "<@&"+id+">")
	})
	if named || c.hasBotRole(p.Guild, roles) {
		return core.AddressedMention
	}
	r := m.Referenced
	if r != nil && r.Author != nil && r.Author.ID == self.ID {
		return core.AddressedReply
	}
	// Without the content intent, there is only the list.
	if m.Content == "" && len(m.Snapshots) == 0 {
		if slices.ContainsFunc(m.Mentions, func(u user) bool { return u.ID == self.ID }) {
			return core.AddressedMention
		}
	}
	return ""
}

// attachments lists the files of a message and of what it forwards.
func attachments(m *message) []core.Attachment {
	var out []core.Attachment
	for _, list := range append([]snapshot{{Message: *m}}, m.Snapshots...) {
		for _, a := range list.Message.Attachments {
			out = append(out, core.Attachment{
				Kind: mediaKind(a.MIME, a.Name), Name: line(cmp.Or(a.Title, a.Name), core.MaxName),
				MIME: line(a.MIME, 100), Size: max(a.Size, 0), Width: max(a.Width, 0), Height: max(a.Height, 0),
				Duration: rest.Seconds(a.Duration), Ref: fileRef(a.URL),
			})
			if len(out) == 20 {
				return out
			}
		}
	}
	return out
}

// fileRef returns the part of a file's address that is stored: the path and query, never the host.
func fileRef(address string) string {
	u, err := url.Parse(address)
	if err != nil || len(address) > 2048 {
		return ""
	}
	return u.RequestURI()
}

func mediaKind(mime, name string) core.Media {
	kind, _, _ := strings.Cut(mime, "/")
	switch cmp.Or(kind, strings.ToLower(strings.TrimPrefix(path.Ext(name), "."))) {
	case "image", "png", "jpg", "jpeg", "gif", "webp":
		return core.MediaImage
	case "audio", "mp3", "ogg", "wav", "flac", "m4a":
		return core.MediaAudio
	case "video", "mp4", "webm", "mov":
		return core.MediaVideo
	}
	return core.MediaFile
}
