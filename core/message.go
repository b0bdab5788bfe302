package core

import (
	"slices"
	"strings"
	"time"
)

// Limits of what is taken in from a platform, a model or a file. What is longer is cut by the driver, visibly.
const (
	MaxText    = 1 << 20 // bytes of one message's text, its author's and foreign together
	MaxName    = 256     // bytes of a person's name or tag
	MaxQuote   = 4096    // bytes of a quoted text
	MaxForeign = 16      // foreign texts in one message
)

// Rank is what a person may do in a place. It comes from the platform and the configuration, never from a text.
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
	Channel Channel `json:"channel,omitempty"` // the person behind it is unknown
}

// Channel says that somebody speaks as a channel or a group, not as a person.
type Channel string

// Kinds of channel; the empty one is a person, or a bot.
const (
	ChannelLinked Channel = "linked" // the place itself, or the channel that belongs to it
	ChannelOther  Channel = "other"
)

// Addressed says how a message speaks to the bot, as the driver saw it.
type Addressed string

// Ways of addressing; the empty one is talk among others.
const (
	AddressedDirect  Addressed = "direct"  // a private chat
	AddressedMention Addressed = "mention" // the platform's own mention
	AddressedReply   Addressed = "reply"   // a reply to one of the bot's messages
	AddressedName    Addressed = "name"    // called by name in the text
	// AddressedOverheard is talk among others at which the bot may say something, too. It
	// is never a driver's word: turns decide it.
	AddressedOverheard Addressed = "overheard"
)

// Quote is the message that another one replies to.
type Quote struct {
	ID   string    `json:"id"`
	From Author    `json:"from,omitzero"`
	Text string    `json:"text,omitempty"`
	Time time.Time `json:"time,omitzero"`
}

// ForeignKind says how text of others came with a message.
type ForeignKind string

// Kinds of foreign text.
const (
	ForeignForward ForeignKind = "forward" // the author passed on somebody's message
	ForeignQuote   ForeignKind = "quote"   // the author quotes it within their text
	ForeignEmbed   ForeignKind = "embed"   // a card beside the words: a link's preview, a contact, a sticker
)

// Foreign is text that came with a message and that its author did not write. It
// never wakes the bot, never carries the author's rank, and is not their answer.
type Foreign struct {
	Kind ForeignKind `json:"kind"`
	From Author      `json:"from,omitzero"` // who wrote it, where the platform tells
	Text string      `json:"text,omitempty"`
	Time time.Time   `json:"time,omitzero"` // when it was written, where the platform tells
	// Voice says that it is a voice message, which is an attachment. Once it was recognised
	// (see Message.Heard), Text has its words.
	Voice bool `json:"voice,omitempty"`
	// Path and ID are of the message that a forward copies, where the platform tells. They are not kept.
	Path Path   `json:"-"`
	ID   string `json:"-"`
}

// Media sorts attachments.
type Media string

// Kinds of attachment.
const (
	MediaImage Media = "image"
	MediaAudio Media = "audio"
	MediaVideo Media = "video"
	MediaFile  Media = "file"
)

// Attachment describes a file that came with a message. Its content is fetched
// by the driver that gave the Ref, when somebody wants it.
type Attachment struct {
	Kind     Media         `json:"kind"`
	Name     string        `json:"name,omitempty"`
	MIME     string        `json:"mime,omitempty"`
	Size     int64         `json:"size,omitempty"` // bytes; 0 where unknown
	Width    int           `json:"width,omitempty"`
	Height   int           `json:"height,omitempty"`
	Duration time.Duration `json:"duration,omitempty"`
	Ref      string        `json:"ref,omitempty"` // the driver's own handle, opaque
}

// Message is what was said in a place, with nothing of the platform left in it.
// (Path, ID) is its identity: an edit carries the same ID.
type Message struct {
	Path    Path      `json:"path"`
	ID      string    `json:"id"`
	Seq     uint64    `json:"seq,omitempty"` // given by the Store, rising within a Path
	Author  Author    `json:"author,omitzero"`
	Text    string    `json:"text,omitempty"` // the author's own words alone
	Foreign []Foreign `json:"foreign,omitempty"`
	Time    time.Time `json:"time,omitzero"` // the platform's
	Voice   bool      `json:"voice,omitempty"`
	// Heard is how sure speech recognition is of the words of a voice message, in percent: 0 if it recognised
	// nothing, HeardUnrated if it does not say. They are in Text, or, if the message was forwarded, in Foreign.
	Heard       int          `json:"heard,omitempty"`
	Written     int          `json:"written,omitempty"` // with Heard: how many bytes of Text are a caption
	ReplyTo     *Quote       `json:"reply_to,omitempty"`
	Attachments []Attachment `json:"attachments,omitempty"`
	Private     bool         `json:"private,omitempty"` // nobody else can read along
	Locale      string       `json:"locale,omitempty"`  // the author's, BCP 47, where the platform tells
	Scopes      []Path       `json:"scopes,omitempty"`  // further subtrees that it belongs to
	Addressed   Addressed    `json:"addressed,omitempty"`
	// Ahead is how far this machine's clock was ahead of the platform's when the message
	// was received; it is negative if the clock was behind and 0 if that is unknown.
	Ahead time.Duration `json:"ahead,omitzero"`
	// Spoken is Text without code and without the names in it of others whom the
	// author mentions, as these others chose them. Empty: Text has neither. It is not kept.
	Spoken string `json:"-"`
}

