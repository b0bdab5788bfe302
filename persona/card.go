package persona

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"synthbot/core/lore"
	"synthbot/core/txt"
)

// The JSON of a card. Cards are written by many programs, so a value of an unexpected type
// counts as missing.
type (
	cardData struct {
		Name         word            `json:"name"`
		Nickname     word            `json:"nickname"`
		Description  word            `json:"description"`
		Personality  word            `json:"personality"`
		Scenario     word            `json:"scenario"`
		First        word            `json:"first_mes"`
		Example      word            `json:"mes_example"`
		SystemPrompt word            `json:"system_prompt"`
		PostHistory  word            `json:"post_history_instructions"`
		Book         json.RawMessage `json:"character_book"`
	}
)

func parseJSON(file string, data []byte) (*Persona, error) {
	var top struct {
		Spec word            `json:"spec"`
		Data json.RawMessage `json:"data"`
	}
	if err := json.Unmarshal(data, &top); err != nil {
		return nil, fmt.Errorf("%s:%s: not JSON: %w: get the card again", file, line(data, err), err)
	}
	inner := json.RawMessage(data)
	if bytes.HasPrefix(bytes.TrimSpace(top.Data), []byte("{")) {
		inner = top.Data
	}
	var d cardData
	if err := json.Unmarshal(inner, &d); err != nil {
		return nil, fmt.Errorf("%s: card: %w", file, err)
	}
	if txt.Line(string(d.Name)) == "" {
		return nil, fmt.Errorf("%s: %s", file, nameless(string(top.Spec)))
	}
	var book lore.Book
	if len(d.Book) > 0 {
		var err error
		book, err = lore.Read(d.Book)
		if err != nil {
			return nil, fmt.Errorf("%s: data.character_book: %w", file, err)
		}
	}
	return &Persona{
		Name:            txt.Clip(txt.Line(string(d.Name)), maxName),
		Nickname:        txt.Clip(txt.Line(string(d.Nickname)), maxName),
		Profile:         join(d.Description, d.Scenario),
		Personality:     join(d.Personality),
		Guidance:        join(d.SystemPrompt, d.PostHistory),
		ExampleDialogue: join(d.Example),
		Greeting:        join(d.First),
		Book:            book,
	}, nil
}

func nameless(spec string) string {
	if strings.HasPrefix(spec, "chara_card") {
		return "data.name: missing: add the name of the character"
	}
	return "no character card: it has neither data.name nor name; use a card (V1, V2 or V3) or a persona file (.toml)"
}

// line returns the line of a JSON error.
func line(data []byte, err error) string {
	offset := len(data)
	if s, ok := errors.AsType[*json.SyntaxError](err); ok {
		offset = min(int(s.Offset), len(data))
	}
	return strconv.Itoa(1 + strings.Count(string(data[:offset]), "\n"))
}

// join joins texts, clipped to the limit of a field.
func join(texts ...word) string {
	var kept []string
	for _, t := range texts {
		text := lines(string(t))
		if text != "" {
			kept = append(kept, text)
		}
	}
	return txt.Clip(strings.Join(kept, "\n"), maxField)
}

// word is a text. A list of texts is joined.
type word string

// UnmarshalJSON implements json.Unmarshaler.
func (w *word) UnmarshalJSON(data []byte) error {
	var value any
	_ = json.Unmarshal(data, &value) // it is JSON
	switch v := value.(type) {
	case string:
		*w = word(v)
	case []any:
		var texts []string
		for _, one := range v {
			text, ok := one.(string)
			if ok && txt.Line(text) != "" {
				texts = append(texts, text)
			}
		}
		*w = word(strings.Join(texts, "\n"))
	}
	return nil
}
