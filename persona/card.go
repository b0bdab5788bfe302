package persona

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"synthbot/core/lore"
	"synthbot/core/txt"
)

// Limits of the lore of a card.
const (
	maxEntries = 5000 // entries of a book
	maxKeys    = 200  // keys of an entry
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
	bookData struct {
		Name        word            `json:"name"`
		Description word            `json:"description"`
		ScanDepth   number          `json:"scan_depth"`
		TokenBudget number          `json:"token_budget"`
		Recursive   flag            `json:"recursive_scanning"`
		Entries     json.RawMessage `json:"entries"`
	}
	// entryData has the names of cards, and those of world books that differ.
	entryData struct {
		ID             number `json:"id"`
		UID            number `json:"uid"`
		Name           word   `json:"name"`
		Comment        word   `json:"comment"`
		Keys           words  `json:"keys"`
		Key            words  `json:"key"`
		SecondaryKeys  words  `json:"secondary_keys"`
		KeySecondary   words  `json:"keysecondary"`
		Content        word   `json:"content"`
		Enabled        flag   `json:"enabled"`
		Disable        flag   `json:"disable"`
		Constant       flag   `json:"constant"`
		Selective      flag   `json:"selective"`
		CaseSensitive  flag   `json:"case_sensitive"`
		CaseSensitive2 flag   `json:"caseSensitive"`
		Regex          flag   `json:"use_regex"`
		Order          number `json:"insertion_order"`
		Order2         number `json:"order"`
		Priority       number `json:"priority"`
		Position       word   `json:"position"`
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
	if oneLine(string(d.Name)) == "" {
		return nil, fmt.Errorf("%s: %s", file, nameless(string(top.Spec)))
	}
	b, err := book(d.Book)
	if err != nil {
		return nil, fmt.Errorf("%s: data.character_book: %w", file, err)
	}
	return &Persona{
		Name:            txt.Clip(oneLine(string(d.Name)), maxName),
		Nickname:        txt.Clip(oneLine(string(d.Nickname)), maxName),
		Profile:         join(d.Description, d.Scenario),
		Personality:     join(d.Personality),
		Guidance:        join(d.SystemPrompt, d.PostHistory),
		ExampleDialogue: join(d.Example),
		Greeting:        join(d.First),
		Book:            b,
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

// book reads the lore of a card; nil if it has none.
func book(data json.RawMessage) (*lore.Book, error) {
	var d bookData
	if len(data) == 0 || string(data) == "null" {
		return nil, nil
	}
	if json.Unmarshal(data, &d) != nil {
		return nil, errors.New("not an object: remove it, or get the card again")
	}
	all, err := entries(d.Entries)
	if err != nil || len(all) == 0 {
		return nil, err
	}
	b := &lore.Book{
		Name: txt.Clip(oneLine(string(d.Name)), maxName), Description: join(d.Description),
		ScanDepth: int(d.ScanDepth), TokenBudget: int(d.TokenBudget), Recursive: d.Recursive.or(false),
	}
	for _, raw := range all[:min(len(all), maxEntries)] {
		var e entryData
		if json.Unmarshal(raw, &e) == nil && e.Content != "" {
			b.Entries = append(b.Entries, e.entry())
		}
	}
	return b, nil
}

// entries reads a list, or an object whose keys number its entries.
func entries(data json.RawMessage) (all []json.RawMessage, err error) {
	var byNumber map[string]json.RawMessage
	switch {
	case len(data) == 0 || json.Unmarshal(data, &all) == nil:
		return all, nil
	case json.Unmarshal(data, &byNumber) != nil:
		return nil, errors.New("entries: neither a list nor an object: remove it, or get the card again")
	}
	keys := slices.SortedFunc(maps.Keys(byNumber), func(a, b string) int {
		n, _ := strconv.Atoi(a) // 0 if it is not a number
		m, _ := strconv.Atoi(b)
		return cmp.Or(cmp.Compare(n, m), cmp.Compare(a, b))
	})
	for _, key := range keys {
		all = append(all, byNumber[key])
	}
	return all, nil
}

func (e *entryData) entry() lore.Entry {
	return lore.Entry{
		ID: int(e.ID + e.UID), Content: join(e.Content), Position: txt.Clip(oneLine(string(e.Position)), maxName),
		Name: txt.Clip(oneLine(string(e.Name)), maxName), Comment: txt.Clip(oneLine(string(e.Comment)), maxItem),
		Keys: append(e.Keys, e.Key...), SecondaryKeys: append(e.SecondaryKeys, e.KeySecondary...),
		Enabled: e.Enabled.or(true) && !e.Disable.or(false), Constant: e.Constant.or(false),
		Selective: e.Selective.or(false), Regex: e.Regex.or(false),
		CaseSensitive: e.CaseSensitive.or(e.CaseSensitive2.or(false)),
		Order:         int(e.Order + e.Order2), Priority: int(e.Priority),
	}
}

// Tolerant values.
type (
	word   string
	words  []string
	number int
	flag   struct{ set, value bool }
)

// UnmarshalJSON takes a string; a list of strings is joined.
func (w *word) UnmarshalJSON(data []byte) error {
	var s string
	var l words
	if json.Unmarshal(data, &s) == nil {
		*w = word(s)
	} else if l.UnmarshalJSON(data) == nil {
		*w = word(strings.Join(l, "\n"))
	}
	return nil
}

// UnmarshalJSON takes a list and keeps its strings; one string is a list of one.
func (l *words) UnmarshalJSON(data []byte) error {
	var all []json.RawMessage
	if json.Unmarshal(data, &all) != nil {
		all = []json.RawMessage{data}
	}
	for _, raw := range all[:min(len(all), maxKeys)] {
		var s string
		if json.Unmarshal(raw, &s) == nil && oneLine(s) != "" {
			*l = append(*l, txt.Clip(oneLine(s), maxItem))
		}
	}
	return nil
}

// UnmarshalJSON takes a number, also as a string.
func (n *number) UnmarshalJSON(data []byte) error {
	f, err := strconv.ParseFloat(strings.Trim(string(data), `"`), 64)
	if err == nil && math.Abs(f) <= math.MaxInt32 {
		*n = number(f)
	}
	return nil
}

// UnmarshalJSON takes true and false.
func (f *flag) UnmarshalJSON(data []byte) error {
	f.set = json.Unmarshal(data, &f.value) == nil && string(data) != "null"
	return nil
}

func (f flag) or(unset bool) bool {
	if f.set {
		return f.value
	}
	return unset
}
