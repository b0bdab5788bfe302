package knowledge

import (
	"context"
	"path"
	"strings"

	"synthbot/core/document"
)

// format makes Markdown of a file.
type format func(ctx context.Context, p *Plugin, data []byte) (string, error)

// formatOf returns how a file is read; nil: it is not.
func formatOf(name string) format {
	switch strings.ToLower(path.Ext(name)) {
	case ".md", ".markdown", ".txt":
		return func(_ context.Context, _ *Plugin, data []byte) (string, error) { return document.Text(data) }
	}
	return nil
}
