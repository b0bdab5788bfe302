package blueprint

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"synthbot/core/action"
)

// Bounds of a file.
const (
	maxFile  = 2 << 20 // bytes
	maxDepth = 80      // of brackets, schemas included
	maxTools = 500
	// maxShared is how many $defs may serve all tools.
	maxShared = 100
)

// Blueprint is a file that was read.
type Blueprint struct {
	Envelope
	Tools []Tool

	unread []Fault // tools that cannot be read
}

// Envelope is what a file says of its agent, beside the tools.
type Envelope struct {
	File        string          `json:"-"`
	Name        string          `json:"name,omitempty"`
	Type        string          `json:"type,omitempty"`
	Version     string          `json:"version,omitempty"`
	Description string          `json:"description,omitempty"`
	Endpoint    string          `json:"endpoint,omitempty"` // the agent's address; "": the file has none
	Compliance  json.RawMessage `json:"compliance,omitempty"`
	Security    json.RawMessage `json:"security,omitempty"`
	Raw         json.RawMessage `json:"-"` // all of it, as it stands in the file, without the tools

	invoke endpoint
	limits limits
	auth   bool
}

// Tool is a tool of a file.
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
	Meta        struct {
		Own *own `json:"synthbot,omitempty"`
	} `json:"_meta,omitzero"`

	as    string   // the action's name where another tool has the same
	notes []string // what of its schemas is not used
}

// Annotations are a file's own words on what a tool does.
type Annotations struct {
	Title       string `json:"title,omitempty"`
	ReadOnly    bool   `json:"readOnlyHint,omitempty"`
	Destructive *bool  `json:"destructiveHint,omitempty"`
	Idempotent  bool   `json:"idempotentHint,omitempty"`
}

// Security is what a file asks for before a tool is used.
type Security struct {
	Permission string `json:"permission,omitempty"` // everyone, moderators, admins
	Confirm    bool   `json:"requiresConfirmation,omitempty"`
}

// endpoint is where something is called.
type endpoint struct {
	Path   string `json:"path,omitempty"`
	Method string `json:"method,omitempty"`
	URL    string `json:"url,omitempty"`
}

// limits are how often an agent wants to be called.
type limits struct {
	Minute int `json:"perMinute"`
	Hour   int `json:"perHour"`
}

// metadata are the parts of the envelope that may stand in the file itself, or in
// its meta or metadata.
type metadata struct {
	Endpoint  json.RawMessage `json:"endpoint"`
	Endpoints struct {
		Base   string   `json:"base"`
		URL    string   `json:"url"`
		Invoke endpoint `json:"invoke"`
	} `json:"endpoints"`
	Compliance json.RawMessage `json:"compliance"`
	Security   json.RawMessage `json:"security"`
}

// Read reads a blueprint. The error joins what makes it unreadable; whether its
// tools are right Check tells.
func Read(data []byte) (*Blueprint, error) {
	switch {
	case len(data) > maxFile:
		return nil, fmt.Errorf("%d bytes, at most %d are allowed", len(data), maxFile)
	case action.Nesting(data) > maxDepth:
		return nil, fmt.Errorf("more than %d levels deep", maxDepth)
	}
	var f struct {
		Name         string                     `json:"name"`
		Type         string                     `json:"type"`
		Version      string                     `json:"version"`
		Description  string                     `json:"description"`
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
	b := &Blueprint{Envelope: Envelope{Name: f.Name, Type: f.Type, Version: f.Version, Description: f.Description}}
	tools, shared := len(f.Capabilities.Tools), len(f.Defs)+len(f.Capabilities.Defs)
	if tools > maxTools || shared > maxShared {
		return nil, fmt.Errorf("%d tools, %d shared $defs: at most %d and %d are allowed", tools, shared, maxTools, maxShared)
	}
	for i, raw := range f.Capabilities.Tools {
		b.read(i, raw)
	}
	for _, m := range []metadata{f.metadata, f.Meta, f.Metadata} {
		b.take(m)
	}
	for i := range b.Tools {
		for _, defs := range []map[string]json.RawMessage{f.Capabilities.Defs, f.Defs} {
			b.Tools[i].Input = define(b.Tools[i].Input, defs)
			b.Tools[i].Output = define(b.Tools[i].Output, defs)
		}
		b.Tools[i].adapt()
	}
	var err error
	b.Raw, err = withoutTools(data)
	return b, err
}

// read reads tool i of the file.
func (b *Blueprint) read(i int, raw json.RawMessage) {
	var t Tool
	err := json.Unmarshal(raw, &t)
	var kind *json.UnmarshalTypeError
	if errors.As(err, &kind) {
		err = fmt.Errorf("%s must be %s, not %s", kind.Field, kind.Type.Kind(), kind.Value)
	}
	if err != nil {
		b.unread = append(b.unread, Fault{Tool: fmt.Sprint("tool ", i+1), Text: "is left out: " + err.Error(), Warning: true})
		return
	}
	b.Tools = append(b.Tools, t)
}

// adapt makes the schemas such that the catalogue takes them, as far as possible.
func (t *Tool) adapt() {
	for name, schema := range map[string]*json.RawMessage{"inputSchema": &t.Input, "outputSchema": &t.Output} {
		adapted, notes := action.AdaptSchema(*schema)
		*schema = adapted
		for _, note := range notes {
			t.notes = append(t.notes, name+": "+note)
		}
	}
	slices.Sort(t.notes)
}

// decode reads one JSON object, and says where it is none.
func decode(data []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(data))
	err := d.Decode(into)
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	switch {
	case errors.As(err, &syntax):
		return fmt.Errorf("line %d: %w", line(data, syntax.Offset), err)
	case errors.As(err, &kind):
		return fmt.Errorf("line %d: %s must be %s, not %s", line(data, kind.Offset), kind.Field, kind.Type.Kind(), kind.Value)
	case err != nil:
		return err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("there is more behind the blueprint")
	}
	return nil
}

