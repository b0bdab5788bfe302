// Package reminders reminds users, once or repeatedly, by their own wall clocks; the persona
// says the reminder in the place where it was set. The plugin keeps reminders and notices when
// they are due. What is said then is decided by the turn, and what a time or a rule means by
// the packages spoken and calendar.
//
// A reminder lies under its user's path, so it is shown to them and erased with them. Three
// kinds of pointer lead to it, which mean nothing once it is gone: under its place, for lists;
// under the pseudo-place "@due/HOUR", for the due ones; and under "@hours", the list of hours.
// So only the next hour is read, however many reminders there are.
//
// A due reminder is received as an event of core.KindReminder whose id is made of the
// reminder and the moment it was due: a crash before the next write does not remind twice.
package reminders
