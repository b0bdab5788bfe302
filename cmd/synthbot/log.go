package main

import (
	"log/slog"

	"github.com/lmittmann/tint"

	"synthbot/interfaces/console"
)

// logger writes to standard error: coloured on a terminal, JSON under systemd.
// Nothing below least is logged, whatever the file says. The level can change
// while the program runs.
func (p *program) logger(c *Config, least slog.Level) *slog.Logger {
	p.level.Set(max(c.Log.Level, least))
	typed := console.IsTerminal(p.errs)
	if c.Log.Format == "json" || c.Log.Format == "auto" && !typed {
		return slog.New(slog.NewJSONHandler(p.errs, &slog.HandlerOptions{Level: &p.level}))
	}
	return slog.New(tint.NewTextHandler(p.errs, &tint.Options{Level: &p.level, NoColor: !typed, TimeFormat: "15:04:05"}))
}
