// Package markdown parses the Markdown of models into a small tree, and splits long
// texts into parts that are complete by themselves. Interfaces render the tree for
// their platform.
//
// It parses CommonMark with tables, strikethrough, task lists and bare links, but keeps
// everything that a reader may want to see: HTML is normal text, and an unused link
// definition is a paragraph.
package markdown
