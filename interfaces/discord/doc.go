// Package discord lets users talk to the bot on Discord: in channels, threads and posts
// of guilds, in the text of voice channels, in group and direct messages. Its places are
// NAME/GUILD/CHANNEL, NAME/GUILD/CHANNEL/THREAD and NAME/@me/CHANNEL. Its message action
// is message_NAME.
//
// Package gateway keeps the bot connected, package rest makes requests, package markup
// writes Markdown as Discord shows it. The way of a message through this package:
//
//   - [feed] queues events as they come; [responder] acknowledges interactions at once,
//     because Discord waits three seconds for that.
//   - [intake] takes events from the queue in order, turns them into events of core with
//     the help of [cache], and hands them to the inbox.
//   - [Driver.Actions] are what the model can do. They and the driver send through
//     [sender], which lets one message after the other into a channel.
//
// After a session that could not be resumed, [intake] fetches what was missed in channels
// that were known before, and in those of guilds where something was said since. Events
// of a channel wait for that. The members of authors are fetched as well, so that ranks
// are those of live messages; beyond 200 in one session, authors count as plain members.
// What cannot be fetched: edits, deletions, reactions, presses and commands, and the very
// first direct message of a user, because Discord does not list such channels.
//
// A message carries the journal's key as its nonce, with which Discord sends it once
// within some minutes. If an earlier process may have sent a part, the channel is searched
// first. A command is answered in its place also by a later process, as long as Discord
// accepts that.
//
// The package decides nothing about a conversation: whether to answer, what is kept and
// who may do what is decided elsewhere. It is larger than other packages because all of it
// works with one set of Discord's objects; what does not need them has a package of its
// own.
package discord
