package mcp

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Error codes of JSON-RPC.
const (
	parseError     = -32700
	invalidRequest = -32600
)

// newLines returns a transport over in and out. It answers lines that are not JSON-RPC messages with an error, because
// the library closes the connection when it reads one.
func newLines(in io.ReadCloser, out io.WriteCloser) mcp.Transport {
	w := &lineWriter{WriteCloser: out}
	r := &lineReader{Closer: in, lines: bufio.NewReader(in), errors: w}
	return &mcp.IOTransport{Reader: r, Writer: w, MaxLineLength: maxLine + 1}
}

// lineWriter writes one line at a time.
type lineWriter struct {
	mu sync.Mutex
	io.WriteCloser
}

func (w *lineWriter) Write(line []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.WriteCloser.Write(line)
}

// lineReader reads the lines that are messages.
type lineReader struct {
	io.Closer
	lines  *bufio.Reader
	left   []byte // of the last line
	errors io.Writer
}

func (r *lineReader) Read(p []byte) (int, error) {
	for len(r.left) == 0 {
		line, long, err := r.next()
		if err != nil {
			return 0, err
		}
		line = bytes.TrimSpace(line)
		code, text := lineFault(line)
		if long {
			code, text = invalidRequest, fmt.Sprintf("this line is longer than %d bytes", maxLine)
		}
		switch {
		case len(line) == 0 && !long:
		case code == 0:
			r.left = append(line, '\n')
		default:
			const answer = `{"jsonrpc":"2.0","id":null,"error":{"code":%d,"message":%q}}` + "\n"
			if _, err := fmt.Fprintf(r.errors, answer, code, text); err != nil {
				return 0, err
			}
		}
	}
	n := copy(p, r.left)
	r.left = r.left[n:]
	return n, nil
}

// next returns the next line. It skips a line of more than maxLine bytes, and long is true then.
func (r *lineReader) next() (line []byte, long bool, err error) {
	for {
		part, err := r.lines.ReadSlice('\n')
		line = append(line, part...)
		if len(bytes.TrimSuffix(line, []byte("\n"))) > maxLine {
			line, long = nil, true
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
		case errors.Is(err, io.EOF) && (long || len(line) > 0): // the last line may lack its end
			return line, long, nil
		default:
			return line, long, err
		}
	}
}

// lineFault returns why a line is neither a message nor a batch of messages; zero if it is.
func lineFault(line []byte) (code int, text string) {
	if !json.Valid(line) {
		return parseError, "this line is not JSON"
	}
	var batch []json.RawMessage
	if err := json.Unmarshal(line, &batch); err != nil {
		batch = []json.RawMessage{line}
	}
	for _, message := range batch {
		if _, err := jsonrpc.DecodeMessage(message); err != nil {
			return invalidRequest, "this line is not a JSON-RPC message"
		}
	}
	if len(batch) == 0 {
		return invalidRequest, "an empty batch"
	}
	return 0, ""
}
