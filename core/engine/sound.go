package engine

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
)

// soundPrefix begins the address under which a sound passes through the library,
// which knows texts and pictures only; the wire makes of it what the API wants.
const soundPrefix = "sound:"

// soundFormat is the API's name for a sound's encoding
// (https://platform.openai.com/docs/guides/audio: wav and mp3; other servers
// take what is in an Ogg container, too).
func soundFormat(mime string) string {
	kind, _, _ := strings.Cut(strings.ToLower(mime), ";")
	switch name := strings.TrimPrefix(strings.TrimPrefix(strings.TrimSpace(kind), "audio/"), "x-"); name {
	case "mpeg", "mp3":
		return "mp3"
	case "wave", "wav", "vnd.wave":
		return "wav"
	case "mp4", "m4a", "aac":
		return "m4a"
	case "opus", "ogg", "":
		return "ogg"
	default:
		return name
	}
}

// amendSounds turns marked parts of messages into parts of type input_audio.
func amendSounds(body map[string]json.RawMessage) error {
	if !bytes.Contains(body["messages"], []byte(`"`+soundPrefix)) {
		return nil
	}
	var messages []map[string]json.RawMessage
	if err := json.Unmarshal(body["messages"], &messages); err != nil {
		return fmt.Errorf("messages: %w", err)
	}
	for _, m := range messages {
		var parts []map[string]json.RawMessage
		if json.Unmarshal(m["content"], &parts) != nil {
			continue // a text alone
		}
		for i := range parts {
			parts[i] = soundPart(parts[i])
		}
		set(m, "content", parts)
	}
	set(body, "messages", messages)
	return nil
}

// soundPart is the part as the API wants it, if it is a sound; else as it is.
func soundPart(part map[string]json.RawMessage) map[string]json.RawMessage {
	var image struct {
		URL string `json:"url"`
	}
	if json.Unmarshal(part["image_url"], &image) != nil {
		return part
	}
	rest, ok := strings.CutPrefix(image.URL, soundPrefix)
	if !ok {
		return part
	}
	format, data, _ := strings.Cut(rest, ";base64,")
	sound := map[string]json.RawMessage{"type": json.RawMessage(`"input_audio"`)}
	set(sound, "input_audio", map[string]string{"data": data, "format": format})
	return sound
}
