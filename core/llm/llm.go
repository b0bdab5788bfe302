// Package llm holds what a language model is asked and answers: the contract between
// engines and the rest.
package llm

import (
	"context"
	"encoding/json"
	"fmt"
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

// Structure is how an engine holds a model to a schema.
type Structure string

// Structures.
const (
	StructureNone   Structure = ""       // not at all: the instructions have to do
	StructureSchema Structure = "schema" // a JSON Schema
	StructureStrict Structure = "strict" // a schema of the subset that OpenAI guarantees
)

// Limits are what an engine can take.
type Limits struct {
	Engine  string
	Chars   int  // of the whole prompt; 0: no limit
	Tokens  int  // of the whole prompt as Tokens estimates them, room for the answer already taken off; 0: no limit
	Learned bool // Tokens was learned from the server: where nothing shorter can be built, a prompt may exceed it
	Dialect Dialect
	Schemas Structure
	Vision  bool // pictures may travel beside the text
	Hearing bool // sounds may
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

// File travels beside a text: a picture or a sound.
type File struct {
	MIME string
	Data []byte
}

// Contents are what files hold, each under its core.Attachment's Ref.
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
	Calls    []ToolCall // by the model: their arguments are objects, and their results follow
	CallID   string     // the call that Text is the result of
}

// Tool is an action as an API's tool.
type Tool struct {
	Name   string
	Brief  string
	Schema json.RawMessage
}

// ToolCall is a model's use of a Tool.
type ToolCall struct {
	ID        string
	Name      string
	Arguments json.RawMessage
}

// Request is what a model is asked. What changes least comes first.
type Request struct {
	System   []string
	Messages []Utterance
	Tools    []Tool
	// Schema is that of the answer, in the form of Limits.Schemas; nil: the answer is text.
	Schema json.RawMessage
	// Stream, where set, is given the answer's text as it grows, piece by piece.
	Stream func(piece string)
	// Used, where set, is called with what every call took that reached the model, also
	// where the call failed or was given up.
	Used func(u Usage)
}

// Usage counts tokens.
type Usage struct {
	In     int `json:"in,omitempty"`
	Out    int `json:"out,omitempty"`
	Cached int `json:"cached,omitempty"`
}

// Answer is what a model said.
type Answer struct {
	Text      string
	Calls     []ToolCall
	Engine    string   // the engine that answered
	Failed    []string // what went wrong with the engines before it, for admins
	Truncated bool     // it ended before the model was done
	Usage     Usage
}

// Model is one language model. Safe for concurrent use.
type Model interface {
	Limits() Limits
	// Generate asks the model; its errors are *Error. It ends when ctx does.
	Generate(ctx context.Context, r Request) (Answer, error)
}

// ErrorKind decides what is done about a Error.
type ErrorKind string

// Kinds of model error.
const (
	ErrorRetryLater ErrorKind = "retry_later" // overloaded, limited, unreachable, timed out
	ErrorFatal      ErrorKind = "fatal"       // wrong key, unknown model, malformed request
	ErrorRefused    ErrorKind = "refused"     // the provider will not answer this prompt
	ErrorTooLong    ErrorKind = "too_long"    // the prompt cannot be made to fit
)

// Error is the failure of one call. Err is for the log only: people see a
// line of ours.
type Error struct {
	Kind   ErrorKind
	Engine string
	Status int           // of HTTP; 0 where there was none
	After  time.Duration // with ErrorRetryLater: what the server asked for
	Err    error
}

func (e *Error) Error() string {
	s := string(e.Kind)
	if e.Engine != "" { // else none was asked
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

// Unwrap gives the cause.
func (e *Error) Unwrap() error { return e.Err }
