package blueprint

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"synthbot/core"
	"synthbot/core/schema"
)

const (
	maxFile   = 2 << 20 // bytes
	maxDepth  = 80      // of brackets, schemas included
	maxTools  = 500
	maxShared = 100 // $defs that all tools may use
)

// Blueprint is a parsed file.
type Blueprint struct {
	File        string
	Name        string
	Version     string
	Description string
	Endpoint    string // the agent's address; "": the file has none
	Compliance  json.RawMessage
	Security    json.RawMessage
	Raw         json.RawMessage // the file without the tools
	Tools       []Tool

	unreadable []Fault // tools that cannot be read
	invoke     endpoint
	limits     limits
	auth       bool
}

type Tool struct {
	Name        string            `json:"name"`
	Title       string            `json:"title,omitempty"`
	Description string            `json:"description,omitempty"`
	Input       json.RawMessage   `json:"inputSchema"`
	Output      json.RawMessage   `json:"outputSchema,omitempty"`
	Annotations Annotations       `json:"annotations,omitzero"`
	Examples    []json.RawMessage `json:"examples,omitempty"`
	Security    Security          `json:"security,omitzero"`
	Endpoint    endpoint          `json:"endpoint,omitzero"`
	Rollback    *Rollback         `json:"rollback,omitempty"`
	Bounds
	Meta struct {
		Own *exportedAction `json:"synthbot,omitempty"`
	} `json:"_meta,omitzero"`

	made  core.Action // its action, without code
	notes []string    // warnings, such as about parts that are not used
}

// Bounds limit when and how often a tool is called.
type Bounds struct {
	DependsOn []string `json:"dependsOn,omitempty"` // tools that must have succeeded before
	Timeout   span     `json:"timeout,omitzero"`
	Cache     span     `json:"cache,omitzero"`
	RateLimit limits   `json:"rateLimit,omitzero"` // for each person
}

// Annotations are the file's hints about what a tool does.
type Annotations struct {
	Title       string `json:"title,omitempty"`
	ReadOnly    bool   `json:"readOnlyHint,omitempty"`
	Destructive *bool  `json:"destructiveHint,omitempty"`
	Idempotent  bool   `json:"idempotentHint,omitempty"`
}

// Security contains the file's requirements for the use of a tool.
type Security struct {
	Permission string `json:"permission,omitempty"` // everyone, moderators, admins
	Confirm    bool   `json:"requiresConfirmation,omitempty"`
}

type endpoint struct {
	Path   string `json:"path,omitempty"`
	Method string `json:"method,omitempty"`
	URL    string `json:"url,omitempty"`
}

// span is a duration, written as in "1m30s".
type span time.Duration

// UnmarshalText implements encoding.TextUnmarshaler.
func (s *span) UnmarshalText(text []byte) error {
	d, err := time.ParseDuration(string(text))
	if err != nil || d <= 0 {
		return fmt.Errorf("%q is not a duration such as 30s", text)
	}
	*s = span(d)
	return nil
}

// MarshalText implements encoding.TextMarshaler.
func (s span) MarshalText() ([]byte, error) { return []byte(time.Duration(s).String()), nil }

// limits are how often an agent may be called.
type limits struct {
	Minute int `json:"perMinute,omitempty"`
	Hour   int `json:"perHour,omitempty"`
}

// rate returns the rate limit of an action: the one per minute if set, else the one per hour.
func (l limits) rate() core.RateLimit {
	switch {
	case l.Minute > 0:
		return core.RateLimit{Count: l.Minute, Per: time.Minute}
	case l.Hour > 0:
		return core.RateLimit{Count: l.Hour, Per: time.Hour}
	}
	return core.RateLimit{}
}

// metadata contains the parts of the envelope that may be at the top level of the file, or in its meta or metadata.
type metadata struct {
	Name        string          `json:"name"`
	Version     string          `json:"version"`
	Description string          `json:"description"`
	Endpoint    json.RawMessage `json:"endpoint"`
	Endpoints   struct {
		Base   string   `json:"base"`
		URL    string   `json:"url"`
		Invoke endpoint `json:"invoke"`
	} `json:"endpoints"`
	Compliance json.RawMessage `json:"compliance"`
	Security   json.RawMessage `json:"security"`
}

// Read parses a blueprint. It does not check whether its tools are usable; Config.Faults does.
func Read(data []byte) (*Blueprint, error) {
	switch {
	case len(data) > maxFile:
		return nil, fmt.Errorf("%d bytes, at most %d are allowed", len(data), maxFile)
	case schema.Nesting(data) > maxDepth:
		return nil, fmt.Errorf("more than %d levels deep", maxDepth)
	}
	var f struct {
		Meta         metadata                   `json:"meta"`
		Metadata     metadata                   `json:"metadata"`
		Defs         map[string]json.RawMessage `json:"$defs"`
		Capabilities struct {
			Defs  map[string]json.RawMessage `json:"$defs"`
			Tools []json.RawMessage          `json:"tools"`
		} `json:"capabilities"`
		metadata
	}
	if err := decode(data, &f); err != nil {
		return nil, err
	}
	b := new(Blueprint)
	tools, shared := len(f.Capabilities.Tools), len(f.Defs)+len(f.Capabilities.Defs)
	if tools > maxTools || shared > maxShared {
		return nil, fmt.Errorf("%d tools and %d shared $defs; at most %d and %d are allowed",
			tools, shared, maxTools, maxShared)
	}
	for i, raw := range f.Capabilities.Tools {
		b.addTool(i, raw, f.Capabilities.Defs, f.Defs)
	}
	for _, m := range []metadata{f.metadata, f.Meta, f.Metadata} {
		b.addMetadata(m)
	}
	var err error
	b.Raw, err = withoutTools(data)
	return b, err
}

