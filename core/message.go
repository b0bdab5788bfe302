package core

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Limits of texts from a platform, a model or a file. Drivers shorten longer ones visibly.
const (
	MaxText    = 1 << 20 // bytes of one message's text, its author's and foreign together
	MaxName    = 256     // bytes of a user's name or tag
	MaxQuote   = 4096    // bytes of a quoted text
	MaxForeign = 16      // foreign texts in one message
)

// Rank says how much a user may do in a place. It comes from the platform and the configuration, never from a text.
type Rank uint8

// Ranks in rising order. RankBot is the bot itself, in turns that it began.
const (
	RankMember Rank = iota
	RankModerator
	RankAdmin
	RankBot
)

// Author is who said or did something.
type Author struct {
	ID      string  `json:"id"`
	Name    string  `json:"name,omitempty"` // what people call them
	Tag     string  `json:"tag,omitempty"`  // their handle, as the platform writes it ("@jay")
	Bot     bool    `json:"bot,omitempty"`
	Rank    Rank    `json:"rank,omitempty"`    // in the place of the message
	Channel Channel `json:"channel,omitempty"` // if set, the user behind it is unknown
}

// Channel says that a message was written in the name of a channel or a group.
type Channel string

// Kinds of channel; the empty one means a user or a bot.
const (
	ChannelLinked Channel = "linked" // the place itself, or the channel that belongs to it
	ChannelOther  Channel = "other"
)

// Addressed says how a message addresses the bot, as the driver saw it.
type Addressed string

// Ways of addressing; the empty one means talk among others.
const (
	AddressedDirect  Addressed = "direct"  // a private chat
	AddressedMention Addressed = "mention" // the platform's own mention
	AddressedReply   Addressed = "reply"   // a reply to one of the bot's messages
	AddressedName    Addressed = "name"    // called by name in the text
	// AddressedOverheard is talk among others that the bot may join. Only turns set it, never a driver.
	AddressedOverheard Addressed = "overheard"
)

// Quote is the message that another one replies to.
type Quote struct {
	ID   string    `json:"id"`
	From Author    `json:"from,omitzero"`
	Text string    `json:"text,omitempty"`
	Time time.Time `json:"time,omitzero"`
}

// ForeignKind says how a foreign text came with a message.
type ForeignKind string

// Kinds of foreign text.
const (
	ForeignForward ForeignKind = "forward" // the author forwarded somebody's message
	ForeignQuote   ForeignKind = "quote"   // the author quotes it within their text
	ForeignEmbed   ForeignKind = "embed"   // a card beside the text: a link's preview, a contact, a sticker
)

// Foreign is text that came with a message but was not written by its author. It
// never triggers a turn, never has the author's rank, and never counts as their answer.
type Foreign struct {
	Kind ForeignKind `json:"kind"`
	From Author      `json:"from,omitzero"` // who wrote it, if the platform says so
	Text string      `json:"text,omitempty"`
	Time time.Time   `json:"time,omitzero"` // when it was written, if the platform says so
	// Voice means that it is a voice message, which is an attachment. After speech recognition
	// (see Message.Heard), Text has its words.
	Voice bool `json:"voice,omitempty"`
	// Path and ID identify the message that a forward copies, if the platform says so. They are not stored.
	Path Path   `json:"-"`
	ID   string `json:"-"`
}

// Media is the kind of an attachment.
type Media string

// Kinds of attachment.
const (
	MediaImage Media = "image"
	MediaAudio Media = "audio"
	MediaVideo Media = "video"
	MediaFile  Media = "file"
)

// Attachment describes a file that came with a message. Its content is fetched on demand, by the driver that set Ref.
type Attachment struct {
	Kind     Media         `json:"kind"`
	Name     string        `json:"name,omitempty"`
	MIME     string        `json:"mime,omitempty"`
	Size     int64         `json:"size,omitempty"` // bytes; 0: unknown
	Width    int           `json:"width,omitempty"`
	Height   int           `json:"height,omitempty"`
	Duration time.Duration `json:"duration,omitempty"`
	Ref      string        `json:"ref,omitempty"` // for the driver alone
}

