// Package limits limits how often the bot may be asked, and stops repeats, floods and
// walls of text.
//
// Only messages that speak to the bot count, and those in the places of Config.CountAll.
// Presses of buttons have counts of their own, in private and in groups. The bot's own
// events, such as reminders, do not count. Guards do not apply to moderators.
//
// A message beyond a limit is kept and not answered; a gross flood is not even kept.
// Its author is warned once in each period of a limit, and by guards every ten minutes. A
// press has no text to answer to, and its limit is only logged.
//
// Counts are in memory, in tables of a fixed size. That a limit was reached is in the
// log, from which the next process learns that it still holds.
package limits
