// Package knowledge lets the bot answer from documents: folders, web pages, feeds, and what users teach it.
// Documents are cut into passages by their structure, and the store's index finds passages by words and by
// meaning. Before a turn, matching passages are offered to the model, which cites them by short marks. In
// answers, marks become links or file names. Marks of passages that were not offered are removed.
//
// # Access
//
// A source lists the places where it may be cited. Every search is limited to the sources that are visible in
// the place of the turn. What is taught in a group is visible in that group; what an admin teaches in private
// is visible everywhere.
//
// # Documents are untrusted
//
// The text of a document is data. It is marked as such in prompts, and a turn that has read it is under the
// rules for foreign text. A file that cannot be read, or exceeds a limit, is logged once, and read again when
// it changes.
//
// # Storage
//
// The index is derived from the sources and can be rebuilt. A taught entry is an item ("entry ID") without a
// path or, if it repeats a user's message, under the path of that user. Who taught it is stored under the
// teacher's path. Unanswered questions are stored under the path of the asker, with a mark under their place.
// So all of this is shown to these users, and erased with them or the place.
package knowledge
