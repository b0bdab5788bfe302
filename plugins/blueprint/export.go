package blueprint

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"synthbot/core"
)

// Export writes actions as a blueprint that other agents can read, and of which the plugin
// makes the same actions. version is the program's; what is not a semantic version becomes a
// part of 0.0.0.
func Export(version string, actions []core.Action) ([]byte, error) {
	return export(version, "", actions)
}

// export is Export with the address at which a Server serves the actions, if one does.
func export(version, address string, actions []core.Action) ([]byte, error) {
	tools := make([]Tool, len(actions))
	for i := range actions {
		t, err := exported(&actions[i])
		if err != nil {
			return nil, fmt.Errorf("action %s: %w", actions[i].Name, err)
		}
		if address != "" {
			t.Endpoint = endpoint{Method: http.MethodPost, Path: "/tools/" + t.Name}
		}
		tools[i] = t
	}
	if !semantic().MatchString(version) {
		version = "0.0.0+" + cmp.Or(version, "unknown")
	}
	file := struct {
		Name         string         `json:"name"`
		Type         string         `json:"type"`
		Version      string         `json:"version"`
		Description  string         `json:"description"`
		Endpoint     string         `json:"endpoint,omitempty"`
		Capabilities map[string]any `json:"capabilities"`
	}{"synthbot", "agent", version, "What this bot can do.", address, map[string]any{
		"interfaces": []string{"chat"}, "tools": tools,
	}}
	data, err := json.MarshalIndent(file, "", "  ")
	return append(data, '\n'), err
}

func exported(a *core.Action) (Tool, error) {
	if !json.Valid(a.Schema) || a.Output != nil && !json.Valid(a.Output) {
		return Tool{}, errors.New("a schema is no JSON")
	}
	var schema struct{ Title string }
	_ = json.Unmarshal(a.Schema, &schema) // a schema may be true or false
	t := Tool{
		Name: a.Name, Title: schema.Title, Description: a.Brief, Input: a.Schema, Output: a.Output,
		Annotations: Annotations{ReadOnly: a.ReadOnly(), Idempotent: a.Idempotent},
		Security:    Security{Confirm: a.Confirm},
	}
	rest := strings.TrimSpace(a.Examples.Description)
	if rest != "" {
		t.Description = strings.TrimSuffix(a.Brief, ".") + ". " + rest
	}
	if a.Allows() != core.PermissionConcerned { // which nobody else knows
		t.Security.Permission = string(a.Allows())
	}
	for _, x := range a.Examples.Examples {
		raw, err := json.Marshal(x)
		if err != nil {
			return t, fmt.Errorf("example %q: %w", x.Scenario, err)
		}
		t.Examples = append(t.Examples, raw)
	}
	t.Meta.Own = &exportedAction{
		Brief: a.Brief, Similes: a.Similes, Examples: a.Examples, DependsOn: a.DependsOn, Effects: a.Effects,
		Essential: a.Essential, External: a.External, Outside: a.Outside,
		Permission: a.Permission, Concerns: a.Concerns, Confirm: a.Confirm,
		Timeout: span(a.Timeout), Retries: a.Retries, Idempotent: a.Idempotent, Busy: a.Busy,
		RateCount: a.RateLimit.Count, RatePer: span(a.RateLimit.Per), Cache: span(a.Cache),
	}
	return t, nil
}
