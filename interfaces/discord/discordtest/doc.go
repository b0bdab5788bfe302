// Package discordtest is a Discord on the loopback, as strict as the platform:
// a gateway with intents, heartbeats, sessions that can be resumed, shards and
// limits of identifying; the REST interface with rate limits that are told in
// headers, lengths, nonces that are honoured for some minutes, permissions,
// interactions and their three seconds, application commands and files; and
// failures on demand. It keeps what stands in each channel, so that a test can
// look at it as a person would.
//
// A server begins with one guild, GuildID, with the channels, people and roles
// that have names here; further ones are added. People need no invitation: whoever
// says something is a member. What a bot does that the platform would not forgive
// is noted as a breach, and fails the test that New was given.
//
// It is not the platform: nothing is kept on disk, and it knows what a chat bot
// uses. Only tests import it.
package discordtest
