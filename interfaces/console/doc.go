// Package console lets users talk to the bot through a terminal or a pipe. A place is
// NAME/SESSION ("console/main"), the action is message_NAME.
//
// On a terminal, it edits lines, keeps a history of them, shows Markdown, and shows that the
// bot is thinking. On a pipe, every line is a message; the next one is read when the turn of
// the former one is over, so that replies have the order of the lines. A reply on a pipe is
// the text of the model without control characters, and a newline.
package console
