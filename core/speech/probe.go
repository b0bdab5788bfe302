package speech

import (
	"context"

	"synthbot/core"
	"synthbot/core/txt"
)

// Try tests each provider with real work: a second of silence, and one word. It blocks until they have
// answered, and reports whether they work.
func (c *Config) Try(ctx context.Context) (list []core.Finding) {
	add := func(what string, err error) {
		f := core.Finding{What: what, Found: "works"}
		if err != nil {
			f = core.Finding{What: what, Found: "does not work", Fix: txt.Clip(txt.Line(err.Error()), 300), Fatal: true}
		}
		list = append(list, f)
	}
	l, s := NewListener(c), NewSpeaker(c)
	if l != nil {
		_, err := l.recognise(ctx, silentSecond(), wav, "")
		add("in", err)
	}
	if s != nil {
		free := func(ctx context.Context, do func(context.Context) (int, error)) error {
			_, err := do(ctx)
			return err
		}
		_, err := s.Speak(ctx, "Hello", "", free)
		add("out", err)
	}
	return list
}

// silentSecond returns a WAV file: 16 kHz, mono, 16 bits.
func silentSecond() []byte {
	const header = "RIFF\x24\x7d\x00\x00WAVEfmt \x10\x00\x00\x00" + // the sizes of what follows and of the format
		"\x01\x00\x01\x00" + // PCM, one channel
		"\x80\x3e\x00\x00\x00\x7d\x00\x00" + // samples and bytes of a second
		"\x02\x00\x10\x00data\x00\x7d\x00\x00" // bytes and bits of a sample; the size of the data
	return append([]byte(header), make([]byte, 2*sampleRate)...)
}
