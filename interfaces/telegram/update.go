package telegram

import (
	"encoding/json"
	"fmt"
	"strings"

	"synthbot/core"
)

// Updates are decoded here, one by one. The library's types lack topics, quotes, reactions, forwards and checklists,
// and its decoder drops a whole batch because of one update that it cannot decode.

// update is an update of the Bot API. One of its fields besides ID is set.
type update struct {
	ID                int64       `json:"update_id"`
	Message           *message    `json:"message"`
	EditedMessage     *message    `json:"edited_message"`
	ChannelPost       *message    `json:"channel_post"`
	EditedChannelPost *message    `json:"edited_channel_post"`
	Callback          *callback   `json:"callback_query"`
	Reaction          *reaction   `json:"message_reaction"`
	MyMember          *membership `json:"my_chat_member"`
	Member            *membership `json:"chat_member"`
}

// wantedUpdates is the parameter allowed_updates.
const wantedUpdates = `["message","edited_message","channel_post","edited_channel_post",` +
	`"callback_query","message_reaction","my_chat_member","chat_member"]`

type user struct {
	ID           int64  `json:"id"`
	IsBot        bool   `json:"is_bot"`
	FirstName    string `json:"first_name"`
	LastName     string `json:"last_name"`
	UserName     string `json:"username"`
	LanguageCode string `json:"language_code"`
}

// entity marks a part of a text, in UTF-16 units until inBytes converts it.
type entity struct {
	Type   string `json:"type"`
	Offset int    `json:"offset"`
	Length int    `json:"length"`
	URL    string `json:"url"`
	User   *user  `json:"user"`
}

type file struct {
	FileID   string `json:"file_id"`
	FileName string `json:"file_name"`
	FileSize int    `json:"file_size"`
	MimeType string `json:"mime_type"`
	Width    int    `json:"width"`
	Height   int    `json:"height"`
	Length   int    `json:"length"` // width and height of a video note
	Duration int    `json:"duration"`

	Emoji      string `json:"emoji"` // this and the following: of a sticker
	IsAnimated bool   `json:"is_animated"`
	IsVideo    bool   `json:"is_video"`
}

type keyboardRows struct {
	Rows [][]keyboardButton `json:"inline_keyboard"`
}

type keyboardButton struct {
	Text         string `json:"text"`
	URL          string `json:"url,omitempty"`
	CallbackData string `json:"callback_data,omitempty"`
}

type chat struct {
	ID        int64  `json:"id"`
	Type      string `json:"type"`
	Title     string `json:"title"`
	Username  string `json:"username"`
	FirstName string `json:"first_name"`
	LastName  string `json:"last_name"`
	IsForum   bool   `json:"is_forum"`
}

