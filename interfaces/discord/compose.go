package discord

import (
	"slices"
	"strings"
	"unicode"

	"synthbot/core"
	"synthbot/core/markdown"
	"synthbot/interfaces/discord/markup"
	"synthbot/interfaces/discord/rest"
)

type say struct {
	Text     string     `json:"text"`
	ReplyTo  messageID  `json:"reply_to_message_id"`
	Embeds   []sayEmbed `json:"embeds"`
	Buttons  []button   `json:"buttons"`
	Suggest  []string   `json:"suggestions"`
	Silent   bool       `json:"silent"`
	Priority string     `json:"priority"`
}

type sayEmbed struct {
	Title       string     `json:"title,omitempty"`
	Description string     `json:"description,omitempty"`
	URL         string     `json:"url,omitempty"`
	Color       int        `json:"color,omitempty"`
	Fields      []sayField `json:"fields,omitempty"`
}

type sayField struct {
	Name   string `json:"name"`
	Value  string `json:"value"`
	Inline bool   `json:"inline,omitempty"`
}

// compose makes the messages of an action. The same payload always makes the same ones.
func (a *actions) compose(call core.Call, s *say) ([]outgoing, error) {
	list, err := a.words(s)
	if err == nil {
		err = s.decorate(call, list)
	}
	if err == nil && list[0].instead != nil {
		err = s.decorate(call, list[0].instead)
	}
	return list, err
}

// decorate adds to messages what the payload has besides text.
func (s *say) decorate(call core.Call, list []outgoing) (err error) {
	first, last := &list[0], &list[len(list)-1]
	if s.ReplyTo != "" {
		first.Reference = map[string]any{"message_id": s.ReplyTo, "fail_if_not_exists": false}
	}
	if last.Embeds, err = embeds(s.Embeds); err == nil {
		last.Components, err = components(s.buttons(), owner(call))
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
	return err
}

// words cuts the text into messages; without a text there is one message for the embeds.
// The flag against previews would hide these, so links are written without previews.
func (a *actions) words(s *say) ([]outgoing, error) {
	text := strings.TrimSpace(strings.ToValidUTF8(s.Text, "\uFFFD"))
	w := markup.Writer{Quiet: len(s.Embeds) > 0 && !a.set.Previews}
	texts := w.Messages(text)
	if !visible(text) {
		text, texts = "", nil
	}
	switch {
	case len(texts) == 0 && len(s.Embeds) == 0:
		return nil, core.Errorf(core.Invalid, "text is empty: say something, or leave the action out")
	case len(texts) == 0:
		return []outgoing{{}}, nil
	case len(texts) == 1:
		return []outgoing{{Content: texts[0], text: text}}, nil
	}
	var list []outgoing
	for _, t := range texts[:min(len(texts), maxMessages+1)] {
		list = append(list, outgoing{Content: t, text: t})
	}
	switch long := len(list) > maxMessages; {
	case len(list) > a.set.LongParts && a.set.LongAnswers == "file":
		file := asFile(text, w.Text(markdown.Split(text, 300, markdown.UTF16)[0]))
		if !long {
			file.instead = list
		}
		return []outgoing{file}, nil
	case long:
		return nil, core.Errorf(core.Invalid, "text is too long: %d messages would be needed", len(texts))
	}
	return list, nil
}

// visible reports whether a text has a visible character.
func visible(text string) bool {
	return strings.ContainsFunc(text, func(r rune) bool {
		return !unicode.IsSpace(r) && !unicode.IsControl(r) && !unicode.Is(unicode.Cf, r)
	})
}

// asFile makes a long answer a file, with its beginning as the message.
func asFile(text, beginning string) outgoing {
	file := rest.File{Name: "answer.md", Data: []byte(text), MIME: "text/markdown"}
	return outgoing{Content: cut(beginning, 1000) + "\n…", text: text, files: []rest.File{file}}
}

// embeds checks and renders the embeds of a message.
func embeds(list []sayEmbed) ([]sayEmbed, error) {
	if len(list) > maxEmbeds {
		return nil, core.Errorf(core.Invalid, "embeds: at most %d are allowed", maxEmbeds)
	}
	list = slices.Clone(list)
	total := 0
	for i := range list {
		e := &list[i]
		e.Description, e.Color = markup.Text(e.Description), min(max(e.Color, 0), 0xffffff)
		size, err := e.size()
		if err != nil {
			return nil, core.Errorf(core.Invalid, "embeds[%d]%v", i, err)
		}
		total += size
	}
	if total > maxEmbedded {
		return nil, core.Errorf(core.Invalid, "embeds: %d characters are allowed in all, not %d", maxEmbedded, total)
	}
	return list, nil
}
