// Package knowledge lets the bot answer from documents: folders, web pages, feeds, and what
// users teach it. Documents are cut into passages by their structure, and the store's index
// finds these by words and by meaning. Before a turn the passages that fit are offered to the
// model, which cites them by short marks; marks become links or names of files, and those that
// were not offered are removed.
//
// # Who sees what
//
// A source names the places where it may be cited. Every search names the sources that may be
// seen where the turn takes place, and the index looks at no others. What is taught in a group
// is seen in that group; what an admin teaches in private is seen everywhere.
//
// # Documents are foreign
//
// What a document says is data. It is marked as such in prompts, and a turn that read it is
// under the rules for foreign text. A file that cannot be read, or is larger than its limits,
// is one line in the log; it is tried again when it changes.
//
// # What is kept
//
// The index is derived from the sources and can be made again. Entries that users teach are
// items without a path ("entry ID"); who taught them lies under that user's own path, so that
// it is shown to them and erased with them. Questions that nothing answered lie under the path
// of the asker, with a mark under their place, so that they go with either.
package knowledge
