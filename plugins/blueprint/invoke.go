package blueprint

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"synthbot/core"
	"synthbot/core/outbound"
	"synthbot/core/program"
	"synthbot/core/schema"
	"synthbot/core/txt"
)

// agent calls the tools of one blueprint.
type agent struct {
	loaded
	client  *http.Client // nil: the program is run
	program program.Program
	pace    *pace
}

type request struct {
	Tool    string          `json:"tool"`
	Input   json.RawMessage `json:"input"`
	Context *callContext    `json:"context,omitempty"`
}

// callContext identifies the user and the place of a call.
type callContext struct {
	User    string `json:"userId,omitempty"`
	Session string `json:"sessionId"`
}

func (a *agent) call(ctx context.Context, t *Tool, c core.Call) (json.RawMessage, error) {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(c.Payload, &fields); err != nil || fields == nil {
		return nil, &core.Error{Kind: core.Invalid, Text: "The payload must be an object.", Err: err}
	}
	if err := a.pace.take(); err != nil {
		return nil, err
	}
	if a.client == nil {
		data, err := a.program.Run(ctx, a.request(t, c))
		if err != nil && len(data) == 0 {
			return nil, err
		}
		return unwrap(a.Name, data, err)
	}
	ownEndpoint := t.Endpoint != (endpoint{})
	e, body := a.invoke, a.request(t, c)
	if ownEndpoint {
		var err error
		e, err = t.Endpoint.fill(fields)
		if err != nil {
			return nil, err
		}
		body = core.JSON(fields)
	}
	to, err := a.address(e)
	if err != nil {
		return nil, err
	}
	method := strings.ToUpper(cmp.Or(e.Method, http.MethodPost))
	if ownEndpoint && (method == http.MethodGet || method == http.MethodDelete) {
		values := to.Query()
		for name, value := range fields {
			values.Set(name, outbound.Parameter(value))
		}
		to.RawQuery, body = values.Encode(), nil
	}
	send := outbound.Call{Server: "The agent", Method: method, URL: to, Body: body, Key: c.Key}
	send.Headers = a.source.Headers
	data, err := send.Send(ctx, a.client)
	if ownEndpoint && err == nil {
		return output(data)
	}
	return unwrap(a.Name, data, err)
}

func (a *agent) request(t *Tool, c core.Call) json.RawMessage {
	r := request{Tool: t.Name, Input: c.Payload}
	if a.source.Context {
		r.Context = &callContext{Session: c.Path.String()}
		person, err := c.Path.Person(c.Author.ID)
		if err == nil {
			r.Context.User = person.String()
		}
	}
	return core.JSON(r)
}

// address returns the URL of an endpoint, always on the agent's host: the endpoint's own URL counts
// only if it is there.
func (a *agent) address(e endpoint) (*url.URL, error) {
	u, err := url.Parse(cmp.Or(a.source.URL, a.Endpoint))
	if err != nil {
		return nil, &core.Error{Kind: core.Broken, Text: "The agent has an invalid address.", Err: err}
	}
	path := e.Path
	if own, err := url.Parse(e.URL); path == "" && err == nil && own.Host == u.Host {
		path = own.EscapedPath()
	}
	if path == "" {
		return u, nil
	}
	for part := range strings.SplitSeq(path, "/") {
		if plain, err := url.PathUnescape(part); err != nil || plain == ".." || plain == "." {
			return nil, core.Errorf(core.Invalid, "The agent's path is invalid.")
		}
	}
	return u.JoinPath(path), nil
}

// fill replaces {NAME} in the path by fields, and removes these from the map. A value must not be
// empty, because the path would be that of another resource.
func (e endpoint) fill(fields map[string]json.RawMessage) (endpoint, error) {
	for name, value := range fields {
		place := "{" + name + "}"
		if !strings.Contains(e.Path, place) {
			continue
		}
		text := outbound.Parameter(value)
		if text == "" {
			return e, core.Errorf(core.Invalid, "%s must not be empty: it is a part of the address.", name)
		}
		e.Path = strings.ReplaceAll(e.Path, place, url.PathEscape(text))
		delete(fields, name)
	}
	_, rest, ok := strings.Cut(e.Path, "{")
	if ok {
		name, _, _ := strings.Cut(rest, "}")
		return e, core.Errorf(core.Invalid, "%s is missing: it is a part of the address.", txt.Clip(name, 60))
	}
	return e, nil
}

func output(data []byte) (json.RawMessage, error) {
	if schema.Nesting(data) > maxDepth {
		return nil, core.Errorf(core.Broken, "The output is nested too deeply.")
	}
	if string(bytes.TrimSpace(data)) == "null" {
		data = nil
	}
	return outbound.Value(data)
}

// unwrap returns the output in an answer. The agent's own error takes precedence over failed, the
// error of the transport.
func unwrap(name string, data []byte, failed error) (json.RawMessage, error) {
	var answer struct {
		Success *bool
		Output  json.RawMessage
		Error   struct{ Code, Message string }
	}
	known := schema.Nesting(data) <= maxDepth && json.Unmarshal(data, &answer) == nil && answer.Success != nil
	switch {
	case known && !*answer.Success:
		return nil, agentError(name, answer.Error.Code, answer.Error.Message, failed)
	case failed != nil:
		return nil, failed
	case known:
		return output(answer.Output)
	}
	return output(data)
}

