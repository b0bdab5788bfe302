// Package moderation lets moderators block and mute users, hears appeals, and keeps a log.
//
// It bans nobody from a platform: that is what the interfaces' own actions are for. A
// refused message never reaches a model. Further gates, such as limits and filters, see
// only messages of users who are neither blocked nor muted, and share the log.
//
// # Who may do what
//
// Only moderators and admins, by the rank that comes with the call: no text and no model
// can claim one. Moderators block within their group (the guild, or the chat with all its
// topics), admins everywhere. Nobody blocks an admin, and moderators do not block each
// other. The model's block_user and unblock_user are confirmed by a button first, so that
// text that a moderator only quotes does nothing.
//
// # What becomes of a message
//
// Messages from blocked users are not stored (gate.Discard). In private the commands
// /appeal, /mydata and /forgetme still work, five times a day. Messages from muted users,
// and in muted places, are stored and not answered (gate.Quiet); commands work, and
// moderators who speak to the bot in a muted place are answered. A mute ends by itself;
// the bot's own /sleep does not. Both are checked again before a message is answered, and
// when it is edited.
//
// # What is kept
//
// That a user is blocked or muted is an item without a path: "hold " + a keyed hash of the
// user + " block " or " mute " + where. Its value says since when and until when. It names
// nobody, so it outlives /forgetme, although its random key is in the same file ("key").
// What names somebody lies under that user's own path, is shown to them and is erased with
// them: name and reason ("hold block WHERE"), what happened to them ("log ID"), their
// appeals ("appeal ID"), what they did as a moderator ("did ID"), and where they were seen
// as a moderator ("moderator GROUP"). Then moderators see "somebody who was forgotten", and
// lift the block by the beginning of the hash, or by the id once the user is back. A muted
// place has "mute" and its log under its own path.
//
// Nothing that users say is kept here, except in appeals.
package moderation
