package persona

import (
	"bytes"
	"compress/zlib"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"

	"synthbot/core/lore"
	"synthbot/core/txt"
)

// The JSON of a card. Cards are written by many programs, so a value of an unexpected type counts as missing.
type cardData struct {
	Name         cardText        `json:"name"`
	Nickname     cardText        `json:"nickname"`
	Description  cardText        `json:"description"`
	Personality  cardText        `json:"personality"`
	Scenario     cardText        `json:"scenario"`
	First        cardText        `json:"first_mes"`
	Example      cardText        `json:"mes_example"`
	SystemPrompt cardText        `json:"system_prompt"`
	PostHistory  cardText        `json:"post_history_instructions"`
	Book         json.RawMessage `json:"character_book"`
}

func parseJSON(file string, data []byte) (*Persona, error) {
	var top struct {
		Spec cardText        `json:"spec"`
		Data json.RawMessage `json:"data"`
	}
	if err := json.Unmarshal(data, &top); err != nil {
		return nil, fmt.Errorf("%s:%s: not JSON: %w: get the card again", file, lineOf(data, err), err)
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
		return nil, fmt.Errorf("%s: %s", file, noName(string(top.Spec)))
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

func noName(spec string) string {
	if strings.HasPrefix(spec, "chara_card") {
		return "data.name: missing: add the name of the character"
	}
	return "no character card: it has neither data.name nor name; use a card (V1, V2 or V3) or a persona file (.toml)"
}

func lineOf(data []byte, err error) string {
	offset := len(data)
	if s, ok := errors.AsType[*json.SyntaxError](err); ok {
		offset = min(int(s.Offset), len(data))
	}
	return strconv.Itoa(1 + strings.Count(string(data[:offset]), "\n"))
}

func join(texts ...cardText) string {
	var kept []string
	for _, t := range texts {
		text := lines(string(t))
		if text != "" {
			kept = append(kept, text)
		}
	}
	return txt.Clip(strings.Join(kept, "\n"), maxField)
}

// cardText is a text. A list of texts is joined.
type cardText string

func (w *cardText) UnmarshalJSON(data []byte) error {
	var value any
	_ = json.Unmarshal(data, &value) // it is valid JSON
	switch v := value.(type) {
	case string:
		*w = cardText(v)
	case []any:
		var texts []string
		for _, one := range v {
			text, ok := one.(string)
			if ok && txt.Line(text) != "" {
				texts = append(texts, text)
			}
		}
		*w = cardText(strings.Join(texts, "\n"))
	}
	return nil
}

const (
	pngSignature = "\x89PNG\r\n\x1a\n" // begins every PNG
	chunkFrame   = 12                  // bytes of a chunk besides its data: length, type and checksum
)

// parsePNG reads the first valid card in a PNG. Those with the keyword ccv3 come before chara.
func parsePNG(file string, data []byte) (*Persona, error) {
	texts, err := pngTexts(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	var faults []error
	for _, keyword := range []string{"ccv3", "chara"} {
		for _, t := range texts {
			if t.keyword != keyword {
				continue
			}
			p, err := t.card(file)
			if err == nil {
				return p, nil
			}
			faults = append(faults, err)
		}
	}
	if len(faults) == 0 {
		return nil, fmt.Errorf("%s: a PNG without a character card (no chara or ccv3 text): export the card again, "+
			"and send it as a file so that nothing strips it", file)
	}
	return nil, errors.Join(faults...)
}

// textChunk is an encoded text chunk that may contain a card.
type textChunk struct {
	kind, keyword string
	body          []byte // after the keyword
}

// pngTexts checks the lengths and checksums of all chunks of a PNG, and returns the texts that may contain a card.
func pngTexts(data []byte) (texts []textChunk, err error) {
	first := true
	err = eachChunk(data, func(kind string, body, _ []byte) error {
		if first && kind != "IHDR" {
			return fmt.Errorf("damaged PNG: it begins with %q and not with IHDR: get the card again", kind)
		}
		first = false
		if kind == "tEXt" || kind == "zTXt" || kind == "iTXt" {
			name, rest, ok := bytes.Cut(body, []byte{0})
			keyword := strings.ToLower(string(name))
			if ok && (keyword == "ccv3" || keyword == "chara") {
				texts = append(texts, textChunk{kind, keyword, rest})
			}
		}
		return nil
	})
	return texts, err
}

// eachChunk calls use for each chunk of a PNG, with its data and with the whole chunk, up to the last one or an error.
func eachChunk(data []byte, use func(kind string, body, whole []byte) error) error {
	for at := len(pngSignature); ; {
		rest := data[at:]
		if len(rest) < chunkFrame {
			const text = "truncated PNG: it ends at byte %d without its last chunk: get the card again"
			return fmt.Errorf(text, len(data))
		}
		length, kind := uint64(binary.BigEndian.Uint32(rest)), string(rest[4:8])
		if length > uint64(len(rest)-chunkFrame) {
			const text = "truncated PNG: chunk %q at byte %d has %d of %d bytes: get the card again"
			return fmt.Errorf(text, kind, at, len(rest)-chunkFrame, length)
		}
		end := 8 + int(length)
		if crc32.ChecksumIEEE(rest[4:end]) != binary.BigEndian.Uint32(rest[end:]) {
			const text = "damaged PNG: the checksum of chunk %q at byte %d is wrong: get the card again"
			return fmt.Errorf(text, kind, at)
		}
		if err := use(kind, rest[8:end], rest[:end+4]); err != nil || kind == "IEND" {
			return err
		}
		at += end + 4
	}
}

func (t textChunk) card(file string) (*Persona, error) {
	where := fmt.Sprintf("%s: %s text", file, t.keyword)
	packed, err := t.text()
	if err != nil {
		return nil, fmt.Errorf("%s: %w: export the card again", where, err)
	}
	data, err := decodeBase64(packed)
	if err != nil {
		return nil, fmt.Errorf("%s: not base64: %w: export the card again", where, err)
	}
	data = bytes.TrimPrefix(data, []byte(byteOrderMark))
	if !utf8.Valid(data) || !json.Valid(data) {
		return nil, fmt.Errorf("%s: no JSON inside: export the card again", where)
	}
	return parseJSON(where, data)
}

func (t textChunk) text() ([]byte, error) {
	switch {
	case t.kind == "tEXt":
		return checkSize(t.body)
	case len(t.body) < 2:
		return nil, errors.New("the chunk is too short")
	case t.kind == "zTXt":
		return inflate(t.body[1:])
	}
	compressed, rest := t.body[0] == 1, t.body[2:]
	_, rest, _ = bytes.Cut(rest, []byte{0}) // language
	_, rest, ok := bytes.Cut(rest, []byte{0})
	switch {
	case !ok:
		return nil, errors.New("the chunk is too short")
	case compressed:
		return inflate(rest)
	}
	return checkSize(rest)
}

func checkSize(text []byte) ([]byte, error) {
	if len(text) > maxText {
		return nil, fmt.Errorf("the card is larger than %d bytes", maxText)
	}
	return text, nil
}

func inflate(packed []byte) ([]byte, error) {
	z, err := zlib.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, fmt.Errorf("compressed text: %w", err)
	}
	text, err := io.ReadAll(io.LimitReader(z, maxText+1))
	if err != nil {
		return nil, fmt.Errorf("compressed text: %w", err)
	}
	return checkSize(text)
}

// decodeBase64 reads the standard alphabet, with or without padding and white space.
func decodeBase64(text []byte) ([]byte, error) {
	clean := bytes.TrimRight(bytes.Join(bytes.Fields(text), nil), "=")
	return base64.RawStdEncoding.DecodeString(string(clean))
}

const maxSide = 4096 // pixels of the width or height of a picture: browsers decode it

// Picture returns a PNG without its texts. The error says what is wrong with it.
func Picture(data []byte) ([]byte, error) {
	if !bytes.HasPrefix(data, []byte(pngSignature)) {
		return nil, errors.New("it is not a PNG picture")
	}
	picture := []byte(pngSignature)
	err := eachChunk(data, func(kind string, body, whole []byte) error {
		isFirst := len(picture) == len(pngSignature)
		if isFirst != (kind == "IHDR") {
			return errors.New("damaged PNG: its header does not come first: get the card again")
		}
		switch kind {
		case "IHDR":
			if err := checkHeader(body); err != nil {
				return err
			}
			fallthrough
		case "PLTE", "tRNS", "gAMA", "sRGB", "IDAT", "IEND":
			picture = append(picture, whole...)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return picture, nil
}

const headerSize = 13

func checkHeader(header []byte) error {
	if len(header) != headerSize {
		return errors.New("damaged PNG: its header has the wrong size: get the card again")
	}
	width, height := binary.BigEndian.Uint32(header), binary.BigEndian.Uint32(header[4:])
	if max(width, height) > maxSide {
		const text = "its picture has %d × %d pixels, at most %d × %d are shown: scale it down"
		return fmt.Errorf(text, width, height, maxSide, maxSide)
	}
	return nil
}
