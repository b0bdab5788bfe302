package discord

import (
	"bufio"
	"crypto/rand"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"sync"
)

// Opcodes of WebSocket frames.
const (
	frameMore   = 0
	frameText   = 1
	frameBinary = 2
	frameClose  = 8
)

// maxFrame bounds one message of the gateway, in bytes.
const maxFrame = 32 << 20

// maxRoom is how large a buffer is kept for the next frame, in bytes.
const maxRoom = 1 << 20

// readFrame reads one frame of a server, into room where that is large enough;
// before is the size of what stands before it in its message.
func readFrame(r *bufio.Reader, before int, room []byte) (kind byte, final bool, payload []byte, err error) {
	var head [8]byte
	if _, err = io.ReadFull(r, head[:2]); err != nil {
		return 0, false, nil, err
	}
	kind, final = head[0]&0xf, head[0]&0x80 != 0
	size, masked := uint64(head[1]&0x7f), head[1]&0x80 != 0
	if extra := map[uint64]int{126: 2, 127: 8}[size]; extra > 0 {
		if _, err = io.ReadFull(r, head[8-extra:]); err != nil {
			return 0, false, nil, err
		}
		clear(head[:8-extra])
		size = binary.BigEndian.Uint64(head[:])
	}
	if masked || size > maxFrame || uint64(before)+size > maxFrame {
		return 0, false, nil, fmt.Errorf("%w: a frame of %d bytes", errFrame, size)
	}
	if size <= uint64(cap(room)) {
		payload = room[:size]
	} else {
		payload = make([]byte, size)
	}
	_, err = io.ReadFull(r, payload)
	return kind, final, payload, err
}

// stash holds what events say, on its way past the library: it is told only that
// there was an event, and would copy the rest again and again.
type stash struct {
	mu  sync.Mutex
	all []json.RawMessage
}

func (s *stash) put(data json.RawMessage) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = append(s.all, data)
}

// take returns what the next event says; nil where there is none.
func (s *stash) take() json.RawMessage {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.all) == 0 {
		return nil
	}
	data := s.all[0]
	if s.all = s.all[1:]; len(s.all) == 0 {
		s.all = nil
	}
	return data
}

// header is the first bytes of a whole frame.
func header(kind byte, size int, mask byte) []byte {
	b := []byte{0x80 | kind}
	switch {
	case size < 126:
		return append(b, mask|byte(size))
	case size < 1<<16:
		return binary.BigEndian.AppendUint16(append(b, mask|126), uint16(size))
	}
	return binary.BigEndian.AppendUint64(append(b, mask|127), uint64(size))
}

// plain is a frame as a server sends it.
func plain(kind byte, payload []byte) []byte {
	return append(header(kind, len(payload), 0), payload...)
}

// masked is a frame as a client sends it.
func masked(kind byte, payload []byte) []byte {
	var key [4]byte
	_, _ = rand.Read(key[:])
	b := append(header(kind, len(payload), 0x80), key[:]...)
	for i, c := range payload {
		b = append(b, c^key[i%4])
	}
	return b
}

// unmasked is the text in a client's frame; ok is false where b is no whole
// frame of text.
func unmasked(b []byte) (text []byte, ok bool) {
	if len(b) < 6 || b[0] != 0x80|frameText || b[1]&0x80 == 0 {
		return nil, false
	}
	size, at := int(b[1]&0x7f), 2
	switch size {
	case 126:
		if len(b) < 8 {
			return nil, false
		}
		size, at = int(binary.BigEndian.Uint16(b[2:])), 4
	case 127:
		return nil, false // larger than anything that we look into
	}
	if len(b) != at+4+size {
		return nil, false
	}
	key := b[at : at+4]
	text = make([]byte, size)
	for i, c := range b[at+4:] {
		text[i] = c ^ key[i%4]
	}
	return text, true
}
