package action

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"synthbot/core"
	"synthbot/core/schema"
	"synthbot/core/txt"
)

const maxBrief = 100 // characters; a brief has fewer

// Definition is an action of the catalogue, checked once. It never changes.
type Definition struct {
	core.Action
	Owner string // the plugin that offers it

	// PromptSchema returns the schema as a prompt shows it, see schema.MinifyForPrompt.
	PromptSchema func() json.RawMessage

	home       string // the interface whose places it works in; "": it works anywhere
	input      *schema.Schema
	output     *schema.Schema            // nil: not checked
	properties map[string]map[string]any // the payload's, with the schema of each
	required   []string                  // those that every payload must have
	askable    []string                  // the required ones that a user can be asked for
}

// complete checks and completes a definition that has an action, an owner and a home. After an error, which joins all
// faults, it has no input. Unless linted, schemas are compiled when they are first used, and defaults and examples are
// not checked, which saves a millisecond at the start.
func (d *Definition) complete(linted bool) error {
	var err error
	if d.Action, err = convertLegacy(d.Action); err != nil {
		return fmt.Errorf("action %s of %s: %w", d.Name, d.Owner, err)
	}
	d.Similes, d.DependsOn = slices.Clone(d.Similes), slices.Clone(d.DependsOn)
	read := schema.Read
	if linted {
		read = schema.Compile
	}
	err = d.readSchemas(read)
	faults := append(d.lint(), err)
	if linted && d.input != nil {
		faults = append(faults, d.lintDefaults(), d.lintExamples())
	}
	if err := errors.Join(faults...); err != nil {
		d.input = nil
		return fmt.Errorf("action %s of %s: %w", d.Name, d.Owner, err)
	}
	return nil
}

// CorrectionSchema returns the schema without what models do not need.
func (d *Definition) CorrectionSchema() json.RawMessage { return schema.Minify(d.Schema) }

// lint returns what is wrong with all but the schemas, which are read already.
func (d *Definition) lint() (faults []error) {
	refuse := func(wrong bool, format string, args ...any) {
		if wrong {
			faults = append(faults, fmt.Errorf(format, args...))
		}
	}
	refuse(!txt.IsName(d.Name, maxName, ".-"), "name: must match [a-z0-9_.-]{1,64}")
	for _, n := range append([]string{d.Name}, d.Similes...) {
		refuse(Normal(n) == "" || len(n) > 64, "name %q: must have between 1 and 64 letters and digits", n)
		c, ok := Control(n)
		refuse(ok, "name %q: is taken by the built-in %s", n, c)
	}
	refuse(d.IsMessage() && Normal(d.Name) != Normal(core.MessagePrefix+d.Owner),
		"name: %s… is reserved for the interface of that name", core.MessagePrefix)
	n := utf8.RuneCountInString(d.Brief)
	refuse(strings.TrimSpace(d.Brief) == "", "brief: is empty; say in one line what the action does")
	refuse(n >= maxBrief, "brief: has %d characters, fewer than %d are allowed", n, maxBrief)
	refuse(strings.ContainsFunc(d.Brief, unicode.IsControl), "brief: must be one line")
	refuse(d.Do == nil, "code: is missing")
	refuse(min(d.Timeout, d.Cache, d.RateLimit.Per) < 0 || min(d.Retries, d.RateLimit.Count) < 0,
		"limits: must not be negative")
	refuse((d.RateLimit.Count > 0) != (d.RateLimit.Per > 0), "rate limit: needs a count and a time")
	refuse(!slices.Contains([]core.Busy{"", core.BusyQueue, core.BusyRefuse}, d.Busy), "busy: unknown way %q", d.Busy)
	known := []core.Permission{"", core.PermissionEveryone, core.PermissionConcerned, core.PermissionModerators,
		core.PermissionAdmins, core.PermissionBot}
	refuse(!slices.Contains(known, d.Permission), "permission: unknown %q", d.Permission)
	refuse(d.input != nil && d.Permission == core.PermissionConcerned && d.properties[d.Concerns] == nil,
		"permission: the person concerned is named in %q, which is not a property", d.Concerns)
	return faults
}

func (d *Definition) readSchemas(read func(json.RawMessage) (*schema.Schema, error)) error {
	if len(d.Schema) == 0 {
		return errors.New("schema: is missing")
	}
	input, err := read(d.Schema)
	if err == nil {
		root, ok := input.Root.(map[string]any)
		if ok && (root["type"] == nil || root["type"] == "object") {
			d.input = input
			d.readProperties(root)
			d.PromptSchema = sync.OnceValue(func() json.RawMessage { return schema.MinifyForPrompt(d.Schema) })
		} else {
			err = errors.New("schema: must describe an object")
		}
	}
	if len(d.Output) == 0 {
		return err
	}
	var outputErr error
	d.output, outputErr = read(d.Output)
	if outputErr != nil {
		outputErr = fmt.Errorf("output %w", outputErr)
	}
	return errors.Join(err, outputErr)
}

