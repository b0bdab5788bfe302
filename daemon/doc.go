// Package daemon holds one running bot: it builds the bot from a configuration, starts,
// reloads and stops it. The configuration as a whole (Config), the lists of interfaces and
// plugins (interface_list.go, plugin_list.go), the bot's own chat commands, the alerts to admins
// and the handlers of the control socket are part of it. Command lines are not: they are
// in cmd/synthbot.
package daemon
