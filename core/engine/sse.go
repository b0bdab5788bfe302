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
)

var (
	errStop  = errors.New("enough") // ends readEvents without an error
	errEvent = errors.New("an event of the stream is too long")
)

// doneMark ends a stream of the openai API.
const doneMark = "[DONE]"

// readEvents reads a stream of server-sent events and calls each with an
// event's name and data. Besides the blank line that the standard asks for, a
// line that is a whole JSON value ends an event: some servers leave the blank
// line out. A last event without an end counts. It returns nil at the end of the
// stream and when each returned errStop.
func readEvents(r io.Reader, each func(name string, data []byte) error) error {
	lines := bufio.NewScanner(io.LimitReader(r, maxStream))
	lines.Buffer(nil, maxEvent)
	var event sseEvent
	for more := true; more; {
		more = lines.Scan()
		if errors.Is(lines.Err(), bufio.ErrTooLong) {
			return errEvent
		}
		if lines.Err() != nil {
			return fmt.Errorf("stream: %w", lines.Err())
		}
		ready := !more || event.line(lines.Bytes())
		if len(event.data) > maxEvent {
			return errEvent
		}
		if !ready {
			continue
		}
		complete := event
		event = sseEvent{}
		if len(complete.data) == 0 {
			continue
		}
		err := each(complete.name, complete.data)
		if errors.Is(err, errStop) {
			return nil
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// sseEvent is the event that is being read.
type sseEvent struct {
	name string
	data []byte
}

// line takes one line in and reports whether the event is complete.
func (e *sseEvent) line(line []byte) bool {
	if len(line) == 0 {
		return true
	}
	field, value, _ := bytes.Cut(line, []byte(":"))
	value = bytes.TrimPrefix(value, []byte(" "))
	switch string(field) {
	case "event":
		e.name = string(value)
	case "data":
		if len(e.data) > 0 { // looking for the end at each line would be quadratic
			e.data = append(append(e.data, '\n'), value...)
			return false
		}
		e.data = append(e.data, value...)
		return string(e.data) == doneMark || json.Valid(e.data)
	case "error": // older llama.cpp servers send the error object of a data event this way
		e.data = slices.Concat([]byte(`{"error":`), value, []byte("}"))
		return json.Valid(e.data)
	}
	return false
}
