package speech

import (
	"context"
	"encoding/binary"

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
	const rate, size = 16000, 32000
	b := []byte("RIFF")
	b = binary.LittleEndian.AppendUint32(b, wavHeader-8+size)
	b = append(b, "WAVEfmt "...)
	b = binary.LittleEndian.AppendUint32(b, 16)
	for _, field := range []uint16{1, 1} { // PCM, one channel
		b = binary.LittleEndian.AppendUint16(b, field)
	}
	b = binary.LittleEndian.AppendUint32(b, rate)
	b = binary.LittleEndian.AppendUint32(b, rate*2)
	for _, field := range []uint16{2, 16} { // bytes and bits of a sample
		b = binary.LittleEndian.AppendUint16(b, field)
	}
	b = append(b, "data"...)
	b = binary.LittleEndian.AppendUint32(b, size)
	return append(b, make([]byte, size)...)
}
