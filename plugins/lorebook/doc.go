// Package lorebook tells the model what the talk touches: pieces of lore whose
// keys come up in the latest messages stand in the prompt, as much as a budget
// allows. Books are the character_book of a character card (V2 or V3), a
// lorebook of its own (lorebook_v3), or a world-info export whose entries stand
// under numbers. It has no actions, keeps nothing, and learns nothing from what
// is said.
//
// # What is found
//
// The latest messages of the place (the book's scan_depth) are searched for an
// entry's keys: any of them, and, where it is selective, one of its secondary
// keys, too. Keys are parts of words unless the configuration wants whole ones;
// case counts only where the entry says so; with use_regex they are regular
// expressions of Go's kind, also written as /…/i. Entries that are constant are
// always told. Where a book scans recursively, what was found is searched in
// turn, a bounded number of times. Of the decorators of V3, which stand before
// the content, @@activate, @@dont_activate and @@exclude_keys are heeded, and
// the others left out.
//
// # What is told
//
// Entries by insertion_order, lower first. What does not fit into the book's
// token budget, or into what a turn takes (2,000 bytes), is left out: of lower
// priority first, then what comes later; constant entries last of all.
// {{char}} and {{user}} are put in.
package lorebook
