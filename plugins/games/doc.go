// Package games has small things that groups love: dice, random choices and polls. It keeps no
// scores and has no turn-based games.
//
// # Polls
//
// If an interface has polls of its own ([Config].Native), poll_create hands the poll to it,
// and the platform does the rest. Elsewhere, and in private, the bot counts: a poll is an item
// of its place and a vote an item of its voter, so that everybody has one vote, can see it,
// and takes it away when they are forgotten. Users vote by the command vote, or by telling
// the bot, whose model then uses poll_vote. A poll ends at its time, or when its maker or a
// moderator says so. Its end becomes a turn that announces the result. The numbers are kept
// for some weeks.
package games
