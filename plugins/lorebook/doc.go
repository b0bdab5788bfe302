// Package lorebook adds pieces of lore to the prompt whose keys occur in the latest messages,
// as far as a budget allows. Books are the character_book of a character card (V2 or V3), a
// separate lorebook (lorebook_v3), or a world-info export whose entries have numbers. The
// plugin has no actions, keeps nothing, and learns nothing from what is said.
//
// # How entries are found
//
// The latest messages of the place (the book's scan_depth) are searched for an entry's keys:
// any of them and, if it is selective, one of its secondary keys as well. Keys match parts of
// words unless the configuration wants whole ones. Case counts only if the entry says so.
// With use_regex, keys are regular expressions of Go, also written as /…/i. Constant entries
// are always added. If a book scans recursively, found entries are searched in turn, a
// bounded number of times. Of the decorators of V3, which precede the content, @@activate,
// @@dont_activate, @@exclude_keys and @@role system are supported; the others are removed.
//
// # What the prompt contains
//
// Entries are snippets, among what recon knows; those of @@role system are instructions, which
// the model follows. Their order is insertion_order, lower first. What does not fit into the
// book's token budget, or into 2,000 bytes a turn, is left out: first entries of lower priority,
// then later ones, and constant entries last. {{char}} and {{user}} are replaced.
package lorebook
