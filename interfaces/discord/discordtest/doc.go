// Package discordtest is a Discord on the loopback, as strict as the platform: a gateway
// with intents, heartbeats, sessions that can be resumed, shards and limits of
// identifying; the REST interface with rate limits in headers, lengths, nonces that are
// remembered for some minutes, permissions, interactions and their three seconds,
// application commands and files; and failures on demand. It keeps the messages of each
// channel, so that a test sees them as a user would.
//
// A server begins with one guild, GuildID, with the channels, users and roles that have
// names here; more can be added. Users need no invitation: a user who says something is a
// member. If the bot breaks a rule of the platform, that is recorded as a breach, and
// fails the test that New was given.
//
// It is not the whole platform: nothing is kept on disk, and it knows only what a chat bot
// uses. Only tests import it.
package discordtest
