package engine

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
)

// Limits of what is taken in from a server.
const (
	maxAnswer = 1 << 20 // bytes of text and arguments; more is cut, and counts as truncated
	maxBody   = 8 << 20 // bytes of a whole answer
	maxStream = 64 << 20
	maxEvent  = 4 << 20 // bytes of one event of a stream
	maxErrors = 16 << 10

	usualEvent = 512 // bytes
)

var (
	errStop  = errors.New("enough") // ends readEvents without an error
	errEvent = errors.New("an event of the stream is too long")
)

// doneMark ends a stream of the openai API.
const doneMark = "[DONE]"

// readEvents reads a stream of server-sent events and calls each with an
// event's name and data, which is valid until each returns. Besides the blank line that
// the standard asks for, a further line ends an event whose data are a whole JSON value:
// some servers leave the blank line out. A last event without an end counts. It returns
// nil at the end of the stream and when each returned errStop.
func readEvents(r io.Reader, each func(name string, data []byte) error) error {
	lines := bufio.NewScanner(io.LimitReader(r, maxStream))
	lines.Buffer(make([]byte, 0, usualEvent), maxEvent)
	var event sseEvent
	for more := true; more; {
		more = lines.Scan()
		if errors.Is(lines.Err(), bufio.ErrTooLong) {
			return errEvent
		}
		if lines.Err() != nil {
			return fmt.Errorf("stream: %w", lines.Err())
		}
		line := lines.Bytes()
		if !more || len(line) == 0 || event.isWhole() {
			if len(event.data) > 0 {
				err := each(event.name, event.data)
				if errors.Is(err, errStop) {
					return nil
				}
				if err != nil {
					return err
				}
			}
			event = sseEvent{data: event.data[:0]}
		}
		event.add(line)
		if len(event.data) > maxEvent {
			return errEvent
		}
	}
	return nil
}

// sseEvent is the event that is being read.
type sseEvent struct {
	name  string
	data  []byte
	lines int // of data
}

// isWhole reports whether the data are one whole JSON value, or the mark of the end. It looks
// after the first line alone: looking after each would be quadratic.
func (e *sseEvent) isWhole() bool {
	return e.lines == 1 && (json.Valid(e.data) || string(e.data) == doneMark)
}

// add takes one line in.
func (e *sseEvent) add(line []byte) {
	field, value, _ := bytes.Cut(line, []byte(":"))
	value = bytes.TrimPrefix(value, []byte(" "))
	switch string(field) {
	case "event":
		e.name = string(value)
	case "data":
		if len(e.data) > 0 {
			e.data = append(e.data, '\n')
		}
		e.data = append(e.data, value...)
		e.lines++
	case "error": // older llama.cpp servers send the error object of a data event this way
		e.data = slices.Concat([]byte(`{"error":`), value, []byte("}"))
		e.lines++
	}
}
