// Package diary lets the bot keep a diary of its own: what happened in a place, how it felt
// about it, and what it thought for itself. Facts belong to package memory, bios to package
// people.
//
// # What is kept
//
// One item a day under each place's path, with the day's entries and, later, their digest.
// The origin of an entry is its place. It is shown there and below, and in places that share
// with it, nowhere else.
//
// # Private thoughts
//
// They never leave the diary. A view of a day, from which all prompts, commands and exports
// are made, has no field for them. Their only use is the digest: a model that reads them may
// answer with a mood, one word of a fixed list, and nothing else. The text of the digest is
// asked for separately, from what may be shown.
//
// # Digests
//
// The action diary_digest, for the bot's own beats only, puts a day into a few sentences.
// Without a configured engine, the shortened summaries are the digest. Prompts show a day
// that has a digest by its digest.
//
// # People
//
// An entry lists the users that it names or came from, by path, so that users can see the
// entries about them and have them removed: entries about them alone are deleted, their names
// leave the others, and digests of such days are made again.
package diary