// Message is what was said in a place, in a form that does not depend on the platform.
// (Path, ID) identifies it: an edit has the same ID.
type Message struct {
	Path    Path      `json:"path"`
	ID      string    `json:"id"`
	Seq     uint64    `json:"seq,omitempty"` // set by the Store, rising within a Path
	Author  Author    `json:"author,omitzero"`
	Text    string    `json:"text,omitempty"` // only the author's own words
	Foreign []Foreign `json:"foreign,omitempty"`
	Time    time.Time `json:"time,omitzero"` // the platform's
	Voice   bool      `json:"voice,omitempty"`
	// Heard is the confidence of speech recognition in the words of a voice message, in percent: 0 if it recognised
	// nothing, HeardUnrated if it gives no confidence. The words are in Text, or in Foreign if they were forwarded.
	Heard       int          `json:"heard,omitempty"`
	Written     int          `json:"written,omitempty"` // with Heard: how many bytes of Text are a caption
	ReplyTo     *Quote       `json:"reply_to,omitempty"`
	Attachments []Attachment `json:"attachments,omitempty"`
	Private     bool         `json:"private,omitempty"` // only the author and the bot can read it
	Locale      string       `json:"locale,omitempty"`  // the author's, BCP 47, if the platform says so
	Scopes      []Path       `json:"scopes,omitempty"`  // further subtrees that the place belongs to
	Addressed   Addressed    `json:"addressed,omitempty"`
	// Ahead is how far this machine's clock was ahead of the platform's when the message
	// was received; it is negative if the clock was behind and 0 if that is unknown.
	Ahead time.Duration `json:"ahead,omitzero"`
	// Spoken is Text without code and without the names of mentioned users, because these chose
	// their names themselves. Empty: Text has neither. It is not stored.
	Spoken string `json:"-"`
}

// HeardUnrated is the Message.Heard of words without a known confidence.
const HeardUnrated = -1

// SentAt returns when the message was sent, by this machine's clock. Ages are computed
// from it; Time orders messages of the platform.
func (m *Message) SentAt() time.Time { return m.Time.Add(m.Ahead) }

// In reports whether the message was written in a place, below it, or in a scope within it.
func (m *Message) In(place Path) bool {
	return m.Path.Within(place) || slices.ContainsFunc(m.Scopes, func(s Path) bool { return s.Within(place) })
}

// Caption makes Text the caption of a voice message, and adds the recognised words to it.
func (m *Message) Caption(words string) {
	m.Text = strings.TrimSpace(m.Text)
	m.Written = len(m.Text)
	m.Text = strings.TrimSpace(m.Text + "\n" + strings.TrimSpace(words))
}

// StickerText returns the Text of a message that is a sticker, for drivers. emoji may be empty.
func StickerText(emoji string) string { return strings.TrimSpace("[sticker "+emoji) + "]" }

// IsSticker reports whether the message is a sticker, as StickerText describes it.
func (m *Message) IsSticker() bool {
	return len(m.Attachments) > 0 && strings.HasPrefix(m.Text, "[sticker") && strings.HasSuffix(m.Text, "]")
}

// AllText returns the author's text and then the foreign ones, each on its own line. It
// is for searching and filtering; only Text is what the author says.
func (m *Message) AllText() string {
	if len(m.Foreign) == 0 {
		return m.Text
	}
	texts := []string{m.Text}
	for i := range m.Foreign {
		texts = append(texts, m.Foreign[i].Text)
	}
	return strings.Join(slices.DeleteFunc(texts, func(text string) bool { return text == "" }), "\n")
}

// Transcript returns all texts of the message for people who read a log. Foreign ones are marked.
func (m *Message) Transcript() string {
	texts := make([]string, 0, 1+len(m.Foreign))
	if m.Text != "" {
		texts = append(texts, m.Text)
	}
	for i := range m.Foreign {
		o := &m.Foreign[i]
		mark := "[" + string(o.Kind)
		if o.From.Name != "" {
			mark += " of " + o.From.Name
		}
		texts = append(texts, strings.TrimSpace(mark+"] "+o.Text))
	}
	return strings.Join(texts, "\n")
}

// TextSize returns the bytes of all texts of the message.
func (m *Message) TextSize() int {
	n := len(m.Text)
	for i := range m.Foreign {
		n += len(m.Foreign[i].Text)
	}
	return n
}

