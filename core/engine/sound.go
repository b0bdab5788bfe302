package engine

import "strings"

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
