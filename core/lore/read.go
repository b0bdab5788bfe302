package lore

import (
	"cmp"
	"encoding/json"
	"errors"
	"maps"
	"math"
	"strconv"
	"strings"

	"synthbot/core/sorting"
)

// Read reads a character_book of a character card, or a world-info export. Books are written
// by many programs: a value of an unexpected type counts as missing, and an entry without
// content is left out. Texts are as they are in the file.
func Read(data []byte) (Book, error) {
	var raw struct {
		ScanDepth   number          `json:"scan_depth"`
		TokenBudget number          `json:"token_budget"`
		Recursive   flag            `json:"recursive_scanning"`
		Entries     json.RawMessage `json:"entries"`
	}
	if json.Unmarshal(data, &raw) != nil {
		return Book{}, errors.New("not an object: remove it, or get the card again")
	}
	all, err := entries(raw.Entries)
	if err != nil {
		return Book{}, err
	}
	b := Book{ScanDepth: int(raw.ScanDepth), TokenBudget: int(raw.TokenBudget), Recursive: raw.Recursive == yes}
	for _, one := range all {
		var e entryData
		if json.Unmarshal(one, &e) == nil && e.Content != "" {
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
	keys := sorting.Sorted(maps.Keys(byNumber), func(a, b string) int {
		n, _ := strconv.Atoi(a) // 0 if it is not a number
		m, _ := strconv.Atoi(b)
		return cmp.Or(cmp.Compare(n, m), cmp.Compare(a, b))
	})
	for _, key := range keys {
		all = append(all, byNumber[key])
	}
	return all, nil
}

// entryData has the names of cards, and those of world-info exports that differ.
type entryData struct {
	Keys           list   `json:"keys"`
	Key            list   `json:"key"`
	SecondaryKeys  list   `json:"secondary_keys"`
	KeySecondary   list   `json:"keysecondary"`
	Content        text   `json:"content"`
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
}

func (e *entryData) entry() Entry {
	return Entry{
		Keys: append(e.Keys, e.Key...), SecondaryKeys: append(e.SecondaryKeys, e.KeySecondary...),
		Content: string(e.Content), Enabled: e.Enabled != no && e.Disable != yes, Constant: e.Constant == yes,
		Selective: e.Selective == yes, CaseSensitive: cmp.Or(e.CaseSensitive, e.CaseSensitive2) == yes,
		Regex: e.Regex == yes, Order: int(e.Order + e.Order2), Priority: int(e.Priority),
	}
}

// Tolerant values.
type (
	text   string
	list   []string
	number int32
	flag   int
)

// Values of a flag; its zero value is missing.
const (
	yes flag = 1 + iota
	no
)

// UnmarshalJSON takes a string.
func (t *text) UnmarshalJSON(data []byte) error {
	var s string
	if json.Unmarshal(data, &s) == nil {
		*t = text(s)
	}
	return nil
}

// UnmarshalJSON takes a list and keeps its strings; one string has commas between keys.
func (l *list) UnmarshalJSON(data []byte) error {
	var all []text
	var one string
	if json.Unmarshal(data, &all) != nil && json.Unmarshal(data, &one) == nil {
		for key := range strings.SplitSeq(one, ",") {
			all = append(all, text(key))
		}
	}
	for _, key := range all {
		k := strings.TrimSpace(string(key))
		if k != "" {
			*l = append(*l, k)
		}
	}
	return nil
}

// UnmarshalJSON takes a number, also as a string.
func (n *number) UnmarshalJSON(data []byte) error {
	f, err := strconv.ParseFloat(strings.Trim(string(data), `" `), 64)
	if err == nil && !math.IsNaN(f) {
		*n = number(max(min(f, 1e6), -1e6))
	}
	return nil
}

// UnmarshalJSON takes true, false, and what means the same.
func (f *flag) UnmarshalJSON(data []byte) error {
	switch strings.ToLower(strings.Trim(string(data), `" `)) {
	case "true", "1", "yes":
		*f = yes
	case "false", "0", "no":
		*f = no
	}
	return nil
}
