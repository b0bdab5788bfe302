// Package llm defines the requests to language models and their answers: the contract between
// engines and their callers.
package llm

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"
)

// Dialect is how a plan travels between synthbot and a model.
type Dialect string

// Dialects.
const (
	DialectJSON  Dialect = "json"  // a JSON plan in the text
	DialectTools Dialect = "tools" // the API's own tool calls
)

// Structure is how an engine makes a model's answer match a schema.
type Structure string

// Structures.
const (
	StructureNone   Structure = ""       // only the prompt asks for it
	StructureSchema Structure = "schema" // a JSON Schema
	StructureStrict Structure = "strict" // a schema of the subset that OpenAI guarantees
)

// Limits are what an engine accepts.
type Limits struct {
	Engine  string
	Chars   int  // of the whole prompt; 0: no limit
	Tokens  int  // of the whole prompt, as estimated by the function Tokens, without those of the answer; 0: no limit
	Learned bool // Tokens was learned from the server: a prompt may exceed it if it cannot be shorter
	Dialect Dialect
	Schemas Structure
	Vision  bool // accepts pictures
	Hearing bool // accepts sounds
}

// Fit reports whether a prompt of these texts is within the limits.
func (l Limits) Fit(texts ...string) bool {
	chars := 0
	for _, s := range texts {
		chars += utf8.RuneCountInString(s)
	}
	return (l.Chars <= 0 || chars <= l.Chars) && (l.Tokens <= 0 || Tokens(texts...) <= l.Tokens)
}

// Role says who speaks in a Request.
type Role string

// Roles.
const (
	RoleUser  Role = "user"
	RoleModel Role = "model"
)

// File is a picture or a sound of a message.
type File struct {
	MIME string
	Data []byte
}

// Contents holds the contents of attached files, by core.Attachment.Ref.
type Contents struct {
	Texts    map[string]string
	Pictures map[string]File
	Sounds   map[string]File
}

// Utterance is one message of a Request.
type Utterance struct {
	Role     Role
	Text     string
	Pictures []File
	Sounds   []File
	Calls    []ToolCall // by the model; Arguments are JSON objects, and results follow
	CallID   string     // the ID of the call whose result is Text
}

// Tool describes an action as a tool of a model's API.
type Tool struct {
	Name   string
	Brief  string
	Schema json.RawMessage
}

// ToolCall is a model's call of a Tool.
type ToolCall struct {
	ID        string
	Name      string
	Arguments json.RawMessage
}

// Request is a prompt with options. What changes least comes first in it, so that servers can cache it.
type Request struct {
	System   []string
	Messages []Utterance
	Tools    []Tool
	// Schema is the answer's JSON Schema, in the subset that Limits.Schemas names; nil: the answer is text.
	Schema json.RawMessage
	// Stream, if set, is called with each piece of the answer's text as it arrives.
	Stream func(piece string)
	// Used, if set, is called with the usage of every call that reached the model, also of failed and canceled ones.
	Used func(u Usage)
}

// Usage counts tokens.
type Usage struct {
	In     int `json:"in,omitempty"`
	Out    int `json:"out,omitempty"`
	Cached int `json:"cached,omitempty"`
}

// Answer is a model's answer.
type Answer struct {
	Text      string
	Calls     []ToolCall
	Engine    string   // the engine that answered
	Failed    []string // the errors of the engines that were asked before it, for admins
	Truncated bool     // the answer is incomplete
	Usage     Usage
}

// Model is one language model. Safe for concurrent use.
type Model interface {
	Limits() Limits
	// Generate asks the model. Its errors are *Error. It returns when ctx ends.
	Generate(ctx context.Context, r Request) (Answer, error)
}

// ErrorKind says what a caller can do about an Error.
type ErrorKind string

// Kinds of model error.
const (
	ErrorRetryLater ErrorKind = "retry_later" // overloaded, limited, unreachable, timed out
	ErrorFatal      ErrorKind = "fatal"       // wrong key, unknown model, malformed request
	ErrorRefused    ErrorKind = "refused"     // the provider will not answer this prompt
	ErrorTooLong    ErrorKind = "too_long"    // the prompt cannot be made to fit
)

// Error is the failure of one call. Err is for the log only; users see a fixed text.
type Error struct {
	Kind   ErrorKind
	Engine string
	Status int           // the HTTP status; 0 if there was none
	After  time.Duration // with ErrorRetryLater: how long the server asked to wait
	Err    error
}

func (e *Error) Error() string {
	s := string(e.Kind)
	if e.Engine != "" { // otherwise no engine was asked
		s = "engine " + e.Engine + ": " + s
	}
	if e.Status != 0 {
		s += fmt.Sprintf(": status %d", e.Status)
	}
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// FindObjects calls use for the JSON objects in an answer, in order. If use returns false for
// one, FindObjects tries those inside of it.
func FindObjects(answer string, use func(object json.RawMessage) bool) {
	const most, starts = 64 << 10, 64 // bytes that are searched, opening brackets that are tried
	answer = answer[:min(len(answer), most)]
	for range starts {
		i := strings.IndexByte(answer, '{')
		if i < 0 {
			return
		}
		answer = answer[i:]
		object, end := Decode(answer)
		if end == 0 || !use(object) {
			end = 1
		}
		answer = answer[end:]
	}
}

// Decode decodes the JSON value at the start of a text. n is its length, or 0 if there is none.
func Decode(text string) (value json.RawMessage, n int) {
	d := json.NewDecoder(strings.NewReader(text))
	if d.Decode(&value) != nil {
		return nil, 0
	}
	return value, int(d.InputOffset())
}
