// Package systemd holds the shipped files of systemd; `synthbot service install` adapts them
// to a machine.
package systemd

import _ "embed"

//go:embed synthbot.service
var unit string

//go:embed tools.conf
var tools string

// Unit returns the hardened unit of the daemon.
func Unit() string { return unit }

// Tools returns a drop-in for a bot that starts programs.
func Tools() string { return tools }
