// Package people keeps short bios of the users whom the bot talks with: their names, what
// they like, and how the bot gets on with them. Facts about no user belong to package
// memory.
//
// # What is kept
//
// A bio lies under its user's path, so it is shown to them and erased with them. It consists
// of records, one for each source:
//
//	own                 what the user said about themselves
//	bot                 what the bot thinks of them
//	telegram/@user/1    what that user said about them (hearsay), or that the two are linked
//
// The origin of a value is the place where it was said. Values are shown there and below,
// and in places that share with it, nowhere else. What somebody says in private about others
// does not enter their bios.
//
// # Who changes what
//
// Users change their own record by speaking about themselves. What they say about others is
// hearsay with their name: it never replaces what those said themselves, and comes after it.
// Relationship is the bot's own view of the author. Users may remove what is said about
// them; moderators may clear what was said in their place.
//
// # Links
//
// A user with accounts on several platforms links them by a code: given in private to one
// account, said in private by the other, once, within ten minutes. Then the values of both
// are read as one user's, each still only where its origin allows. Codes are kept as hashes,
// in memory only. A link holds while both sides have it.
package people
