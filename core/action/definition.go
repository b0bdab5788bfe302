package action

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"synthbot/core"
)

// maxBrief is how many characters a brief may have, and less.
const maxBrief = 100

// Definition is an action of the catalogue, checked and compiled once. It never changes.
type Definition struct {
	core.Action
	Owner            string          // the plugin that offers it
	CorrectionSchema json.RawMessage // without what no model needs
	PromptSchema     json.RawMessage // shorter still

	home       string // the interface whose places it works in; "": it works anywhere
	input      *schema
	output     *schema         // nil: not checked
	properties map[string]bool // the payload's
}

// define compiles an action; the error joins everything that is wrong with it.
func define(owner string, a core.Action) (*Definition, error) {
	a, err := convertLegacy(a)
	if err != nil {
		return nil, fmt.Errorf("action %s of %s: %w", a.Name, owner, err)
	}
	d := &Definition{Action: a, Owner: owner}
	d.Similes, d.DependsOn = slices.Clone(a.Similes), slices.Clone(a.DependsOn)
	faults := []error{d.lintName(), d.lintBrief(), d.lintRules(), d.compile()}
	if d.input != nil {
		faults = append(faults, d.lintPermission(), d.lintDefaults(), d.lintExamples())
	}
	if err := errors.Join(faults...); err != nil {
		return nil, fmt.Errorf("action %s of %s: %w", a.Name, owner, err)
	}
	return d, nil
}

func (d *Definition) lintName() error {
	var errs []error
	if !grammar.MatchString(d.Name) {
		errs = append(errs, errors.New("name: must match [a-z0-9_.-]{1,64}"))
	}
	for _, n := range append([]string{d.Name}, d.Similes...) {
		if normal(n) == "" || len(n) > 64 {
			errs = append(errs, fmt.Errorf("name %q: must have between 1 and 64 letters and digits", n))
		}
		if c, ok := Control(n); ok {
			errs = append(errs, fmt.Errorf("name %q: is taken by the built-in %s", n, c))
		}
	}
	if d.IsMessage() && normal(d.Name) != normal(core.MessagePrefix+d.Owner) {
		errs = append(errs, fmt.Errorf("name: %s… is kept for the interface of that name", core.MessagePrefix))
	}
	return errors.Join(errs...)
}

func (d *Definition) lintBrief() error {
	switch n := utf8.RuneCountInString(d.Brief); {
	case strings.TrimSpace(d.Brief) == "":
		return errors.New("brief: is empty; say in one line what the action does")
	case n >= maxBrief:
		return fmt.Errorf("brief: has %d characters, fewer than %d are allowed", n, maxBrief)
	case strings.ContainsFunc(d.Brief, unicode.IsControl):
		return errors.New("brief: must be one line")
	}
	return nil
}

func (d *Definition) lintRules() error {
	var errs []error
	if d.Do == nil {
		errs = append(errs, errors.New("code: is missing"))
	}
	if d.Timeout < 0 || d.Retries < 0 || d.Cache < 0 || d.RateLimit.Count < 0 || d.RateLimit.Per < 0 {
		errs = append(errs, errors.New("limits: must not be negative"))
	}
	if (d.RateLimit.Count > 0) != (d.RateLimit.Per > 0) {
		errs = append(errs, errors.New("rate limit: needs a count and a time"))
	}
	switch d.Busy {
	case "", core.BusyQueue, core.BusyRefuse:
	default:
		errs = append(errs, fmt.Errorf("busy: unknown way %q", d.Busy))
	}
	return errors.Join(errs...)
}

func (d *Definition) lintPermission() error {
	switch d.Permission {
	case "", core.PermissionEveryone, core.PermissionModerators, core.PermissionAdmins,
		core.PermissionBot:
	case core.PermissionConcerned:
		if !d.properties[d.Concerns] {
			return fmt.Errorf("permission: the person concerned is named in %q, which is not a property", d.Concerns)
		}
	default:
		return fmt.Errorf("permission: unknown %q", d.Permission)
	}
	return nil
}

func (d *Definition) compile() (err error) {
	if len(d.Schema) == 0 {
		return errors.New("schema: is missing")
	}
	d.input, err = compile(d.Schema)
	if err == nil {
		err = d.lintRoot()
	}
	if err != nil {
		d.input = nil
	} else {
		d.CorrectionSchema, d.PromptSchema = minify(d.Schema), minifyForPrompt(d.Schema)
	}
	if len(d.Output) == 0 {
		return err
	}
	var outputErr error
	d.output, outputErr = compile(d.Output)
	if outputErr != nil {
		outputErr = fmt.Errorf("output %w", outputErr)
	}
	return errors.Join(err, outputErr)
}

// lintRoot checks that the schema describes an object, as every payload is one.
func (d *Definition) lintRoot() error {
	root, ok := d.input.root.(map[string]any)
	if !ok || root["type"] != nil && root["type"] != "object" {
		return errors.New("schema: must describe an object")
	}
	properties, _ := root["properties"].(map[string]any)
	d.properties = make(map[string]bool, len(properties))
	for name := range properties {
		d.properties[name] = true
	}
	return nil
}

// lintDefaults refuses a default that the schema itself refuses.
func (d *Definition) lintDefaults() error {
	v := make(map[string]any)
	d.input.fill(v)
	for _, f := range d.input.check(v) {
		if f.path != "" && f.keyword != "required" {
			return fmt.Errorf("default: payload%s: %s", dotted(f.path), f.text)
		}
	}
	return nil
}

func (d *Definition) lintExamples() error {
	var errs []error
	for _, e := range d.Examples.Examples {
		v, err := decode(e.Payload)
		if err != nil {
			errs = append(errs, fmt.Errorf("example %q: %w", e.Scenario, err))
			continue
		}
		violations := d.accept(v)
		if len(violations) > 0 {
			at, text := dotted(violations[0].path), violations[0].text
			errs = append(errs, fmt.Errorf("example %q: payload%s: %s", e.Scenario, at, text))
		}
	}
	return errors.Join(errs...)
}

// accept fills in defaults and validates. It corrects "5" for 5, "true" for true and 5 for
// "5": what is meant is certain.
func (d *Definition) accept(payload any) []violation {
	d.input.fill(payload)
	violations := d.input.check(payload)
	for _, f := range violations {
		if f.keyword == "type" {
			violations = d.retype(payload, f, violations)
		}
	}
	return violations
}

// retype tries the value of a violation in another type, and returns what is wrong then.
func (d *Definition) retype(payload any, f violation, before []violation) []violation {
	at, _ := find(payload, f.path)
	if at.set == nil {
		return before
	}
	other, ok := otherType(at.value)
	if !ok {
		return before
	}
	at.set(other)
	after := d.input.check(payload)
	if slices.ContainsFunc(after, func(g violation) bool { return g.path == f.path }) {
		at.set(at.value)
		return before
	}
	return after
}

// has reports whether the payload has the property.
func (d *Definition) has(property string) bool { return d.properties[property] }

// Title names the action for users: its schema's title, or its brief.
func (d *Definition) Title() string {
	root, _ := d.input.root.(map[string]any)
	title, _ := root["title"].(string)
	return cmp.Or(title, d.Brief)
}
