// Package games holds small things that groups love: dice, random choices and
// polls. It keeps no scores and runs no games of turns.
//
// # Polls
//
// Where an interface has polls of its own ([Config].Native), poll_create hands
// the poll to it, and whatever happens then is the platform's business. Elsewhere,
// and in private, the bot counts: a poll is an item of its place, a vote an item
// of its voter, so that everybody has one vote, can see it, and takes it away when
// he is forgotten. People vote by the command vote, or by telling the bot, whose
// model then uses poll_vote. A poll ends at its time, which becomes a turn that
// tells the result, or when its maker or a moderator says so; what is left are
// numbers, for some weeks.
package games
