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
)

// Limits of a file, in bytes.
const (
	maxFile = 32 << 20 // a PNG card
	maxText = 8 << 20  // a persona file, a JSON card, the card inside of a PNG
)

// Load reads a persona file or a character card; what the file is, its content
// says and not its name. The error tells every fault and its mend, one a line.
func Load(file string) (*Persona, error) {
	data, err := readFile(file)
	if err != nil {
		return nil, err
	}
	return parse(file, data)
}

func readFile(file string) ([]byte, error) {
	info, err := os.Stat(file)
	if err != nil {
		return nil, fmt.Errorf("%s: %w: check persona.path", file, reason(err))
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s: not a file: name a persona file (.toml) or a character card (.json, .png)", file)
	}
	if info.Size() > maxFile {
		return nil, tooLarge(file, info.Size(), maxFile)
	}
	f, err := os.Open(file)
	if err != nil {
		return nil, fmt.Errorf("%s: %w: let synthbot read it", file, reason(err))
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1)) // it may have grown since
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, reason(err))
	}
	if len(data) > maxFile {
		return nil, tooLarge(file, int64(len(data)), maxFile)
	}
	return data, nil
}

// reason is a file error without the path, which stands before it already.
func reason(err error) error {
	if p, ok := errors.AsType[*os.PathError](err); ok {
		return p.Err
	}
	return err
}

func tooLarge(file string, size, limit int64) error {
	return fmt.Errorf("%s: %d bytes, at most %d are allowed: is that the right file?", file, size, limit)
}

// byteOrderMark may stand before a text.
const byteOrderMark = "\ufeff"

func parse(file string, data []byte) (*Persona, error) {
	if bytes.HasPrefix(data, []byte(signature)) {
		return parsePNG(file, data)
	}
	data = bytes.TrimPrefix(data, []byte(byteOrderMark))
	object := bytes.HasPrefix(bytes.TrimSpace(data), []byte("{"))
	switch kind := foreign(data); {
	case kind != "":
		return nil, fmt.Errorf("%s: %s", file, kind)
	case len(data) > maxText:
		return nil, tooLarge(file, int64(len(data)), maxText)
	case object:
		return parseJSON(file, data)
	}
	switch strings.ToLower(filepath.Ext(file)) {
	case ".png":
		return nil, fmt.Errorf("%s: it is called .png, and is no PNG picture: get the card again", file)
	case ".json":
		return nil, fmt.Errorf("%s: it is called .json, and holds no JSON object: get the card again", file)
	}
	return parseTOML(file, data)
}

// foreign says what a file is that is none of ours, with the mend.
func foreign(data []byte) string {
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
