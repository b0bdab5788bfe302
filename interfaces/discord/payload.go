package discord

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"time"

	"synthbot/interfaces/discord/rest"
)

// The types of Discord's objects have only the fields that are used, so that events with new kinds of
// content can be decoded. The library's types fail on these.

type user struct {
	ID     string `json:"id"`
	Name   string `json:"username"`
	Shown  string `json:"global_name"`
	Discr  string `json:"discriminator"`
	Bot    bool   `json:"bot"`
	System bool   `json:"system"`
	// Member comes with users who are mentioned in a guild.
	Member *member `json:"member"`
}

type member struct {
	User        *user    `json:"user"`
	Nick        string   `json:"nick"`
	Roles       []string `json:"roles"`
	Permissions *number  `json:"permissions"` // only with interactions: in the channel
}

type attachment struct {
	Name     string  `json:"filename"`
	Title    string  `json:"title"`
	MIME     string  `json:"content_type"`
	Size     int64   `json:"size"`
	URL      string  `json:"url"`
	Width    int     `json:"width"`
	Height   int     `json:"height"`
	Duration float64 `json:"duration_secs"`
}

type embed struct {
	embedPayload
	Type   string `json:"type"`
	Author named  `json:"author"`
	Footer struct {
		Text string `json:"text"`
	} `json:"footer"`
}

// poll is also what is sent.
type poll struct {
	Question pollMedia    `json:"question"`
	Answers  []pollAnswer `json:"answers"`
	Hours    int          `json:"duration"` // of a new one
	Multiple bool         `json:"allow_multiselect"`
}

type pollAnswer struct {
	Media pollMedia `json:"poll_media"`
}

type pollMedia struct {
	Text  string `json:"text"`
	Emoji *emoji `json:"emoji,omitempty"`
}

type emoji named

// text returns the emoji as users see it.
func (e emoji) text() string {
	if e.ID != "" {
		return ":" + e.Name + ":"
	}
	return e.Name
}

type reference struct {
	Type    int    `json:"type"` // 1: forwarded
	Message string `json:"message_id"`
	Channel string `json:"channel_id"`
}

type snapshot struct {
	Message message `json:"message"`
}

// named is an object of which at most the id and the name are used, such as a sticker.
type named struct {
	ID   string `json:"id"`
	Name string `json:"name"`
}

// Types of messages that are converted. All others are notices of Discord, or stand for an earlier message
// at the beginning of a thread.
const (
	messagePlain   = 0
	messageReply   = 19
	messageCommand = 20
	messageMenu    = 23
	messageResult  = 46 // of a poll
)

// Flags of messages.
const (
	flagLoading = 1 << 7 // the sign that the bot is thinking about a command
	flagVoice   = 1 << 13
)

type message struct {
	ID          string       `json:"id"`
	Channel     string       `json:"channel_id"`
	Author      *user        `json:"author"`
	Member      *member      `json:"member"`
	Content     string       `json:"content"`
	Time        stamp        `json:"timestamp"`
	Edited      stamp        `json:"edited_timestamp"`
	Type        int          `json:"type"`
	Flags       int          `json:"flags"`
	Webhook     string       `json:"webhook_id"`
	Mentions    []user       `json:"mentions"`
	Roles       []string     `json:"mention_roles"`
	Channels    []named      `json:"mention_channels"`
	Attachments []attachment `json:"attachments"`
	Embeds      []embed      `json:"embeds"`
	Stickers    []named      `json:"sticker_items"`
	Poll        *poll        `json:"poll"`
	Reference   *reference   `json:"message_reference"`
	Referenced  *message     `json:"referenced_message"`
	Snapshots   []snapshot   `json:"message_snapshots"`
	Rows        []struct {
		Buttons []struct {
			Custom string `json:"custom_id"`
			Label  string `json:"label"`
		} `json:"components"`
	} `json:"components"`
	Interaction *named `json:"interaction_metadata"`
}

// stamp is a time that may be missing or invalid.
type stamp struct{ time.Time }

// UnmarshalJSON never fails, because a message without a time is better than none.
func (s *stamp) UnmarshalJSON(text []byte) error {
	s.Time, _ = time.Parse(time.RFC3339, strings.Trim(string(text), `"`))
	return nil
}

// number is an integer that Discord writes as a string ("8192").
type number uint64

// UnmarshalJSON accepts a string or a number; anything else becomes 0.
func (n *number) UnmarshalJSON(text []byte) error {
	bits, _ := strconv.ParseUint(strings.Trim(string(text), `"`), 10, 64)
	*n = number(bits)
	return nil
}

type channel struct {
	ID         string      `json:"id"`
	Guild      string      `json:"guild_id"`
	Parent     string      `json:"parent_id"`
	Type       int         `json:"type"`
	Name       string      `json:"name"`
	Last       string      `json:"last_message_id"`
	Overwrites []overwrite `json:"permission_overwrites"`
}

type overwrite struct {
	ID    string `json:"id"`
	Allow number `json:"allow"`
	Deny  number `json:"deny"`
}

type guildRole struct {
	ID          string `json:"id"`
	Name        string `json:"name"`
	Permissions number `json:"permissions"`
	Tags        struct {
		Bot string `json:"bot_id"`
	} `json:"tags"`
}

type guildPayload struct {
	ID          string      `json:"id"`
	Unavailable bool        `json:"unavailable"`
	Owner       string      `json:"owner_id"`
	Joined      stamp       `json:"joined_at"`
	Roles       []guildRole `json:"roles"`
	Channels    []channel   `json:"channels"`
	Threads     []channel   `json:"threads"`
	Members     []member    `json:"members"`
}

func (g *guildPayload) all() []channel { return slices.Concat(g.Channels, g.Threads) }

type ready struct {
	User   user    `json:"user"`
	Guilds []named `json:"guilds"`
	App    named   `json:"application"`
}

type deletion struct {
	ID      string   `json:"id"`
	IDs     []string `json:"ids"`
	Channel string   `json:"channel_id"`
}

type reaction struct {
	User    string  `json:"user_id"`
	Channel string  `json:"channel_id"`
	Message string  `json:"message_id"`
	Member  *member `json:"member"`
	Emoji   emoji   `json:"emoji"`
}

// Kinds of interaction.
const (
	interactCommand  = 2
	interactPress    = 3
	interactComplete = 4
	interactFilled   = 5 // a user filled in the field that a button opened
)

type option struct {
	Name    string          `json:"name"`
	Value   json.RawMessage `json:"value"`
	Focused bool            `json:"focused"`
}

type interaction struct {
	ID      string   `json:"id"`
	App     string   `json:"application_id"`
	Type    int      `json:"type"`
	Token   string   `json:"token"`
	Guild   string   `json:"guild_id"`
	Channel string   `json:"channel_id"`
	Member  *member  `json:"member"`
	User    *user    `json:"user"`
	Locale  string   `json:"locale"`
	Message *message `json:"message"`
	Data    struct {
		Name    string   `json:"name"`
		Type    int      `json:"type"`
		Options []option `json:"options"`
		Custom  string   `json:"custom_id"`
		Values  []string `json:"values"` // chosen from a list
		Rows    []struct {
			Fields []struct {
				Value string `json:"value"`
			} `json:"components"`
		} `json:"components"`
		Target   string `json:"target_id"`
		Resolved struct {
			Messages map[string]message `json:"messages"`
		} `json:"resolved"`
	} `json:"data"`
}

// decode decodes the data of an event; zero if there is none. Package gateway has checked that it is JSON.
func decode[T any](data []byte) (v T) {
	_ = rest.Decode(data, &v)
	return v
}
