// Package plugins says how a plugin is made; each lies in a folder of its own
// below. It holds no code. docs/plugins.md is the guide, with a whole plugin.
//
// # A plugin
//
// A plugin is a value with a name and actions ([synthbot/core.Plugin]), made by
//
//	func New(h core.Host, c Config) (*Plugin, error)
//
// and one line in the list of daemon. Config is its table [plugins.NAME]:
// a struct whose fields' tags say key, default and bounds (package config). What
// else it can do, it says by small interfaces of core, each of one method or two:
// Runner (works in the background), Injector (adds to a prompt), Recon (hints at
// what a message is), Observer (learns what became of turns), Biographer (tells
// about people), Gate (keeps messages out), Keeper (shows and erases what it
// keeps about people); and command.Commander offers chat commands.
//
// # Rules
//
//   - It imports core, core/action, core/command and core/markdown, core/outbound
//     for the network and core/program for processes, and never another plugin.
//   - New starts nothing and waits for nothing. What works in the background does
//     so in Run, and has ended when Run returns.
//   - Everything is safe for concurrent use, and ends when its context does.
//   - Clock is the only clock, and Items and Facts are all that outlives the
//     process. What is kept about a user lies under their path, or the plugin is
//     a Keeper.
//   - What is said in a place is shown there and below, and in places that share
//     with it, nowhere else: Facts have an Origin, Items of a place are read from
//     that place, and Scene.Sees and Call.Sees say what may be looked at.
//   - The program decides what may be done; the model only asks for it. Who may
//     cause an action is declared and checked by the catalogue; a plugin checks
//     what only it can know.
//   - Payloads, files and answers of servers are foreign: they are bounded,
//     validated and fuzzed. Texts from outside are data, and marked so.
//   - An action's error for people is a core.Error; any other one goes to the log.
//   - An action may run twice when the process dies in between, if it says
//     Idempotent; Call.Key tells that it is the same call.
package plugins
