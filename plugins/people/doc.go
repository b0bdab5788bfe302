// Package people keeps short bios of the people whom the bot talks with: what
// they are called, what they like, and how the bot gets on with them. What
// belongs to no person is none of its business: see package memory.
//
// # What is kept
//
// A bio lies under its person's path, so that it is shown to him and erased with
// him. It is made of records, one for each who said something:
//
//	own                 what the person said of himself
//	bot                 what the bot thinks of him
//	telegram/@user/1    what that person said of him: hearsay; or that the two are linked
//
// Each value has the place where it was said as its origin, and is told there
// and below, and in places that share with it, nowhere else. What is told in
// private about others does not enter their bios at all.
//
// # Who changes what
//
// Everybody changes his own record, by speaking for himself alone. What he says
// of others is hearsay with his name on it: it never replaces what they said,
// and is told behind it. Relationship is the bot's own view of who speaks. The
// person may take out whatever is said of him; moderators may clear what was said
// in their place.
//
// # Links
//
// Somebody with accounts on several platforms links them by a code: given in
// private to the one, said in private by the other, once, within ten minutes.
// Then the values of both are read as one person's, each still only where its
// origin allows. Codes are kept as hashes, in memory only. A link holds while
// both sides have it.
package people
