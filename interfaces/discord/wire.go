package discord

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"time"
)

// Opcodes of the gateway.
const (
	opDispatch  = 0
	opHeartbeat = 1
	opIdentify  = 2
	opResume    = 6
	opReconnect = 7
	opInvalid   = 9
	opHello     = 10
	opAck       = 11
)

// Why a gateway connection ended. A closing by the server is a *closed.
var (
	errReconnect = errors.New("the gateway asked to connect again")
	errInvalid   = errors.New("the gateway does not know the session any more")
	errZombie    = errors.New("the gateway does not acknowledge heartbeats")
	errFrame     = errors.New("the gateway sent what is no message")
	errGone      = errors.New("the connection was given up")
)

// closed is the closing of a connection by the gateway.
type closed struct {
	code int
	text string
}

func (c *closed) Error() string {
	return strings.TrimSpace(fmt.Sprintf("the gateway closed the connection: %d %s", c.code, c.text))
}

// resume is what is needed to go on with a session.
type resume struct {
	session string
	address string
	seq     int64
}

// wire is a gateway connection as the library sees it. It reads and writes
// whole WebSocket frames, so that it can
//   - answer an asked-for reconnect and an invalid session by ending the
//     connection: the library would hang for ever on the one, and identify at
//     once on the other;
//   - hide events from the library, whose own decoding of them is of no use to us
//     and can crash the process;
//   - make the library's identify a resume where a session can go on;
//   - notice heartbeats that are not acknowledged, silence, and close codes.
//
// The library reads in one goroutine and writes in others.
type wire struct {
	net.Conn
	token  string
	resume *resume
	// identified is called when the library's identify is on its way, heard when
	// the gateway acknowledged a heartbeat.
	identified, heard func()

	stash *stash

	in    *bufio.Reader
	room  []byte // for the next frame
	out   []byte // read, and not given to the library yet
	text  []byte // the beginning of a message that comes in several frames
	frame bool   // the handshake is over
	raw   bool   // it failed: all that comes is for the library

	mu       sync.Mutex // of writes, and of what follows
	seq      int64
	idle     time.Duration
	interval time.Duration
	beat     time.Time // of the oldest heartbeat without an acknowledgement
	reading  bool      // the library waits for us, not we for it
	err      error     // the first reason to end
	ended    chan struct{}
	quiet    chan struct{} // closed when the library got its last message
	hush     sync.Once
}

func newWire(c net.Conn, token string, r *resume, s *stash, patience time.Duration) *wire {
	w := &wire{Conn: c, token: token, resume: r, stash: s, idle: patience, ended: make(chan struct{}), quiet: make(chan struct{})}
	if r != nil {
		w.seq = r.seq
	}
	w.in = bufio.NewReaderSize(patient{w}, 16<<10)
	return w
}

// patient reads with a deadline: the gateway is never silent for long.
type patient struct{ w *wire }

func (p patient) Read(b []byte) (int, error) {
	p.w.mu.Lock()
	idle := p.w.idle
	p.w.mu.Unlock()
	if err := p.w.Conn.SetReadDeadline(time.Now().Add(idle)); err != nil {
		return 0, err
	}
	return p.w.Conn.Read(b)
}

// end notes why the connection ends, closes it, and returns the first reason.
func (w *wire) end(why error) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.endLocked(why)
}

func (w *wire) endLocked(why error) error {
	if w.err == nil {
		w.err = why
		close(w.ended)
		_ = w.Conn.Close()
	}
	return w.err
}

// Close is the library's.
func (w *wire) Close() error {
	_ = w.end(errGone)
	return nil
}

// leave closes the connection for good: the platform shows the bot as away.
func (w *wire) leave() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err == nil && w.interval > 0 {
		_ = w.Conn.SetWriteDeadline(time.Now().Add(time.Second))
		_, _ = w.Conn.Write(masked(frameClose, []byte{1000 >> 8, 1000 & 0xff}))
	}
	_ = w.endLocked(errGone)
}

func (w *wire) setReading(on bool) {
	w.mu.Lock()
	w.reading = on
	w.mu.Unlock()
}

// Read implements net.Conn for the library.
func (w *wire) Read(b []byte) (int, error) {
	w.setReading(true)
	defer w.setReading(false)
	for len(w.out) == 0 {
		if err := w.next(); err != nil {
			w.hush.Do(func() { close(w.quiet) })
			return 0, w.end(err)
		}
	}
	n := copy(b, w.out)
	w.out = w.out[n:]
	return n, nil
}

// next takes in what comes next: a piece of the handshake, or a frame.
func (w *wire) next() error {
	switch {
	case w.raw:
		b := make([]byte, 1024)
		n, err := w.in.Read(b)
		w.out = b[:n]
		return err
	case !w.frame:
		return w.handshake()
	}
	kind, final, payload, err := readFrame(w.in, len(w.text), w.room)
	if err != nil {
		return err
	}
	if cap(payload) <= maxRoom {
		w.room = payload
	}
	switch kind {
	case frameText, frameMore:
		if final && len(w.text) == 0 {
			return w.message(payload)
		}
		w.text = append(w.text, payload...)
		if !final {
			return nil
		}
		message := w.text
		w.text = nil
		return w.message(message)
	case frameClose:
		c := &closed{code: 1005}
		if len(payload) >= 2 {
			c.code, c.text = int(binary.BigEndian.Uint16(payload)), strings.ToValidUTF8(string(payload[2:]), "")
		}
		return c
	case frameBinary:
		return fmt.Errorf("%w: compression was not asked for", errFrame)
	}
	w.out = plain(kind, payload)
	return nil
}

