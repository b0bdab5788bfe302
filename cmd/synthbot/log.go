package main

import (
	"log/slog"

	"github.com/lmittmann/tint"

	"synthbot/interfaces/console"
)

// logger writes to standard error: coloured on a terminal, JSON under systemd.
// Nothing below least is logged, whatever the file says.
func (p *program) logger(c *Config, least slog.Level) *slog.Logger {
	level := max(c.Log.Level, least)
	typed := console.IsTerminal(p.errs)
	if c.Log.Format == "json" || c.Log.Format == "auto" && !typed {
		return slog.New(slog.NewJSONHandler(p.errs, &slog.HandlerOptions{Level: level}))
	}
	return slog.New(tint.NewTextHandler(p.errs, &tint.Options{Level: level, NoColor: !typed, TimeFormat: "15:04:05"}))
}