func line(data []byte, offset int64) int {
	return 1 + bytes.Count(data[:min(int64(len(data)), offset)], []byte("\n"))
}

// take takes metadata up, as far as they are not known yet.
func (e *Envelope) take(m metadata) {
	var text string
	if json.Unmarshal(m.Endpoint, &text) != nil {
		var written endpoint
		_ = json.Unmarshal(m.Endpoint, &written) // neither a text nor an object: there is none
		text = written.URL
	}
	for _, address := range []string{text, m.Endpoints.URL, m.Endpoints.Base} {
		if e.Endpoint == "" {
			e.Endpoint = address
		}
	}
	if e.invoke == (endpoint{}) {
		e.invoke = m.Endpoints.Invoke
	}
	if e.Compliance == nil {
		e.Compliance = m.Compliance
	}
	if e.Security == nil {
		e.Security = m.Security
	}
	e.secure()
}

// secure reads what the envelope's security asks for; what cannot be read asks
// for nothing.
func (e *Envelope) secure() {
	var s struct {
		Limits limits `json:"rateLimits"`
		Limit  limits `json:"rateLimit"`
		Auth   bool   `json:"authRequired"`
	}
	if json.Unmarshal(e.Security, &s) != nil {
		return
	}
	if e.limits = s.Limits; e.limits == (limits{}) {
		e.limits = s.Limit
	}
	e.auth = s.Auth
}

// withoutTools is a file's envelope.
func withoutTools(data []byte) (json.RawMessage, error) {
	var all map[string]json.RawMessage
	if err := json.Unmarshal(data, &all); err != nil {
		return nil, err
	}
	var capabilities map[string]json.RawMessage
	if json.Unmarshal(all["capabilities"], &capabilities) == nil {
		delete(capabilities, "tools")
		all["capabilities"] = encode(capabilities)
		if len(capabilities) == 0 {
			delete(all, "capabilities")
		}
	}
	return encode(all), nil
}

// encode writes a value as compact JSON.
func encode(v any) json.RawMessage {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return json.RawMessage("null") // what was decoded can be encoded
	}
	return bytes.TrimSpace(b.Bytes())
}

// define puts those shared definitions into a schema that it refers to and does
// not have itself.
func define(schema json.RawMessage, shared map[string]json.RawMessage) json.RawMessage {
	var root map[string]json.RawMessage
	if len(shared) == 0 || json.Unmarshal(schema, &root) != nil || root == nil {
		return schema
	}
	var own map[string]json.RawMessage
	if root["$defs"] != nil && json.Unmarshal(root["$defs"], &own) != nil {
		return schema
	}
	if own == nil {
		own = make(map[string]json.RawMessage)
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
	root["$defs"] = encode(own)
	return encode(root)
}

// files lists the blueprints that a path means.
func files(path string) ([]string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return []string{path}, nil
	}
	list, err := filepath.Glob(filepath.Join(escapeGlob(path), "*.json"))
	if err == nil && len(list) == 0 {
		err = fmt.Errorf("%s: there is no .json file in it", path)
	}
	slices.Sort(list)
	return list, err
}

// escapeGlob keeps a folder's name from being a pattern.
func escapeGlob(path string) string {
	return strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`).Replace(path)
}

// load reads a file.
func load(file string) (*Blueprint, []byte, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, nil, err
	}
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err = errors.Join(err, f.Close()); err != nil {
		return nil, nil, fmt.Errorf("%s: %w", file, err)
	}
	b, err := Read(data)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", file, err)
	}
	b.File = file
	return b, data, nil
}
