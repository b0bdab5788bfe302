// Package discord lets users talk to the bot on Discord: in channels, threads and posts of guilds, in the
// text chat of voice channels, and in group and direct messages. Its places are NAME/GUILD/CHANNEL,
// NAME/GUILD/CHANNEL/THREAD and NAME/@me/CHANNEL. Its message action is message_NAME.
//
// Package gateway keeps the bot connected, package rest makes requests, package markup converts Markdown for
// Discord. A message passes through this package as follows:
//
//   - [feed] queues incoming events. [responder] acknowledges interactions at once, because Discord waits
//     only three seconds.
//   - [intake] takes events from the queue in order, converts them into events of core with the help of
//     [cache], and passes them to the inbox.
//   - [Driver.Actions] are the actions of the model. They and the driver send one message at a time to
//     a channel, and none twice.
//
// If a session could not be resumed, [intake] fetches missed messages: in known channels, and in channels of guilds
// with newer messages. Events of a channel wait until that is done. The authors' members are fetched, too, so that
// their ranks are right; beyond 200 in one session, authors count as plain members. Not fetched are edits, deletions,
// reactions, presses and commands, and the first direct message of a user, because Discord does not list such channels.
//
// The nonce of a message is the journal's key, so that Discord sends it only once within some minutes. If an
// earlier process may have sent a part, the channel is searched first. A later process can also answer a
// command, as long as Discord accepts that.
//
// The package decides nothing about a conversation, such as whether to answer, what is stored, and who may
// do what. It is larger than other packages because most of it works with the same objects of Discord.
package discord
