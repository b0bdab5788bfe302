// Package beats lets the bot write on its own initiative. At times that the configuration
// sets it begins a turn that nobody asked for: a check-in, a word to a chat that has fallen
// silent, or something unseen for itself, such as a digest of its diary.
//
// It writes unasked only where the place wants it: a group's moderators, and users in their
// private chats, say so by /beats on, or the configuration names the place. /beats off always
// ends it. It keeps to daily budgets. It does not write at night there, while people are
// talking, or again while nobody has reacted to the last time. What was missed while the bot
// was away is dropped. What a beat says is decided by the turn.
//
// A beat is an event of core.KindBeat whose Data says what the turn may do:
// {"beat":"NAME","quiet":true,"actions":["diary_*"]}. It is marked as done before it happens:
// a crash in between costs a beat, and none comes twice.
package beats
