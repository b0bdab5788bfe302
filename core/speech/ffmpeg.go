package speech

import (
	"context"
	"os/exec"
	"time"

	"synthbot/core"
	"synthbot/core/program"
)

// installed reports whether a program can be found.
func installed(name string) bool {
	if name == "" {
		return false
	}
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
