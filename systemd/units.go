// Package systemd holds the files by which systemd runs the bot, as they are
// shipped; `synthbot service install` fits them to a machine. It runs nothing.
package systemd

import _ "embed"

//go:embed synthbot.service
var unit string

//go:embed tools.conf
var tools string

// Unit is the hardened unit of the daemon.
func Unit() string { return unit }

// Tools is a drop-in for a bot that starts programs of its own.
func Tools() string { return tools }