// addTool adds tool i of the file. Its schemas get the shared definitions that they refer
// to, and the form that the catalogue accepts, as far as possible.
func (b *Blueprint) addTool(i int, raw json.RawMessage, shared ...map[string]json.RawMessage) {
	var t Tool
	if err := json.Unmarshal(raw, &t); err != nil {
		text := "is left out: " + typeError(err).Error()
		b.unreadable = append(b.unreadable, Fault{Tool: fmt.Sprint("tool ", i+1), Text: text, Warning: true})
		return
	}
	for name, form := range map[string]*json.RawMessage{"inputSchema": &t.Input, "outputSchema": &t.Output} {
		for _, defs := range shared {
			*form = define(*form, defs)
		}
		adapted, notes := schema.Adapt(*form)
		*form = adapted
		for _, note := range notes {
			t.notes = append(t.notes, name+": "+note)
		}
	}
	slices.Sort(t.notes)
	b.Tools = append(b.Tools, t)
}

func typeError(err error) error {
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return fmt.Errorf("%s must be %s, not %s", wrong.Field, wrong.Type.Kind(), wrong.Value)
	}
	return err
}

// decode parses one JSON value. Its error contains the line.
func decode(data []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(data))
	err := d.Decode(into)
	var syntax *json.SyntaxError
	var wrong *json.UnmarshalTypeError
	offset := int64(-1)
	switch {
	case errors.As(err, &syntax):
		offset = syntax.Offset
	case errors.As(err, &wrong):
		offset = wrong.Offset
	case err == nil:
		if _, err := d.Token(); !errors.Is(err, io.EOF) {
			return errors.New("more text follows the blueprint")
		}
	}
	if offset >= 0 {
		line := 1 + bytes.Count(data[:min(int64(len(data)), offset)], []byte("\n"))
		return fmt.Errorf("line %d: %w", line, typeError(err))
	}
	return err
}

// addMetadata sets the fields that are not set yet.
func (b *Blueprint) addMetadata(m metadata) {
	b.Name = cmp.Or(b.Name, m.Name)
	b.Version, b.Description = cmp.Or(b.Version, m.Version), cmp.Or(b.Description, m.Description)
	var text string
	if json.Unmarshal(m.Endpoint, &text) != nil {
		var written endpoint
		_ = json.Unmarshal(m.Endpoint, &written) // neither a text nor an object: there is none
		text = written.URL
	}
	b.Endpoint = cmp.Or(b.Endpoint, text, m.Endpoints.URL, m.Endpoints.Base)
	b.invoke = cmp.Or(b.invoke, m.Endpoints.Invoke)
	if b.Compliance == nil {
		b.Compliance = m.Compliance
	}
	if b.Security == nil {
		b.Security = m.Security
	}
	var s struct {
		Limits limits `json:"rateLimits"`
		Limit  limits `json:"rateLimit"`
		Auth   bool   `json:"authRequired"`
	}
	if json.Unmarshal(b.Security, &s) == nil { // else it requires nothing
		b.limits, b.auth = cmp.Or(s.Limits, s.Limit), s.Auth
	}
}

// withoutTools returns a file's envelope.
func withoutTools(data []byte) (json.RawMessage, error) {
	var all map[string]json.RawMessage
	if err := json.Unmarshal(data, &all); err != nil {
		return nil, err
	}
	var capabilities map[string]json.RawMessage
	if json.Unmarshal(all["capabilities"], &capabilities) == nil {
		delete(capabilities, "tools")
		all["capabilities"] = core.JSON(capabilities)
		if len(capabilities) == 0 {
			delete(all, "capabilities")
		}
	}
	return core.JSON(all), nil
}

// define adds the shared definitions that a schema refers to and does not have.
func define(schema json.RawMessage, shared map[string]json.RawMessage) json.RawMessage {
	var root map[string]json.RawMessage
	if len(shared) == 0 || json.Unmarshal(schema, &root) != nil || root == nil {
		return schema
	}
	own := make(map[string]json.RawMessage)
	if root["$defs"] != nil && json.Unmarshal(root["$defs"], &own) != nil || own == nil {
		return schema
	}
	added := false
	for look := []json.RawMessage{schema}; len(look) > 0; look = look[1:] {
		for name, def := range shared {
			if own[name] == nil && bytes.Contains(look[0], []byte(`"#/$defs/`+name+`"`)) {
				own[name], added = def, true
				look = append(look, def)
			}
		}
	}
	if !added {
		return schema
	}
	root["$defs"] = core.JSON(own)
	return core.JSON(root)
}

// files lists the files of a path: itself, or the .json files in the folder.
func files(path string) ([]string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("%w; correct the path, or create it", errors.Unwrap(err))
	}
	if !info.IsDir() {
		return []string{path}, nil
	}
	folder := strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`).Replace(path)
	list, err := filepath.Glob(filepath.Join(folder, "*.json"))
	if err == nil && len(list) == 0 {
		err = errors.New("there is no .json file in it")
	}
	return list, err
}
