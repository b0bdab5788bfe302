package discord

import (
	"fmt"
	"net/url"
	"slices"
	"strings"

	"synthbot/core"
	"synthbot/core/markdown"
	"synthbot/core/txt"
	"synthbot/interfaces/discord/markup"
)

type messagePayload struct {
	Path     core.Path      `json:"interface_path"`
	Text     string         `json:"text"`
	ReplyTo  messageID      `json:"reply_to_message_id"`
	Embeds   []embedPayload `json:"embeds"`
	Buttons  []button       `json:"buttons"`
	Suggest  []string       `json:"suggestions"`
	Silent   bool           `json:"silent"`
	Priority string         `json:"priority"`
}

type embedPayload struct {
	Title       string       `json:"title,omitempty"`
	Description string       `json:"description,omitempty"`
	URL         string       `json:"url,omitempty"`
	Color       int          `json:"color,omitempty"`
	Fields      []embedField `json:"fields,omitempty"`
}

type embedField struct {
	Name   string `json:"name"`
	Value  string `json:"value"`
	Inline bool   `json:"inline,omitempty"`
}

// compose returns the messages of a call. The same payload always gives the same messages.
func (d *Driver) compose(call core.Call, s *messagePayload) ([]outgoing, error) {
	list, err := d.split(s)
	if err != nil {
		return nil, err
	}
	err = s.decorate(call, list)
	if err == nil && list[0].instead != nil {
		err = s.decorate(call, list[0].instead)
	}
	return list, err
}

// decorate adds to messages everything in the payload except its text.
func (s *messagePayload) decorate(call core.Call, list []outgoing) (err error) {
	first, last := &list[0], &list[len(list)-1]
	if s.ReplyTo != "" {
		first.Reference = map[string]any{"message_id": s.ReplyTo, "fail_if_not_exists": false}
	}
	if last.Embeds, err = embeds(s.Embeds); err == nil {
		last.Components, err = buttonRows(s.buttons(), s.pressers(call))
	}
	for i := range list {
		list[i].Mentions = noMentions()
		switch {
		case s.Silent:
			list[i].Flags = flagSilentMessage
		case list[i].Reference != nil:
			list[i].Mentions["replied_user"] = true // notify the author of the message that is replied to
		}
		if list[i].text == "" && len(s.Embeds) > 0 {
			list[i].text = "[embed: " + strings.TrimSpace(s.Embeds[0].Title+" "+s.Embeds[0].Description) + "]"
		}
	}
	return err
}

// split splits the text into messages; without a text, there is one message for the embeds. The flag that
// suppresses previews would also hide the embeds, so links are written in a form without previews.
func (d *Driver) split(s *messagePayload) ([]outgoing, error) {
	text := strings.TrimSpace(strings.ToValidUTF8(s.Text, "\uFFFD"))
	w := markup.Writer{Quiet: len(s.Embeds) > 0 && !d.set.Previews}
	texts := w.Messages(text)
	if !txt.HasVisible(text) {
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
	case len(list) > d.set.LongParts && d.set.LongAnswers == "file":
		beginning := shorten(w.Text(markdown.Split(text, 300, markdown.UTF16)[0]), 1000)
		file := outgoing{Content: beginning + "\n…", text: text}
		file.files = []core.Upload{{Name: "answer.md", Data: []byte(text), MIME: "text/markdown"}}
		if !long {
			file.instead = list
		}
		return []outgoing{file}, nil
	case long:
		return nil, core.Errorf(core.Invalid, "text is too long: %d messages would be needed", len(texts))
	}
	return list, nil
}

// Limits of embeds, in UTF-16 units except for the counts.
const (
	maxEmbeds      = 10
	maxEmbedded    = 6000 // in all embeds of a message
	maxEmbedTitle  = 256
	maxEmbedText   = 4096
	maxEmbedFields = 25
	maxFieldName   = 256
	maxFieldValue  = 1024
)

func embeds(list []embedPayload) ([]embedPayload, error) {
	if len(list) > maxEmbeds {
		return nil, core.Errorf(core.Invalid, "embeds: at most %d are allowed", maxEmbeds)
	}
	list = slices.Clone(list)
	total := 0
	for i := range list {
		e := &list[i]
		e.Description, e.Color = markup.Writer{}.Text(e.Description), min(max(e.Color, 0), 0xffffff)
		wrong := e.wrong()
		if wrong != "" {
			return nil, core.Errorf(core.Invalid, "embeds[%d]%s", i, wrong)
		}
		total += markdown.UTF16(e.Title) + markdown.UTF16(e.Description)
		for _, f := range e.Fields {
			total += markdown.UTF16(f.Name) + markdown.UTF16(f.Value)
		}
	}
	if total > maxEmbedded {
		return nil, core.Errorf(core.Invalid, "embeds: %d characters are allowed in all, not %d", maxEmbedded, total)
	}
	return list, nil
}

// wrong returns what is wrong with an embed, beginning with the field's name; "" if nothing is.
func (e *embedPayload) wrong() string {
	switch {
	case markdown.UTF16(e.Title) > maxEmbedTitle:
		return fmt.Sprintf(".title: at most %d characters are allowed", maxEmbedTitle)
	case markdown.UTF16(e.Description) > maxEmbedText:
		return fmt.Sprintf(".description: at most %d characters are allowed", maxEmbedText)
	case len(e.Fields) > maxEmbedFields:
		return fmt.Sprintf(".fields: at most %d are allowed", maxEmbedFields)
	case e.Title+e.Description == "" && len(e.Fields) == 0:
		return ": needs a title, a description or fields"
	case e.URL != "" && !webAddress(e.URL):
		return ".url: must begin with https://"
	}
	for i, f := range e.Fields {
		long := markdown.UTF16(f.Name) > maxFieldName || markdown.UTF16(f.Value) > maxFieldValue
		if long || !txt.HasVisible(f.Name) || !txt.HasVisible(f.Value) {
			return fmt.Sprintf(".fields[%d]: needs a name of at most %d and a value of at most %d characters",
				i, maxFieldName, maxFieldValue)
		}
	}
	return ""
}

func webAddress(text string) bool {
	u, err := url.Parse(text)
	return err == nil && (u.Scheme == "https" || u.Scheme == "http") && u.Host != ""
}
