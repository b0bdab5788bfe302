// Package discordtest is a local Discord server that is as strict as the platform. Its gateway has intents, heartbeats,
// resumable sessions, shards and limits of identifying. Its REST API has rate limits in headers, maximum lengths,
// nonces that are remembered for some minutes, permissions, interactions that must be answered within three seconds,
// application commands and files. Requests fail on demand. The server stores the messages of each channel, so that a
// test sees them as a user would.
//
// A server begins with one guild, GuildID, and the channels, users and roles whose ids are constants of this package;
// more can be added. Every user who writes in a guild is a member. If the bot breaks a rule of the platform, that is
// recorded as a breach, and fails the test that New was given.
//
// The server stores nothing on disk, and supports only what a chat bot uses. Only tests import it.
package discordtest
