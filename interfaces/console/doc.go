// Package console lets one person talk to the bot through a terminal or a pipe.
// Its place is NAME/SESSION ("console/main"), its action message_NAME.
//
// On a terminal it edits lines, keeps a history of them, shows Markdown and a
// sign while the bot is at work. On a pipe every line is a message; the next one
// is read when the turn that answers it is over, so that replies stand in the
// order of the lines. A reply on a pipe is the text as the model wrote it, less
// control characters, and a newline.
//
// It decides nothing about the conversation: what is said goes to the inbox, and
// what the bot says comes through the action.
package console