// readProperties sets the properties of the payload, and which of them a user can be asked for:
// a text, a number, one of some choices, yes or no. Values of messages are always the model's.
func (d *Definition) readProperties(root map[string]any) {
	d.properties = make(map[string]map[string]any)
	properties, _ := root["properties"].(map[string]any)
	for name, v := range properties {
		p, ok := v.(map[string]any)
		if !ok {
			p = make(map[string]any)
		}
		d.properties[name] = p
	}
	required, _ := root["required"].([]any)
	for _, v := range required {
		name, _ := v.(string)
		d.required = append(d.required, name)
		kind, _ := d.property(name)["type"].(string)
		line := slices.Contains([]string{"string", "number", "integer", "boolean"}, kind) || len(d.choices(name)) > 0
		if line && !d.IsMessage() && d.Then == nil && !slices.Contains([]string{d.Concerns, pathKey, targetKey}, name) {
			d.askable = append(d.askable, name)
		}
	}
}

func (d *Definition) lintDefaults() error {
	v := make(map[string]any)
	d.input.FillDefaults(v)
	for _, f := range d.input.Validate(v) {
		if f.Path != "" && f.Keyword != "required" {
			return fmt.Errorf("default: payload%s: %s", f.Field(), f.Text)
		}
	}
	return nil
}

func (d *Definition) lintExamples() error {
	var errs []error
	for _, e := range d.Examples.Examples {
		v, err := schema.Decode(e.Payload)
		if err != nil {
			errs = append(errs, fmt.Errorf("example %q: %w", e.Scenario, err))
			continue
		}
		violations := d.input.Accept(v)
		if len(violations) > 0 {
			at, text := violations[0].Field(), violations[0].Text
			errs = append(errs, fmt.Errorf("example %q: payload%s: %s", e.Scenario, at, text))
		}
	}
	return errors.Join(errs...)
}

// Title names the action for users: its schema's title, or its brief.
func (d *Definition) Title() string {
	root, _ := d.input.Root.(map[string]any)
	title, _ := root["title"].(string)
	return cmp.Or(title, d.Brief)
}

// Guide returns the third tier of an action: what it does, when to use it, its pitfalls, and examples.
func Guide(description, when string, pitfalls []string, examples ...core.Example) core.Examples {
	return core.Examples{
		Description:  description,
		Instructions: core.Instructions{WhenToUse: when, CommonPitfalls: pitfalls},
		Examples:     examples,
	}
}

// Typed completes an action whose payload is the Go struct P: its schema is derived from P,
// and Do gets the payload decoded.
//
// A field is a property under its json name. It is required unless the json tag
// says omitempty or omitzero or the field has a default. Further tags:
//
//	doc:"one line for the model"   title:"what people call it"
//	default:"normal"               oneof:"low|normal|high"
//	min:"1" max:"9"                of a number; of a string or a list its length
//	format:"date"                  of a string
//
// The title tag of a blank field, _ struct{}, is what users call the action.
//
// Types are strings, booleans, numbers, time.Time, types that unmarshal from text, json.RawMessage and any (any JSON),
// pointers, slices, maps by string, and structs of these that are not recursive. Typed panics on any other type.
func Typed[P any](a core.Action, do func(context.Context, core.Call, P) (core.Result, error)) core.Action {
	a.Schema = schema.Of[P]()
	a.Do = func(ctx context.Context, c core.Call) (core.Result, error) {
		p, err := Payload[P](c)
		if err != nil {
			return core.Result{}, err
		}
		return do(ctx, c, p)
	}
	return a
}

// Payload decodes a validated payload, for Check and Undo of a Typed action.
func Payload[P any](c core.Call) (p P, err error) {
	if err := json.Unmarshal(c.Payload, &p); err != nil {
		return p, &core.Error{Kind: core.Invalid, Text: "the payload cannot be read", Err: err}
	}
	return p, nil
}

// Undo returns the Undo of an action, which passes the decoded Result.Undo to undo.
func Undo[U any](
	undo func(context.Context, core.Call, U) error,
) func(context.Context, core.Call, core.Result) error {
	return func(ctx context.Context, c core.Call, done core.Result) error {
		var u U
		if err := json.Unmarshal(done.Undo, &u); err != nil {
			return fmt.Errorf("undo: %w", err)
		}
		return undo(ctx, c, u)
	}
}

// Lint returns what is wrong with actions of a plugin, including their schemas, defaults and examples. Their code may
// be missing. Tests lint the program's own actions; actions of others are linted before they join the catalogue.
func Lint(plugin string, actions ...core.Action) []string {
	list := slices.Clone(actions)
	for i := range list {
		list[i].Do = func(context.Context, core.Call) (r core.Result, err error) { return r, errors.ErrUnsupported }
	}
	_, err := build(true, listed{plugin, list})
	if err == nil {
		return nil
	}
	faults := strings.Split(err.Error(), "\n")
	for i := range faults {
		if len(actions) == 1 {
			faults[i] = strings.TrimPrefix(faults[i], "action "+actions[0].Name+" of "+plugin+": ")
		}
	}
	return faults
}

// listed is a plugin that only has actions.
type listed struct {
	name    string
	actions []core.Action
}

func (l listed) Name() string           { return l.name }
func (l listed) Actions() []core.Action { return l.actions }