// handshake passes the answer to the upgrade on.
func (w *wire) handshake() error {
	var head bytes.Buffer
	for head.Len() < 64<<10 {
		line, err := w.in.ReadSlice('\n')
		head.Write(line)
		if err != nil {
			return err
		}
		if string(line) == "\r\n" || string(line) == "\n" {
			status, _, _ := bytes.Cut(head.Bytes(), []byte("\n"))
			w.frame = bytes.Contains(status, []byte(" 101"))
			w.raw = !w.frame
			w.out = head.Bytes()
			return nil
		}
	}
	return fmt.Errorf("%w: the handshake does not end", errFrame)
}

// envelope is a message of the gateway.
type envelope struct {
	Op   *int            `json:"op"`
	Seq  int64           `json:"s"`
	Type string          `json:"t"`
	Data json.RawMessage `json:"d"`
}

// message looks at a message and decides what the library gets of it.
func (w *wire) message(text []byte) error {
	var e envelope
	if err := json.Unmarshal(text, &e); err != nil || e.Op == nil {
		return fmt.Errorf("%w: %.60q", errFrame, text)
	}
	switch *e.Op {
	case opReconnect:
		return errReconnect
	case opInvalid:
		if string(bytes.TrimSpace(e.Data)) == "true" {
			return errReconnect
		}
		return errInvalid
	case opHello:
		return w.hello(e)
	case opAck:
		w.mu.Lock()
		w.beat = time.Time{}
		w.mu.Unlock()
		if w.heard != nil {
			w.heard()
		}
	case opDispatch:
		w.mu.Lock()
		w.seq = max(w.seq, e.Seq)
		w.mu.Unlock()
		w.stash.put(e.Data)
		w.out = plain(frameText, hide(e))
		return nil
	}
	w.out = plain(frameText, e.bare())
	return nil
}

// hide writes an event so that the library takes its type for an unknown one. What
// it says is in the stash.
func hide(e envelope) []byte {
	name, _ := json.Marshal(strings.ToLower(e.Type))
	return fmt.Appendf(nil, `{"op":0,"s":%d,"t":%s,"d":null}`, e.Seq, name)
}

// bare is a message that is no event, with nothing that the library might take
// for one.
func (e envelope) bare() []byte {
	if len(e.Data) == 0 {
		e.Data = json.RawMessage("null")
	}
	return fmt.Appendf(nil, `{"op":%d,"d":%s}`, *e.Op, e.Data)
}

// hello learns how often the gateway wants a heartbeat.
func (w *wire) hello(e envelope) error {
	var h struct {
		Interval int64 `json:"heartbeat_interval"`
	}
	if json.Unmarshal(e.Data, &h) != nil || h.Interval < 10 || h.Interval > 600_000 {
		return fmt.Errorf("%w: a hello without an interval", errFrame)
	}
	w.mu.Lock()
	w.interval = time.Duration(h.Interval) * time.Millisecond
	w.mu.Unlock()
	w.out = plain(frameText, e.bare())
	return nil
}

// settle is told that the session stands: from now on the gateway is heard of
// in every interval.
func (w *wire) settle() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.idle = 2*w.interval + 5*time.Second
}

// Write implements net.Conn for the library, which writes frame by frame.
func (w *wire) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err != nil {
		return 0, w.err
	}
	frame, starts := b, false
	if text, ok := unmasked(b); ok {
		var e envelope
		if json.Unmarshal(text, &e) == nil && e.Op != nil {
			var err error
			if frame, err = w.written(*e.Op, b); err != nil {
				return 0, w.endLocked(err)
			}
			starts = *e.Op == opIdentify && w.identified != nil
		}
	}
	if err := w.Conn.SetWriteDeadline(time.Now().Add(20 * time.Second)); err != nil {
		return 0, w.endLocked(err)
	}
	if _, err := w.Conn.Write(frame); err != nil {
		return 0, w.endLocked(err)
	}
	if starts {
		w.identified()
	}
	return len(b), nil
}

// written is what goes out instead of the library's message; w.mu is held.
func (w *wire) written(op int, frame []byte) ([]byte, error) {
	switch {
	case op == opIdentify && w.resume != nil:
		return jsonFrame(opResume, map[string]any{"token": w.token, "session_id": w.resume.session, "seq": w.resume.seq})
	case op == opHeartbeat:
		now := time.Now()
		if !w.beat.IsZero() && w.reading && now.Sub(w.beat) > w.interval*9/10 {
			return nil, errZombie
		}
		if w.beat.IsZero() {
			w.beat = now
		}
		var seq any
		if w.seq > 0 {
			seq = w.seq
		}
		return jsonFrame(opHeartbeat, seq)
	}
	return frame, nil
}

func jsonFrame(op int, data any) ([]byte, error) {
	text, err := json.Marshal(map[string]any{"op": op, "d": data})
	return masked(frameText, text), err
}
