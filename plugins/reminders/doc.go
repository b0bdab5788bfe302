// Package reminders lets people be reminded: once or again and again, by their
// own wall clocks, told by the persona in the place where it was asked for. It
// keeps and fires; what is said then is the turn's business, and what a time or a
// rule means is that of its packages spoken and calendar.
//
// A reminder stands under its person's path, where he is shown it and loses it
// when he is forgotten. Beside it stand three kinds of pointer, which may be left
// behind and then mean nothing: under its place, for lists; under the pseudo-place
// "@due/HOUR", for falling due; and under "@hours", which hours there are. So
// nothing is read but the hour that comes next, however many reminders wait.
//
// One that falls due is received as an event of core.KindReminder whose id is
// made of the reminder and the moment it was due: a crash between that and what
// is written afterwards does not remind twice.
package reminders