type message struct {
	ID        int64  `json:"message_id"`
	Thread    int64  `json:"message_thread_id"`
	IsTopic   bool   `json:"is_topic_message"`
	From      *user  `json:"from"`
	Sender    *chat  `json:"sender_chat"`
	Date      int64  `json:"date"`
	Chat      chat   `json:"chat"`
	Signature string `json:"author_signature"`
	Via       *user  `json:"via_bot"` // the inline bot that wrote the message
	Album     string `json:"media_group_id"`

	ReplyTo  *message `json:"reply_to_message"`
	External *struct {
		Origin *origin `json:"origin"`
	} `json:"external_reply"`
	Quote *struct {
		Text     string `json:"text"`
		Position int    `json:"position"` // in UTF-16 units
	} `json:"quote"`
	Forward *origin `json:"forward_origin"`
	Linked  bool    `json:"is_automatic_forward"` // from the group's linked channel

	Text            string   `json:"text"`
	Entities        []entity `json:"entities"`
	Caption         string   `json:"caption"`
	CaptionEntities []entity `json:"caption_entities"`

	Photo     []file          `json:"photo"`
	Voice     *file           `json:"voice"`
	Audio     *file           `json:"audio"`
	Video     *file           `json:"video"`
	VideoNote *file           `json:"video_note"`
	Animation *file           `json:"animation"`
	Document  *file           `json:"document"`
	Sticker   *file           `json:"sticker"`
	Location  *location       `json:"location"`
	Rich      json.RawMessage `json:"rich_message"`
	Venue     *struct {
		Title   string `json:"title"`
		Address string `json:"address"`
	} `json:"venue"`
	Contact *struct {
		PhoneNumber string `json:"phone_number"`
		FirstName   string `json:"first_name"`
		LastName    string `json:"last_name"`
	} `json:"contact"`
	Dice *struct {
		Emoji string `json:"emoji"`
		Value int    `json:"value"`
	} `json:"dice"`
	Poll *struct {
		Question string `json:"question"`
		Options  []struct {
			Text string `json:"text"`
		} `json:"options"`
	} `json:"poll"`
	Checklist *struct {
		Title    string   `json:"title"`
		Entities []entity `json:"title_entities"`
		Tasks    []struct {
			Text     string   `json:"text"`
			Entities []entity `json:"text_entities"`
			Done     int64    `json:"completion_date"`
		} `json:"tasks"`
	} `json:"checklist"`

	MigrateTo    int64        `json:"migrate_to_chat_id"`
	MigrateFrom  int64        `json:"migrate_from_chat_id"`
	TopicCreated *topicNotice `json:"forum_topic_created"`
	TopicEdited  *topicNotice `json:"forum_topic_edited"`
	Markup       keyboardRows `json:"reply_markup"`
}

// topicNotice is a service message about a topic. Name is "" if an edit did not change it.
type topicNotice struct {
	Name string `json:"name"`
}

type origin struct {
	User   *user  `json:"sender_user"`
	Hidden string `json:"sender_user_name"`
	Sender *chat  `json:"sender_chat"`
	Chat   *chat  `json:"chat"`
	Date   int64  `json:"date"`
}

type location struct {
	Latitude  float64 `json:"latitude"`
	Longitude float64 `json:"longitude"`
}

type callback struct {
	ID      string   `json:"id"`
	From    user     `json:"from"`
	Message *message `json:"message"`
	Data    string   `json:"data"`
}

type reaction struct {
	Chat    chat           `json:"chat"`
	Message int64          `json:"message_id"`
	User    *user          `json:"user"`
	Actor   *chat          `json:"actor_chat"`
	Date    int64          `json:"date"`
	Old     []reactionType `json:"old_reaction"`
	New     []reactionType `json:"new_reaction"`
}

type reactionType struct {
	Type  string `json:"type"`
	Emoji string `json:"emoji"`
}

type membership struct {
	Chat chat   `json:"chat"`
	From user   `json:"from"`
	Date int64  `json:"date"`
	Old  member `json:"old_chat_member"`
	New  member `json:"new_chat_member"`
}

type member struct {
	User     user   `json:"user"`
	Status   string `json:"status"`
	IsMember bool   `json:"is_member"`
}

func (m member) isPresent() bool {
	return m.isAdmin() || m.Status == "member" || m.Status == "restricted" && m.IsMember
}

func (m member) isAdmin() bool { return m.Status == "creator" || m.Status == "administrator" }

// decode decodes one update. It also returns the id of an update with other fields that it cannot decode, so that
// the update can be confirmed.
func decode(raw json.RawMessage) (*update, int64, error) {
	var u update
	if err := json.Unmarshal(raw, &u); err != nil {
		return nil, u.ID, fmt.Errorf("update %d: %w", u.ID, err)
	}
	if u.ID <= 0 {
		return nil, 0, fmt.Errorf("update without an id")
	}
	return &u, u.ID, nil
}

// maxRichDepth is how deep rich messages are read.
const maxRichDepth = 16

