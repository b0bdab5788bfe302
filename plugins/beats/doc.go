// Package beats gives the bot an initiative of its own: at times that the
// configuration sets it begins a turn that nobody asked for, a check-in, a word
// to a chat that has fallen silent, or, unseen, something for itself such as
// putting its diary in order.
//
// It writes unasked only where the place wants it: a group's moderators, and a
// person in his private chat, say so by /beats on, or the configuration names the
// place itself, and /beats off ends it in any case. It keeps to budgets by day,
// never writes at night there, nor while people are talking, nor again while
// nobody has reacted to the last time. What was missed while the bot was away is
// dropped. What a beat is to say is the turn's business.
//
// A beat is an event of core.KindBeat whose Data says what the turn may do:
// {"beat":"NAME","quiet":true,"actions":["diary_*"]}. That it happened is marked
// before it does: a crash in between costs a beat, and none comes twice.
package beats
