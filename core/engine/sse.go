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

// Limits of what is read from a server.
const (
	maxAnswer = 1 << 20 // bytes of text and arguments; longer answers are cut and count as truncated
	maxBody   = 8 << 20 // bytes of an answer that is not streamed
	maxStream = 64 << 20
	maxEvent  = 4 << 20 // bytes of one event of a stream
	maxErrors = 16 << 10

	usualEvent = 512 // bytes
)

var (
	errStop  = errors.New("enough") // the answer is complete, or too long
	errEvent = errors.New("an event of the stream is too long")
)

// doneMark ends a stream of the openai API.
const doneMark = "[DONE]"

// readEvents reads a stream of server-sent events and calls each with an event's name and data, which are valid until
// each returns. If the data are a complete JSON value, any further line ends the event, because some servers omit the
// blank line. The end of the stream ends the last event. readEvents returns the first error of each.
func readEvents(r io.Reader, each func(name string, data []byte) error) error {
	lines := bufio.NewScanner(io.LimitReader(r, maxStream))
	lines.Buffer(make([]byte, 0, usualEvent), maxEvent)
	var name string
	var data []byte
	var count int // of lines of data
	add := func(line []byte) {
		if len(data) > 0 {
			data = append(data, '\n')
		}
		data = append(data, line...)
		count++
	}
	isComplete := func() bool { // checking after each further line would be quadratic
		return count == 1 && (json.Valid(data) || string(data) == doneMark)
	}
	for more := true; more; {
		more = lines.Scan()
		if errors.Is(lines.Err(), bufio.ErrTooLong) || len(data) > maxEvent {
			return fmt.Errorf("the answer was cut off: %w", errEvent)
		}
		if lines.Err() != nil {
			return fmt.Errorf("the answer was cut off: stream: %w", lines.Err())
		}
		line := lines.Bytes()
		if !more || len(line) == 0 || isComplete() {
			if len(data) > 0 {
				if err := each(name, data); err != nil {
					return err
				}
			}
			name, data, count = "", data[:0], 0
		}
		field, value, _ := bytes.Cut(line, []byte(":"))
		value = bytes.TrimPrefix(value, []byte(" "))
		switch string(field) {
		case "event":
			name = string(value)
		case "data":
			add(value)
		case "error": // older llama.cpp servers send the error object of a data event this way
			data = data[:0]
			add(slices.Concat([]byte(`{"error":`), value, []byte("}")))
		}
	}
	return nil
}
