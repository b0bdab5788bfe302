// Package diary lets the bot keep a diary of its own: what happened in a place,
// how it felt about it, and what it thought for itself. It is no memory of facts
// (package memory) nor of people (package people).
//
// # What is kept
//
// One item a day under each place's path, with the day's entries and, later,
// their digest. An entry's origin is its place: it is told there and below, and
// in places that share with it, nowhere else.
//
// # Private thoughts
//
// They leave the diary in no words at all. A view of a day, which is all that
// prompts, commands and a Keeper are made of, has no field for them. Their one
// use is the digest: a model that is shown them may answer with a mood, a word of
// a fixed list, and nothing else. The digest's text is asked for separately, of
// what may be told.
//
// # Digests
//
// The action diary_digest, for the bot's own beats only, puts a day into a few
// sentences. Where no engine is configured, the summaries themselves, shortened,
// are the digest. In prompts, a day that has a digest is told by it.
//
// # People
//
// An entry lists the people that it names or that it came from, by path, so that
// a person can be shown what he is in, and be taken out: entries of him alone
// go, in others his name does, and digests of such days are made anew.
package diary
