package discord

import (
	"fmt"
	"net/url"

	"synthbot/core/markdown"
)

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

// size checks an embed and returns its share of maxEmbedded. The error begins with the
// name of what is wrong.
func (e *sayEmbed) size() (int, error) {
	title, text := markdown.UTF16(e.Title), markdown.UTF16(e.Description)
	switch {
	case title > maxEmbedTitle:
		return 0, fmt.Errorf(".title: at most %d characters are allowed", maxEmbedTitle)
	case text > maxEmbedText:
		return 0, fmt.Errorf(".description: at most %d characters are allowed", maxEmbedText)
	case len(e.Fields) > maxEmbedFields:
		return 0, fmt.Errorf(".fields: at most %d are allowed", maxEmbedFields)
	case title+text+len(e.Fields) == 0:
		return 0, fmt.Errorf(": needs a title, a description or fields")
	case e.URL != "" && !webAddress(e.URL):
		return 0, fmt.Errorf(".url: must begin with https://")
	}
	total := title + text
	for i, f := range e.Fields {
		name, value := markdown.UTF16(f.Name), markdown.UTF16(f.Value)
		if !visible(f.Name) || !visible(f.Value) || name > maxFieldName || value > maxFieldValue {
			return 0, fmt.Errorf(".fields[%d]: needs a name of at most %d and a value of at most %d characters",
				i, maxFieldName, maxFieldValue)
		}
		total += name + value
	}
	return total, nil
}

func webAddress(text string) bool {
	u, err := url.Parse(text)
	return err == nil && (u.Scheme == "https" || u.Scheme == "http") && u.Host != ""
}