// agentError returns the error that an agent reports. Its kind is that of failed if that is more
// specific than core.Broken, else it follows from the code.
func agentError(name, code, message string, failed error) error {
	text := cmp.Or(txt.Line(message), strings.ToLower(strings.ReplaceAll(code, "_", " ")))
	e := &core.Error{Kind: core.Broken, Text: name + " says: " + txt.Clip(text, 300), Err: failed}
	if known, ok := errors.AsType[*core.Error](failed); ok && known.Kind != core.Broken {
		e.Kind, e.After = known.Kind, known.After
		return e
	}
	for _, row := range [][]string{
		{string(core.Temporary), "RATE_LIMIT", "UNAVAILABLE", "TIMEOUT"},
		{string(core.Forbidden), "FORBIDDEN", "UNAUTHORIZED", "DENIED"},
		{string(core.Invalid), "INVALID", "NOT_FOUND", "INSUFFICIENT"},
	} {
		contains := func(part string) bool { return strings.Contains(strings.ToUpper(code), part) }
		if slices.ContainsFunc(row[1:], contains) {
			e.Kind = core.ErrorKind(row[0])
			break
		}
	}
	return e
}

// pace limits how often an agent is called, by all users and all its tools together. Zero limits allow any number.
type pace struct {
	limits
	clock func() time.Time

	mu    sync.Mutex
	calls []time.Time // of the last hour
}

// take counts a call. If there were too many, it returns an error with the time to wait.
func (p *pace) take() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.clock()
	for len(p.calls) > 0 && now.Sub(p.calls[0]) >= time.Hour {
		p.calls = p.calls[1:]
	}
	wait := func(most int, span time.Duration) time.Duration {
		if most <= 0 || len(p.calls) < most {
			return 0
		}
		return span - now.Sub(p.calls[len(p.calls)-most])
	}
	after := max(wait(p.Minute, time.Minute), wait(p.Hour, time.Hour))
	if after > 0 {
		text := "The agent is called too often; try again a little later."
		return &core.Error{Kind: core.Occupied, Text: text, After: after}
	}
	if p.Minute > 0 || p.Hour > 0 {
		p.calls = append(p.calls, now)
	}
	return nil
}

// Rollback describes how a call of a tool is undone: by a call of another tool of the file. A text "$input.NAME" or
// "$output.NAME" in Input is replaced by that value of the call; NAME may be a path with dots.
type Rollback struct {
	Tool  string          `json:"tool"`
	Input json.RawMessage `json:"input,omitempty"`
}

// undoPart distinguishes the idempotency key of the undoing call.
const undoPart = 1

// decodeAny reads a JSON value that may be missing.
func decodeAny(raw json.RawMessage) (any, error) {
	if len(raw) == 0 {
		return nil, nil
	}
	return schema.Decode(raw)
}

// rollback returns the tool that undoes calls of t, or a fault if that tool cannot. Both are zero
// if the file names none.
func (b *Blueprint) rollback(t *Tool) (undo *Tool, fault string) {
	if t.Rollback == nil {
		return nil, ""
	}
	i := slices.IndexFunc(b.Tools, func(o Tool) bool { return o.Name == t.Rollback.Tool })
	fields, err := decodeAny(t.Rollback.Input)
	_, isObject := fields.(map[string]any)
	switch {
	case i < 0:
		return nil, fmt.Sprintf("rollback: the file has no usable tool %q: calls cannot be undone", t.Rollback.Tool)
	case err != nil || fields != nil && !isObject:
		return nil, "rollback: input is not an object: calls cannot be undone"
	case stricter(t.made.Permission, b.Tools[i].made.Permission) != t.made.Permission:
		return nil, fmt.Sprintf("rollback: %s is for fewer users: calls cannot be undone", t.Rollback.Tool)
	}
	return &b.Tools[i], ""
}

func (a *agent) undo(ctx context.Context, t, other *Tool, c core.Call, done core.Result) error {
	v, err := t.Rollback.payload(c.Payload, done.Output)
	if err != nil {
		return err
	}
	compiled, err := schema.Compile(other.made.Schema)
	if err != nil {
		return fmt.Errorf("rollback of %s: %w", t.Name, err)
	}
	compiled.FillDefaults(v)
	violations := compiled.Validate(v)
	if len(violations) > 0 {
		const text = "it cannot be undone: for %s, the value%s %s"
		return core.Errorf(core.Invalid, text, other.Name, violations[0].Field(), violations[0].Text)
	}
	c.Payload = core.JSON(v)
	c.Key.Part = undoPart
	_, err = a.call(ctx, other, c)
	return err
}

// payload returns the input of the undoing call, decoded.
func (r *Rollback) payload(input, output json.RawMessage) (any, error) {
	known := make(map[string]any)
	var err error
	if known["$input"], err = decodeAny(input); err != nil {
		return nil, fmt.Errorf("rollback: input: %w", err)
	}
	if known["$output"], err = decodeAny(output); err != nil {
		return nil, fmt.Errorf("rollback: output: %w", err)
	}
	v, err := decodeAny(r.Input)
	if err != nil {
		return nil, fmt.Errorf("rollback: %w", err)
	}
	if v == nil {
		v = map[string]any{}
	}
	missing := ""
	v = schema.MapLeaves(v, func(leaf any) any {
		text, _ := leaf.(string)
		root, path, _ := strings.Cut(text, ".")
		if from, ok := known[root]; ok && path != "" {
			if leaf, ok = schema.Descend(from, strings.Split(path, ".")); !ok {
				missing = text
			}
		}
		return leaf
	})
	if missing != "" {
		return nil, core.Errorf(core.Invalid, "it cannot be undone: the call has no %s", missing)
	}
	return schema.Decode(core.JSON(v)) // a copy: the same object may be in v several times
}
