// Package daemon is one running bot: it builds the bot from a configuration, starts,
// reloads and stops it. Env.Run is the whole program from top to bottom: read it first.
//
// It also holds what all rooms meet in: the configuration as a whole (Config), the lists of
// interfaces and plugins (interface_list.go, plugin_list.go), the bot's own chat commands,
// the alerts to admins and the control socket. These know each other, so that the package
// is larger than others. Command lines are in cmd/synthbot.
package daemon
