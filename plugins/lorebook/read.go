package lorebook

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// Bounds of a book that is read.
const (
	maxFile    = 8 << 20
	maxEntries = 5000
	maxKeys    = 200  // of an entry
	maxKey     = 300  // bytes
	maxContent = 1900 // bytes; more would never fit
)

// Load reads a book. The error names the file, and what would be right.
func Load(file string) (Book, error) {
	f, err := os.Open(file)
	if err != nil {
		return Book{}, fmt.Errorf("lorebook: %w", err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return Book{}, fmt.Errorf("lorebook: %w", err)
	}
	b, err := Read(data)
	if err != nil {
		return Book{}, fmt.Errorf("lorebook %s: %w", filepath.Base(file), err)
	}
	return b, nil
}

// Read reads a book out of a card's or a lorebook's JSON. Books are written by
// many programs: a value of a type that makes no sense counts as left out, and
// what is too long is cut.
func Read(data []byte) (Book, error) {
	if len(data) > maxFile {
		return Book{}, fmt.Errorf("is over %d MiB", maxFile>>20)
	}
	data = bytes.TrimPrefix(data, []byte("\uFEFF"))
	var top struct {
		Book    json.RawMessage `json:"character_book"`
		Data    json.RawMessage `json:"data"`
		Entries json.RawMessage `json:"entries"`
	}
	if err := json.Unmarshal(data, &top); err != nil {
		return Book{}, fmt.Errorf("is no JSON: %w", err)
	}
	if top.Entries == nil && top.Book == nil && top.Data != nil {
		data = top.Data
		if json.Unmarshal(data, &top) == nil && top.Book != nil {
			top.Entries = nil // the book goes first
		}
	}
	switch {
	case top.Entries != nil:
		return read(data)
	case top.Book != nil:
		return read(top.Book)
	}
	return Book{}, errNone
}

var errNone = errors.New("holds no lore: neither entries nor a character_book with entries")

// bookJSON and entryJSON are the formats of books; world-info exports use the names behind
// the bars.
type bookJSON struct {
	Name        text            `json:"name"`
	Description text            `json:"description"`
	ScanDepth   number          `json:"scan_depth"`
	TokenBudget number          `json:"token_budget"`
	Recursive   truth           `json:"recursive_scanning"`
	Entries     json.RawMessage `json:"entries"`
}

type entryJSON struct {
	ID             number `json:"id"`
	UID            number `json:"uid"`
	Name           text   `json:"name"`
	Comment        text   `json:"comment"`
	Keys           list   `json:"keys"`
	Key            list   `json:"key"`
	Secondary      list   `json:"secondary_keys"`
	KeySecondary   list   `json:"keysecondary"`
	Content        text   `json:"content"`
	Enabled        truth  `json:"enabled"`
	Disable        truth  `json:"disable"`
	Constant       truth  `json:"constant"`
	Selective      truth  `json:"selective"`
	CaseSensitive  truth  `json:"case_sensitive"`
	CaseSensitive2 truth  `json:"caseSensitive"`
	Regex          truth  `json:"use_regex"`
	Order          number `json:"insertion_order"`
	Order2         number `json:"order"`
	Priority       number `json:"priority"`
	Position       text   `json:"position"`
}

func read(data json.RawMessage) (Book, error) {
	var raw bookJSON
	if err := json.Unmarshal(data, &raw); err != nil {
		return Book{}, errNone
	}
	b := Book{
		Name: clean(string(raw.Name), maxKey), Description: clean(string(raw.Description), maxContent),
		ScanDepth: int(raw.ScanDepth), TokenBudget: int(raw.TokenBudget), Recursive: raw.Recursive == 1,
	}
	for _, one := range entries(raw.Entries) {
		var e entryJSON
		if json.Unmarshal(one, &e) == nil && e.Content != "" {
			b.Entries = append(b.Entries, e.entry())
		}
	}
	if len(b.Entries) == 0 {
		return Book{}, errNone
	}
	return b, nil
}

// entries are a list, or a table by numbers.
func entries(data json.RawMessage) []json.RawMessage {
	var all []json.RawMessage
	var table map[string]json.RawMessage
	if json.Unmarshal(data, &all) != nil && json.Unmarshal(data, &table) == nil {
		names := slices.SortedFunc(maps.Keys(table), func(a, b string) int {
			n, _ := strconv.Atoi(a)
			m, _ := strconv.Atoi(b)
			return cmp.Or(cmp.Compare(n, m), cmp.Compare(a, b))
		})
		for _, name := range names {
			all = append(all, table[name])
		}
	}
	return all[:min(len(all), maxEntries)]
}

func (e *entryJSON) entry() Entry {
	return Entry{
		ID: int(e.ID + e.UID), Name: clean(string(e.Name), maxKey), Comment: clean(string(e.Comment), maxKey),
		Keys: append(e.Keys, e.Key...), SecondaryKeys: append(e.Secondary, e.KeySecondary...),
		Content: string(e.Content),
		Enabled: e.Enabled != 2 && e.Disable != 1, Constant: e.Constant == 1, Selective: e.Selective == 1,
		CaseSensitive: e.CaseSensitive == 1 || e.CaseSensitive2 == 1, Regex: e.Regex == 1,
		Order: int(e.Order + e.Order2), Priority: int(e.Priority), Position: clean(string(e.Position), maxKey),
	}
}

// Tolerant values.
type (
	text   string
	list   []string
	number int32
	truth  uint8 // 0: not said; 1: yes; 2: no
)

// UnmarshalJSON takes a string.
func (t *text) UnmarshalJSON(data []byte) error {
	var s string
	if json.Unmarshal(data, &s) == nil {
		*t = text(s)
	}
	return nil
}

// UnmarshalJSON takes a list and keeps its strings; a string is keys between
// commas.
func (l *list) UnmarshalJSON(data []byte) error {
	var all []text
	var one string
	if json.Unmarshal(data, &all) != nil && json.Unmarshal(data, &one) == nil {
		for key := range strings.SplitSeq(one, ",") {
			all = append(all, text(key))
		}
	}
	for _, key := range all[:min(len(all), maxKeys)] {
		k := clean(string(key), maxKey)
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
func (t *truth) UnmarshalJSON(data []byte) error {
	switch strings.ToLower(strings.Trim(string(data), `" `)) {
	case "true", "1", "yes":
		*t = 1
	case "false", "0", "no":
		*t = 2
	}
	return nil
}

// clean drops what has no place in a text and cuts it, visibly.
func clean(s string, most int) string {
	s = strings.TrimSpace(strings.Map(func(r rune) rune {
		if r != '\n' && r != '\t' && (unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) || r == '\uFEFF') {
			return -1
		}
		return r
	}, strings.ToValidUTF8(s, "\uFFFD")))
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most-len("…")], "") + "…"
}