// richBlock is a heading, list, table, … of a rich message. See richText for its texts.
type richBlock struct {
	Type       string      `json:"type"`
	Text       any         `json:"text"`
	Summary    any         `json:"summary"`
	Credit     any         `json:"credit"`
	Caption    any         `json:"caption"`
	Expression string      `json:"expression"`
	Blocks     []richBlock `json:"blocks"`
	Items      []struct {
		Label    string      `json:"label"`
		Blocks   []richBlock `json:"blocks"`
		Checkbox bool        `json:"has_checkbox"`
		Checked  bool        `json:"is_checked"`
	} `json:"items"`
	Cells [][]struct {
		Text any `json:"text"`
	} `json:"cells"`
}

// readRich returns the text of a rich message, or "". The entities mark its quotes, in bytes.
func readRich(raw json.RawMessage) (text string, quotes []entity) {
	var m struct {
		Blocks []richBlock `json:"blocks"`
	}
	if len(raw) == 0 || json.Unmarshal(raw, &m) != nil {
		return "", nil
	}
	for i := range m.Blocks {
		lines, quoted := richLines(m.Blocks[i:i+1], 0)
		one := strings.Join(lines, "\n")
		if one == "" {
			continue
		}
		if text != "" {
			text += "\n"
		}
		at := len(text)
		text = cut(text+one, core.MaxText)
		if quoted && at < len(text) && len(quotes) < maxEntities {
			quotes = append(quotes, entity{Type: "blockquote", Offset: at, Length: len(text) - at})
		}
	}
	return text, quotes
}

// richLines returns the text of blocks. quoted reports whether a block, at any depth, is a quote or too deep to read.
func richLines(blocks []richBlock, depth int) (lines []string, quoted bool) {
	if depth > maxRichDepth {
		return nil, true
	}
	inner := func(blocks []richBlock) []string {
		lines, quotes := richLines(blocks, depth+1)
		quoted = quoted || quotes
		return lines
	}
	add := func(s string) {
		s = strings.TrimSpace(s)
		if s != "" {
			lines = append(lines, s)
		}
	}
	for i := range blocks {
		b := &blocks[i]
		quoted = quoted || strings.Contains(strings.ToLower(b.Type), "quot")
		add(richText(b.Summary, 0))
		add(richText(b.Text, 0))
		add(b.Expression)
		for _, item := range b.Items {
			mark := strings.TrimSpace(item.Label)
			if item.Checkbox {
				mark = map[bool]string{false: "☐", true: "☑"}[item.Checked]
			}
			add(mark + " " + strings.Join(inner(item.Blocks), "\n"))
		}
		for _, row := range b.Cells {
			var cells []string
			for _, c := range row {
				cells = append(cells, strings.TrimSpace(richText(c.Text, 0)))
			}
			add(strings.Join(cells, " | "))
		}
		lines = append(lines, inner(b.Blocks)...)
		add(richText(b.Caption, 0))
		add(richText(b.Credit, 0))
		switch b.Type { // blocks without text
		case "photo", "video", "audio", "animation", "map":
			add("[" + b.Type + "]")
		case "voice_note":
			add("[voice]")
		}
	}
	return lines, quoted
}

// richText returns a text of a rich message: a string, a list of texts, or an object with one. It ignores others.
func richText(text any, depth int) string {
	if depth > 2*maxRichDepth {
		return ""
	}
	switch v := text.(type) {
	case string:
		return v
	case []any:
		parts := make([]string, len(v))
		for i, part := range v {
			parts[i] = richText(part, depth+1)
		}
		return strings.Join(parts, "")
	case map[string]any:
		alternative, _ := v["alternative_text"].(string)
		expression, _ := v["expression"].(string)
		address, _ := v["url"].(string)
		shown := richText(v["text"], depth+1) + alternative + expression
		if !showsAddress(shown, address) {
			shown += " (" + oneAddress(address) + ")"
		}
		return shown
	}
	return ""
}