// HeardUnrated is a Message.Heard without a measure.
const HeardUnrated = -1

// SentAt returns when the message was sent, by this machine's clock. Ages are computed
// from it; Time orders messages of the platform.
func (m *Message) SentAt() time.Time { return m.Time.Add(m.Ahead) }

// In reports whether the message was written in a place, below it, or in a scope within it.
func (m *Message) In(place Path) bool {
	return m.Path.Within(place) || slices.ContainsFunc(m.Scopes, func(s Path) bool { return s.Within(place) })
}

// Caption makes the Text the caption of a voice message that says the words.
func (m *Message) Caption(words string) {
	m.Text = strings.TrimSpace(m.Text)
	m.Written = len(m.Text)
	m.Text = strings.TrimSpace(m.Text + "\n" + strings.TrimSpace(words))
}

// AllText returns the author's words and then the foreign ones, a line each. It is
// for searching and filtering; what the author says is Text alone.
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

// Transcript returns the words of the message for people who read a log: what others wrote is marked as theirs.
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

// Kinds of event. The first group comes from drivers, the second is written by the bot itself; all but Edit,
// Deletion, Reaction and Migration, which change what is already there, become entries of the place's log.
const (
	KindMessage    Kind = "message"
	KindEdit       Kind = "edit"       // Message.ID again, with the new text
	KindDeletion   Kind = "deletion"   // Target is gone
	KindReaction   Kind = "reaction"   // Data is the emoji put on Target; or see TakenAway
	KindPress      Kind = "press"      // a button of Target; Data is what the button carries
	KindCommand    Kind = "command"    // Command was called
	KindMembership Kind = "membership" // Data: "added", "removed", "blocked"
	KindMigration  Kind = "migration"  // the place goes on at To

	KindReminder Kind = "reminder" // something fell due; Data is the plugin's own
	KindBeat     Kind = "beat"     // the bot's own initiative
	KindContinue Kind = "continue" // the model asked to go on; Count says how often in a row
	KindBacklog  Kind = "backlog"  // what waited too long, as one
)

// TakenAway precedes, in the Data of a reaction, an emoji that its author takes away again. Without an emoji it takes
// all of theirs away, as "" does. Without an author it takes everybody's.
const TakenAway = "-"

// Command is a chat command as it was called.
type Command struct {
	Name string   `json:"name"`
	Args []string `json:"args,omitempty"`
}

// Event is one thing that happened in a place. Message says where, when and by whom. What becomes an entry carries a
// platform id of its own in Message.ID: the same (place, id) twice is one entry. An edit carries the id of what it
// changes; deletions and reactions name it in Target and need no id.
type Event struct {
	Kind    Kind     `json:"kind"`
	Message Message  `json:"message"`
	Target  string   `json:"target,omitempty"` // the id of the message that it is about
	Data    string   `json:"data,omitempty"`
	Command *Command `json:"command,omitempty"`
	To      Path     `json:"to,omitzero"`
	Count   int      `json:"count,omitempty"`
	// Reply, where set, is what the event is answered with, without asking a model. Of the events that are received,
	// only a plugin's KindReminder may have one: what is sent keeps its Data then (see Follower).
	Reply string `json:"reply,omitempty"`
}

// Entry is one line of a place's log. Message.Seq is its number. Whether it is
// due, that is, wants an answer, is decided once, when it is received.
type Entry struct {
	Event
	Due  bool `json:"due,omitempty"`
	Self bool `json:"self,omitempty"` // the bot's own
	// Strangers says that the bot said it after reading what strangers wrote: a page,
	// a file, forwarded text. Entries of older versions do not have it.
	Strangers bool `json:"strangers,omitempty"`
	Rev       int  `json:"rev,omitempty"`     // how often it was edited
	Deleted   bool `json:"deleted,omitempty"` // its text is gone, its number stays
	// Reactions counts them by emoji.
	Reactions map[string]int `json:"reactions,omitempty"`
}

// Spoken reports whether the entry is talk that belongs into a history: a message
// with words or files of anybody, or the press of a button by which a person says something.
// Of somebody who is not let in yet, the log has an entry without either.
func (e *Entry) Spoken() bool {
	m := &e.Message
	says := m.Text != "" || len(m.Attachments) > 0 || len(m.Foreign) > 0
	return says && (e.Kind == KindMessage || e.Kind == KindPress) && !e.Deleted
}
