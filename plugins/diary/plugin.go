package diary

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"synthbot/core"
	"synthbot/core/txt"
)

// Plugin keeps the bot's diary. Safe for concurrent use.
type Plugin struct {
	host    core.Host
	config  Config
	actions []core.Action
}

// New makes the plugin.
func New(h core.Host, c Config) (*Plugin, error) {
	p := &Plugin{host: h, config: c}
	p.actions = []core.Action{p.writeAction(), p.digestAction()}
	return p, nil
}

// Name implements core.Plugin.
func (p *Plugin) Name() string { return "diary" }

// Actions implements core.Plugin.
func (p *Plugin) Actions() []core.Action { return p.actions }

// Limits of an entry.
const (
	summaryMax = 400 // characters
	thoughtMax = 400
	wordMax    = 32 // characters of a feeling or a tag
	nameMax    = 64
)

// words are short words in small letters, each once.
func words(list []string) (all []string) {
	for _, w := range list {
		if w = strings.ToLower(txt.Clip(txt.Line(w), wordMax)); w != "" && !slices.Contains(all, w) {
			all = append(all, w)
		}
	}
	return all
}

// stands reports whether the turn's own message is still there: that nobody who
// caused it was forgotten since.
func (p *Plugin) stands(ctx context.Context, c *core.Call) error {
	if p.host.Facts.Epoch() == c.Epoch {
		return nil
	}
	turn, there := c.Key.Turn, false
	err := p.host.Reader.View(ctx, func(v core.View) error {
		entries, err := v.After(turn.Path, max(turn.Seq, 1)-1, 1)
		there = err == nil && len(entries) == 1 && entries[0].Message.Seq == turn.Seq && !entries[0].Deleted
		return err
	})
	if err != nil {
		return fmt.Errorf("turn %s: %w", turn, err)
	}
	if !there {
		return &core.Error{Kind: core.Forbidden, Text: "somebody whom it concerns asked to be forgotten meanwhile", Err: core.ErrForgotten}
	}
	return nil
}
