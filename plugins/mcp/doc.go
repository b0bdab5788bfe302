// Package mcp makes the tools of other programs actions of the bot, and lends
// what the bot knows to other programs, both by the Model Context Protocol: over
// stdio and streamable HTTP, by the official SDK.
//
// A server is somebody else's program. What it says, its descriptions and errors
// too, is data: capped, on one line where it goes into a prompt, and marked as
// foreign where a model reads it. Who may call what, and what a person must
// confirm, the configuration decides; a server's own hints can only make it ask
// less where it says that a tool changes nothing.
//
// Each configured server has one goroutine that owns its process or connection:
// it connects, lists what there is, and when the server dies, floods or hangs,
// takes its actions out of the catalogue and starts it again, after pauses that
// grow.
//
// It is not a way to drive the bot: what Serve offers reads and sends, in places
// that the configuration names.
package mcp
