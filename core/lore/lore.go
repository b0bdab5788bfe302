// Package lore reads collections of lore (background knowledge) from character cards and files.
package lore

import (
	"cmp"
	"encoding/json"
	"errors"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"synthbot/core/sorting"
)

// Book is a collection of lore. An entry is shown to a model when one of its keys comes up.
// Texts may contain {{char}} and {{user}}.
type Book struct {
	ScanDepth   int // messages that are searched for keys; 0: not set
	TokenBudget int // 0: not set
	Recursive   bool
	Entries     []Entry
}

// Entry is one piece of lore.
type Entry struct {
	Keys          []string
	SecondaryKeys []string
	Content       string
	Enabled       bool
	Constant      bool // always shown
	Selective     bool // one of SecondaryKeys must come up too
	CaseSensitive bool
	Regex         bool // Keys are regular expressions
	Order         int  // lower is shown earlier
	Priority      int  // lower is left out earlier
}

// Read reads a character_book of a character card, or a world-info export. Books are written by many programs: a value
// of an unexpected type counts as missing, and an entry without content is left out. Texts are as they are in the file.
func Read(data []byte) (Book, error) {
	raw, ok := readObject(data)
	if !ok {
		return Book{}, errors.New("not an object: remove it, or get the card again")
	}
	all, err := entries(raw["entries"])
	if err != nil {
		return Book{}, err
	}
	b := Book{ScanDepth: raw.number("scan_depth"), TokenBudget: raw.number("token_budget")}
	b.Recursive = raw.flag("recursive_scanning") == yes
	for _, one := range all {
		e, _ := readObject(one)
		if e.text("content") != "" {
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

// object is a JSON object with lower-case keys. Its methods return zero for a value of an unexpected type.
type object map[string]json.RawMessage

func readObject(data []byte) (o object, ok bool) {
	var raw map[string]json.RawMessage
	err := json.Unmarshal(data, &raw)
	o = make(object, len(raw))
	for _, key := range slices.Sorted(maps.Keys(raw)) { // if keys differ in case only, the lower-case one wins
		o[strings.ToLower(key)] = raw[key]
	}
	return o, err == nil
}

// entry reads the keys of cards and, where they differ, those of world-info exports.
func (o object) entry() Entry {
	return Entry{
		Content: o.text("content"), Keys: o.list("keys", "key"),
		SecondaryKeys: o.list("secondary_keys", "keysecondary"),
		Enabled:       o.flag("enabled") != no && o.flag("disable") != yes, Constant: o.flag("constant") == yes,
		Selective: o.flag("selective") == yes, Regex: o.flag("use_regex") == yes,
		CaseSensitive: cmp.Or(o.flag("case_sensitive"), o.flag("casesensitive")) == yes,
		Order:         o.number("insertion_order") + o.number("order"), Priority: o.number("priority"),
	}
}

func (o object) text(name string) (s string) {
	_ = json.Unmarshal(o[name], &s)
	return s
}

// list returns the strings of lists. A single string is split at commas, unless it is a regular expression.
func (o object) list(names ...string) (keys []string) {
	for _, name := range names {
		var all []json.RawMessage
		one := []string{o.text(name)}
		if o.flag("use_regex") != yes {
			one = strings.Split(one[0], ",")
		}
		_ = json.Unmarshal(o[name], &all)
		for _, raw := range all {
			one = append(one, object{name: raw}.text(name))
		}
		for _, key := range one {
			key = strings.TrimSpace(key)
			if key != "" {
				keys = append(keys, key)
			}
		}
	}
	return keys
}

// number returns a number, which may be in a string.
func (o object) number(name string) int {
	f, err := strconv.ParseFloat(o.unquoted(name), 64)
	if err != nil || math.IsNaN(f) {
		return 0
	}
	return int(max(min(f, 1e6), -1e6))
}

// Values of a flag; 0 if it is missing.
const (
	yes = 1 + iota
	no
)

// flag reads true, false, and other spellings of them.
func (o object) flag(name string) int {
	switch strings.ToLower(o.unquoted(name)) {
	case "true", "1", "yes":
		return yes
	case "false", "0", "no":
		return no
	}
	return 0
}

func (o object) unquoted(name string) string { return strings.Trim(string(o[name]), `" `) }
