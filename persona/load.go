package persona

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"synthbot/config"
)

// Limits of a file, in bytes.
const (
	maxFile = 32 << 20 // a PNG card
	maxText = 8 << 20  // a JSON card, the card in a PNG
)

// Load reads a persona file or a card; its content decides which. The error has a problem and its fix on each line.
func Load(file string) (*Persona, error) {
	data, err := ReadFile(file)
	if err != nil {
		return nil, err
	}
	return Parse(file, data)
}

// ReadFile returns the content of a persona file or card, if it is one that Parse might take.
func ReadFile(file string) ([]byte, error) {
	info, err := os.Stat(file)
	if err != nil {
		return nil, fmt.Errorf("%s: %w: check the path", file, withoutPath(err))
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s: not a file: name a persona file (.toml) or a character card (.json, .png)", file)
	}
	if info.Size() > maxFile {
		return nil, tooLarge(file, info.Size(), maxFile)
	}
	f, err := os.Open(file)
	if err != nil {
		return nil, fmt.Errorf("%s: %w: let synthbot read it", file, withoutPath(err))
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxFile)) // it may have grown since
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, withoutPath(err))
	}
	return data, nil
}

// withoutPath returns a file error without the path.
func withoutPath(err error) error {
	if p, ok := errors.AsType[*os.PathError](err); ok {
		return p.Err
	}
	return err
}

func tooLarge(file string, size, limit int64) error {
	return fmt.Errorf("%s: %d bytes, at most %d are allowed: is that the right file?", file, size, limit)
}

const byteOrderMark = "\ufeff" // may begin a text

// Parse is Load for a file that has been read.
func Parse(file string, data []byte) (*Persona, error) {
	if bytes.HasPrefix(data, []byte(pngSignature)) {
		return parsePNG(file, data)
	}
	data = bytes.TrimPrefix(data, []byte(byteOrderMark))
	object := bytes.HasPrefix(bytes.TrimSpace(data), []byte("{"))
	problem := unreadableReason(data)
	switch {
	case problem != "":
		return nil, fmt.Errorf("%s: %s", file, problem)
	case len(data) > maxText:
		return nil, tooLarge(file, int64(len(data)), maxText)
	case object:
		return parseJSON(file, data)
	}
	switch strings.ToLower(filepath.Ext(file)) {
	case ".png":
		return nil, fmt.Errorf("%s: the name ends with .png, but it is not a PNG picture: get the card again", file)
	case ".json":
		return nil, fmt.Errorf("%s: the name ends with .json, but it is not a JSON object: get the card again", file)
	}
	if len(data) > config.MaxFile {
		return nil, tooLarge(file, int64(len(data)), config.MaxFile)
	}
	p := new(Persona)
	if err := config.Read(file, data, p, config.Options{}); err != nil {
		return nil, errors.New(err.Error()) // without its type: these are not faults of the configuration
	}
	return p, nil
}

// unreadableReason returns why a file is neither a persona nor a card, and a fix; "" if it may be.
func unreadableReason(data []byte) string {
	switch {
	case len(bytes.TrimSpace(data)) == 0:
		return "the file is empty: a persona needs at least name = \"…\""
	case bytes.HasPrefix(data, []byte("PK\x03\x04")):
		return "a ZIP or CHARX archive: unpack it and name its card.json"
	case bytes.HasPrefix(data, []byte("\xff\xd8\xff")):
		return "a JPEG picture, which cannot hold a character card: get the card as PNG or JSON"
	case bytes.HasPrefix(data, []byte("RIFF")) && len(data) > 12 && string(data[8:12]) == "WEBP":
		return "a WebP picture, which is not read: get the card as PNG or JSON"
	case !utf8.Valid(data) || bytes.IndexByte(data, 0) >= 0:
		return "neither a TOML persona nor a character card as JSON or PNG: save it as UTF-8, or name another file"
	}
	return ""
}
