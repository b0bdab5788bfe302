package speech

import (
	"bytes"
	"context"
	"encoding/binary"
	"os/exec"
	"slices"
	"time"

	"synthbot/core"
	"synthbot/core/program"
)

// format is a format of audio files.
type format struct {
	ending  string // of file names, without the dot
	mime    string
	demuxer string // of ffmpeg; given explicitly, so that a file cannot select one that opens other files
}

var (
	ogg = format{"ogg", "audio/ogg", "ogg"}
	wav = format{"wav", "audio/wav", "wav"}
)

// formatOf detects the format of an audio file by its content. ok is false if it is unknown.
func formatOf(data []byte) (f format, ok bool) {
	at := func(i int, magic string) bool { return len(data) > i && bytes.HasPrefix(data[i:], []byte(magic)) }
	switch {
	case at(0, "OggS"):
		return ogg, true
	case at(0, "RIFF") && at(8, "WAVE"):
		return wav, true
	case at(0, "fLaC"):
		return format{"flac", "audio/flac", "flac"}, true
	case at(4, "ftyp"):
		return format{"m4a", "audio/mp4", "mov"}, true
	case at(0, "\x1a\x45\xdf\xa3"):
		return format{"webm", "audio/webm", "matroska"}, true
	case at(0, "#!AMR"):
		return format{"amr", "audio/amr", "amr"}, true
	case len(data) > 2 && data[0] == 0xff && data[1]&0xf6 == 0xf0:
		return format{"aac", "audio/aac", "aac"}, true
	case at(0, "ID3"), len(data) > 2 && data[0] == 0xff && data[1]&0xe0 == 0xe0:
		return format{"mp3", "audio/mpeg", "mp3"}, true
	}
	return format{}, false
}

// lengthOf returns the duration of an Ogg/Opus or WAV file; 0 if it is unknown.
func lengthOf(data []byte) time.Duration {
	switch f, _ := formatOf(data); f {
	case ogg:
		return lengthOfOgg(data)
	case wav:
		return lengthOfWAV(data)
	}
	return 0
}

// Parts of an Ogg page's header (RFC 3533) and of Opus (RFC 7845).
const (
	oggHeader   = 27
	oggGranule  = 6
	oggSegments = 26
	opusRate    = 48000
	maxLength   = 1000 * time.Hour
)

// lengthOfOgg returns the position of the last page, which counts samples of Opus.
func lengthOfOgg(data []byte) time.Duration {
	if !bytes.Contains(data[:min(len(data), 256)], []byte("OpusHead")) {
		return 0
	}
	last := bytes.LastIndex(data, []byte("OggS"))
	if last < 0 || len(data) < last+oggHeader {
		return 0
	}
	samples := int64(binary.LittleEndian.Uint64(data[last+oggGranule:]))
	if samples < 0 || samples > int64(maxLength/time.Second)*opusRate {
		return 0
	}
	return time.Duration(float64(samples) / opusRate * float64(time.Second))
}

// wavHeader is the size of the usual header of a WAV file.
const wavHeader = 44

// lengthOfWAV divides the bytes after the header by those of a second.
func lengthOfWAV(data []byte) time.Duration {
	const rate = 28
	if len(data) < wavHeader {
		return 0
	}
	perSecond := int64(binary.LittleEndian.Uint32(data[rate:]))
	if perSecond == 0 {
		return 0
	}
	return time.Duration(float64(len(data)-wavHeader) / float64(perSecond) * float64(time.Second))
}

// maxBars is the maximum length of a waveform that Discord accepts.
const maxBars = 256

// waveform returns the loudness of a voice message over time, a byte for each bar. It is estimated from the
// sizes of Opus packets, which grow with the loudness. The result is nil if data is not Ogg/Opus.
func waveform(data []byte) []byte {
	packets := packetsOf(data)
	if len(packets) <= 2 || lengthOfOgg(data) == 0 { // the first two are headers
		return nil
	}
	packets = packets[2:]
	loudest := max(1, slices.Max(packets))
	bars := make([]byte, min(len(packets), maxBars))
	for i := range bars {
		stretch := packets[i*len(packets)/len(bars) : (i+1)*len(packets)/len(bars)]
		bars[i] = byte(slices.Max(stretch) * 255 / loudest)
	}
	return bars
}

// packetsOf returns the sizes of the packets in an Ogg file, up to the first damaged page.
func packetsOf(data []byte) (sizes []int) {
	size := 0
	for len(data) >= oggHeader && bytes.HasPrefix(data, []byte("OggS")) {
		segments := int(data[oggSegments])
		if len(data) < oggHeader+segments {
			break
		}
		body := 0
		for _, n := range data[oggHeader : oggHeader+segments] {
			body, size = body+int(n), size+int(n)
			if n < 255 { // a packet ends
				sizes, size = append(sizes, size), 0
			}
		}
		data = data[min(len(data), oggHeader+segments+body):]
	}
	return sizes
}

// installed reports whether a program can be found.
func installed(name string) bool {
	_, err := exec.LookPath(name)
	return err == nil
}

// convert converts an audio file. ffmpeg may open only local files, and reads from in the given format.
func convert(ctx context.Context, ffmpeg string, kind format, from, to string, timeout time.Duration,
	options ...string) error {
	argv := append([]string{
		ffmpeg, "-nostdin", "-hide_banner", "-loglevel", "error", "-protocol_whitelist", "file",
		"-f", kind.demuxer, "-i", from, "-map", "0:a:0", "-map_metadata", "-1",
	}, options...)
	_, err := program.Program{Argv: append(argv, "-y", to), Timeout: timeout, Nice: true}.Run(ctx, nil)
	if err != nil {
		return &core.Error{Kind: core.Invalid, Err: err, Text: "I'm sorry, I can't open that sound. " +
			"Could you send it again, or write it?"}
	}
	return nil
}
