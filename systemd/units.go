// Package systemd holds the units that are shipped for systemd. `synthbot service install` adapts them to a machine.
//
// synthbot@.service is a template for several workers on one machine, made from synthbot.service.
package systemd

import _ "embed"

//go:generate sh template.sh

//go:embed synthbot.service
var unit string

//go:embed tools.conf
var tools string

// Unit returns the hardened unit of the daemon.
func Unit() string { return unit }

// Tools returns a drop-in for a bot that starts programs.
func Tools() string { return tools }
