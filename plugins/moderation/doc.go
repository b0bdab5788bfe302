// Package moderation keeps order: who is blocked, where the bot is quiet, how
// often it may be asked, and which words and links are not welcome. What is
// refused never reaches a model. It bans nobody from a platform: that is what
// the interfaces' own actions are for.
//
// # Who may do what
//
// Moderators and admins alone, by the rank that comes with the call: no text and
// no model can claim one. A moderator blocks within his group (the guild, the
// chat with all its topics), an admin everywhere; nobody blocks an admin, and a
// moderator no moderator. The model's block_user and unblock_user are confirmed
// by a button first, so that words that a moderator only quotes do nothing.
//
// # What becomes of a message
//
// Of who is blocked nothing is kept (core.Discard). In private the commands
// /appeal, /mydata and /forgetme still come through, five times a day. Who is
// muted, and all but moderators who address the bot in a place that is muted, is
// heard and not answered (core.Quiet); so is who asks too often, repeats himself,
// floods or pastes walls of text, and he is told so once. Known commands work
// all the while. A mute is for a while; the bot's own /sleep is for good.
//
// Only what speaks to the bot is counted, and what stands in Config.CountAll;
// buttons have a count of their own. The bot's own events, reminders among them,
// are not counted. Limits and guards are asked when a message comes in; blocks,
// mutes and rules once more before it is answered, and when it is edited.
//
// # What is kept
//
// A block is an item of no path: "hold " + a keyed hash of the person + " block "
// + where. It holds since when, and until when, and nothing else: it is no longer
// about anybody whom one could name, and so it outlives /forgetme, while the key
// (random, "key") lies in the same file. Under the person's path lies what he is
// called and why he was blocked ("hold block WHERE"), what happened ("log ID") and
// his appeals ("appeal ID"): all of it is shown to him and goes with him. Then
// moderators see "somebody who was forgotten", and lift the block by the hash's
// beginning, or by the id when he is back. Who did it lies under that one's own
// path ("did ID"), likewise. That somebody was seen as a moderator of a group is
// kept under his path, too ("moderator GROUP"), so that no other moderator blocks
// him after a restart. Mutes of a place lie under the place's path ("mute").
//
// Counts live in memory, in tables of a fixed size; that a limit was reached is
// logged, and so still holds after a restart. What people said is kept nowhere.
package moderation
