// Package spoken reads times as people say them in a chat: "in 10 minutes", "domani alle 9",
// "every monday at 18:30". It knows English, Italian, German, French, Spanish and Portuguese,
// each from a file of words. It is pure: the caller passes the time and the time zone.
//
// It prefers no reading to a wrong one. Two libraries did not: one costs 230 ms of every start
// and 6 MiB, the other knows only two of these languages, and both read "tomorrow at 9" as
// this time tomorrow.
//
// A file of words has lines "meaning …: phrase, phrase". Meanings are in, later, at, on, the,
// next, every, and, half, quarter, past, to, half-to, clock, am, pm, workday, glue, and with
// values number, unit, day (from today), part (of a day), hour, weekday (Sunday is 0), month
// and next (1: not today). Two meanings mean two words.
package spoken
