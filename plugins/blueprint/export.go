package blueprint

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"synthbot/core"
)

// Export writes actions as a blueprint that other agents can read, and that
// Import makes the same actions of.
func Export(actions []core.Action) ([]byte, error) {
	tools := make([]Tool, len(actions))
	for i := range actions {
		t, err := exported(&actions[i])
		if err != nil {
			return nil, fmt.Errorf("action %s: %w", actions[i].Name, err)
		}
		tools[i] = t
	}
	file := struct {
		Name         string         `json:"name"`
		Type         string         `json:"type"`
		Version      string         `json:"version"`
		Description  string         `json:"description"`
		Capabilities map[string]any `json:"capabilities"`
	}{"synthbot", "agent", "1.0.0", "What this bot can do.", map[string]any{"interfaces": []string{"chat"}, "tools": tools}}
	data, err := json.MarshalIndent(file, "", "  ")
	return append(data, '\n'), err
}

func exported(a *core.Action) (Tool, error) {
	t := Tool{
		Name: a.Name, Title: titleOf(a.Schema), Description: a.Brief, Input: a.Schema, Output: a.Output,
		Annotations: Annotations{ReadOnly: !a.Outside, Idempotent: a.Idempotent},
		Security:    Security{Confirm: a.Confirm},
	}
	if !json.Valid(a.Schema) || a.Output != nil && !json.Valid(a.Output) {
		return t, fmt.Errorf("a schema is no JSON")
	}
	if rest := strings.TrimSpace(a.Examples.Description); rest != "" {
		t.Description = strings.TrimSuffix(a.Brief, ".") + ". " + rest
	}
	if p := a.Allows(); p != core.Concerned { // which nobody else knows
		t.Security.Permission = string(p)
	}
	for _, x := range a.Examples.Examples {
		raw, err := json.Marshal(x)
		if err != nil {
			return t, fmt.Errorf("example %q: %w", x.Scenario, err)
		}
		t.Examples = append(t.Examples, raw)
	}
	t.Meta.Own = &own{
		Brief: a.Brief, Similes: a.Similes, Examples: a.Examples, DependsOn: a.DependsOn, Effects: a.Effects, Essential: a.Essential, Outside: a.Outside,
		Permission: a.Permission, Concerns: a.Concerns, Confirm: a.Confirm, Timeout: written(a.Timeout), Retries: a.Retries,
		Idempotent: a.Idempotent, Busy: a.Busy, RateCount: a.RateLimit.Count, RatePer: written(a.RateLimit.Per), Cache: written(a.Cache),
	}
	return t, nil
}

func written(d time.Duration) string {
	if d == 0 {
		return ""
	}
	return d.String()
}

// titleOf is what a schema calls itself.
func titleOf(schema json.RawMessage) string {
	var s struct{ Title string }
	if json.Unmarshal(schema, &s) != nil {
		return ""
	}
	return s.Title
}

// Import reads a blueprint as actions without code, just as it says them: who
// uses them decides who may.
func Import(data []byte) ([]core.Action, error) {
	b, err := Read(data)
	if err != nil {
		return nil, err
	}
	actions := make([]core.Action, len(b.Tools))
	for i := range b.Tools {
		actions[i] = b.Tools[i].action()
	}
	return actions, nil
}

// indented writes JSON for people.
func indented(raw json.RawMessage) string {
	var v any
	if json.Unmarshal(raw, &v) != nil {
		return string(raw)
	}
	data, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return string(raw)
	}
	return string(data)
}
