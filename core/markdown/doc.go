// Package markdown reads the Markdown that a model writes into a small tree of
// our own, and splits long texts so that each part is complete by itself. Interfaces
// render the tree in what their platform understands; nothing here knows how.
//
// It reads CommonMark with tables, strikethrough, task lists and bare links, and
// differs from it in one way: nothing that a person would want to read is lost.
// HTML is text like any other, and a link definition that no link uses stays.
package markdown
