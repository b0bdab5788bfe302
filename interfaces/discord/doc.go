// Package discord lets people talk to the bot on Discord: in channels and
// threads of guilds, in group and direct messages. Its places are
// NAME/GUILD/CHANNEL, NAME/GUILD/CHANNEL/THREAD and NAME/@me/CHANNEL, its
// message action is message_NAME.
//
// A library speaks the gateway's protocol; this package watches it. Every
// connection is a session of the library of its own, seen through [wire], which
// takes the library's place wherever that would hang, crash, or identify out of
// turn. Sessions are resumed after a drop; where that is not possible, what was
// missed is fetched channel by channel, and what comes in meanwhile waits for it.
//
// It decides nothing about a conversation. Whether to answer, what is kept and
// who may do what is told by other rooms; this one says what Discord said.
package discord
