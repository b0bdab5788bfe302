package diary

import (
	"slices"
	"strings"

	"synthbot/core"
	"synthbot/core/action"
	"synthbot/core/txt"
)

// Plugin keeps the bot's diary. Safe for concurrent use.
type Plugin struct {
	host   core.Host
	config Config
}

// New makes the plugin.
func New(h core.Host, c Config) (*Plugin, error) { return &Plugin{host: h, config: c}, nil }

// Name implements core.Plugin.
func (p *Plugin) Name() string { return "diary" }

// Actions implements core.Plugin.
func (p *Plugin) Actions() []core.Action {
	write := action.Typed(writeAction, p.write)
	write.Undo = p.undoWrite
	return []core.Action{write, action.Typed(digestAction, p.digest)}
}

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
		w = strings.ToLower(txt.ClipLine(w, wordMax))
		if w != "" && !slices.Contains(all, w) {
			all = append(all, w)
		}
	}
	return all
}
