package lorebook

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"synthbot/core/lore"
	"synthbot/core/txt"
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

// Read reads the book of a card or of a lorebook.
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
	if top.Entries == nil {
		data = top.Book
	}
	b, err := lore.Read(data)
	if err != nil || len(b.Entries) == 0 {
		return Book{}, errors.New("holds no lore: neither entries nor a character_book with entries")
	}
	return b, nil
}

// clean drops what has no place in a text and cuts it, visibly.
func clean(s string, most int) string { return txt.ClipBytes(strings.TrimSpace(txt.Lines(s)), most) }
