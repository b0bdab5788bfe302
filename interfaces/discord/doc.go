// Package discord lets people talk to the bot on Discord: in channels, threads
// and posts of guilds, in the text of voice channels, in group and direct
// messages. Its places are NAME/GUILD/CHANNEL, NAME/GUILD/CHANNEL/THREAD and
// NAME/@me/CHANNEL, its message action is message_NAME.
//
// Package gateway keeps the bot connected, package rest makes requests. Sessions are
// resumed after a drop; where that is not possible, what was
// missed is fetched channel by channel, and what comes in meanwhile waits for it:
// in channels that were heard of before, and in those of guilds where something
// was said since. Who wrote it is asked for as well, so that ranks are those of
// live messages; beyond 200 people in one session, they count as members.
//
// Some of what happens while nobody listens cannot be found: edits, deletions and
// reactions, presses and commands, and the very first direct message of a person,
// as the platform tells a bot of no channel that it does not know.
//
// A message carries the journal's key as its nonce, which the platform honours
// for some minutes. Where the journal tells that a part may have been sent in a
// former life, the channel is looked at first. A command that shows as being thought
// about is answered in its place in the life after as well, while the platform lets
// it be.
//
// It decides nothing about a conversation. Whether to answer, what is kept and
// who may do what is told by other rooms; this one says what Discord said.
package discord