// Kind says what happened in a place.
type Kind string

// Kinds of event. Drivers send those of the first group; those of the second come from the bot itself. All become
// entries of the place's log, except for Edit, Deletion, Reaction and Migration, which change what is in it.
const (
	KindMessage    Kind = "message"
	KindEdit       Kind = "edit"       // Message.ID again, with the new text, and Command if it is one
	KindDeletion   Kind = "deletion"   // Target was deleted
	KindReaction   Kind = "reaction"   // Data is the emoji put on Target; or see TakenAway
	KindPress      Kind = "press"      // a button of Target was pressed; Data is the button's data
	KindCommand    Kind = "command"    // Command was called
	KindMembership Kind = "membership" // Data: "added", "removed", "blocked"
	KindMigration  Kind = "migration"  // the place moved to To

	// Something is due. Data is the plugin's own; if it has late_seconds, Text ends with that delay in brackets.
	KindReminder Kind = "reminder"
	KindBeat     Kind = "beat"     // the bot acts on its own initiative
	KindContinue Kind = "continue" // the model asked for another turn; Count says how often in a row
)

// TakenAway precedes an emoji in the Data of a reaction that its author removed. Without an emoji, all reactions of
// the author are removed, as with an empty Data. Without an author, everybody's are removed.
const TakenAway = "-"

// QuestionMark begins the Data of a question to a user, and of the press that answers it. The number of the turn that
// asked follows, up to a full stop.
const QuestionMark = "confirm:"

// Renumber adds to the turn's number in the Data of a question or answer, and returns other Data as it is. A Store does
// so when a place moves and its entries get other numbers.
func Renumber(data string, shift uint64) string {
	rest, asks := strings.CutPrefix(data, QuestionMark)
	if !asks {
		return data
	}
	number, rest, more := strings.Cut(rest, ".")
	turn, err := strconv.ParseUint(number, 10, 64)
	if !more || err != nil {
		return data
	}
	return fmt.Sprintf("%s%d.%s", QuestionMark, turn+shift, rest)
}

// Command is a chat command as it was called.
type Command struct {
	Name string   `json:"name"`
	Args []string `json:"args,omitempty"`
}

// Event is one thing that happened in a place. Message says where, when and by whom. An event that becomes an entry
// has its own platform id in Message.ID: two events with the same (place, id) are one entry. An edit has the id of the
// message that it changes; deletions and reactions name it in Target and need no id.
type Event struct {
	Kind    Kind     `json:"kind"`
	Message Message  `json:"message"`
	Target  string   `json:"target,omitempty"` // the id of the message that it is about
	Data    string   `json:"data,omitempty"`
	Command *Command `json:"command,omitempty"`
	To      Path     `json:"to,omitzero"`
	Count   int      `json:"count,omitempty"`
	// Reply, if set, is the answer to the event; no model is asked. Of the events that Inbox.Receive accepts, only a
	// plugin's KindReminder may have one. The message that is sent has the Data of the event (see Follower).
	Reply string `json:"reply,omitempty"`
}

// Entry is one entry of a place's log. Message.Seq is its number. Whether it is
// due, that is, needs an answer, is decided once, when it is received.
type Entry struct {
	Event
	Due  bool `json:"due,omitempty"`
	Self bool `json:"self,omitempty"` // the bot's own
	// Strangers means that the bot had read what strangers wrote (a page, a file, forwarded
	// text) before it said this. Entries of older versions do not have it.
	Strangers bool `json:"strangers,omitempty"`
	Rev       int  `json:"rev,omitempty"`     // how often it was edited
	Deleted   bool `json:"deleted,omitempty"` // its text is deleted, its number stays
	// Reactions counts them by emoji.
	Reactions map[string]int `json:"reactions,omitempty"`
}

// Spoken reports whether the entry belongs in a history: a message or press of a button that
// has a text or files. Messages of users whom a gate has not admitted are stored without both.
func (e *Entry) Spoken() bool {
	m := &e.Message
	says := m.Text != "" || len(m.Attachments) > 0 || len(m.Foreign) > 0
	return says && (e.Kind == KindMessage || e.Kind == KindPress) && !e.Deleted
}
