package action

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"synthbot/core"
	"synthbot/core/schema"
)

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
// Types are strings, booleans, numbers, time.Time, what unmarshals from text,
// json.RawMessage and any (anything), pointers, slices, maps by string, and
// structs of these that do not hold themselves. Typed panics on any other type:
// it is called with types of the program, never with what comes from outside.
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

// Lint returns what the catalogue refuses about actions of a plugin. Their code may be
// missing.
func Lint(plugin string, actions ...core.Action) []string {
	list := slices.Clone(actions)
	for i := range list {
		list[i].Do = func(context.Context, core.Call) (r core.Result, err error) { return r, errors.ErrUnsupported }
	}
	_, err := Build(linted{plugin, list})
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

// linted is a plugin that only has actions.
type linted struct {
	name    string
	actions []core.Action
}

func (l linted) Name() string           { return l.name }
func (l linted) Actions() []core.Action { return l.actions }
