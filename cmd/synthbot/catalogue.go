package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"

	"synthbot/core"
	"synthbot/daemon"
)

// shelf is a plugin that only shows what it has: the actions of a file.
type shelf struct{ actions []core.Action }

func (shelf) Name() string             { return "catalogue" }
func (s shelf) Actions() []core.Action { return s.actions }

// loadCatalogue reads a file as `synthbot actions --format json` writes it; no
// file is an empty shelf.
func loadCatalogue(file string) (shelf, error) {
	if file == "" {
		return shelf{}, nil
	}
	raw, err := os.ReadFile(file)
	if err != nil {
		return shelf{}, daemon.Usagef("%w", err)
	}
	var list []struct {
		listed
		Essential bool `json:"essential"`
	}
	if err := json.Unmarshal(raw, &list); err != nil {
		return shelf{}, daemon.Usagef("%s: %w", file, err)
	}
	var s shelf
	for _, l := range list {
		if strings.HasPrefix(l.Name, core.MessagePrefix) {
			continue // the interface brings its own
		}
		if l.Permission == core.PermissionConcerned {
			l.Permission = core.PermissionEveryone // whom it concerns, the file does not say
		}
		s.actions = append(s.actions, core.Action{
			Name: l.Name, Brief: l.Brief, Schema: l.Schema, Examples: l.Examples, Similes: l.Similes,
			Permission: l.Permission, Essential: l.Essential,
			Do: func(context.Context, core.Call) (core.Result, error) {
				return core.Result{}, fmt.Errorf("%s is only shown", l.Name)
			},
		})
	}
	return s, nil
}
