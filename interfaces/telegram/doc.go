// Package telegram is the driver for Telegram: updates of the Bot API become events, and
// actions become calls. It owns message_telegram and the actions that edit, delete and
// react, and that send photos, documents and polls.
//
// A place is telegram/<chat>, or telegram/<chat>/<thread> for a topic of a forum; the
// General topic is the chat itself. A message's id is the platform's number in its chat;
// see places.go for what becomes of it with another bot.
//
// An answer shows while it is written: as the platform's own draft in private chats,
// elsewhere as a message that is edited and becomes the answer (see core/draft).
// Besides, the driver writes to places and users outside of turns, carries files, fetches
// attachments, and finds topics, groups and users by their names.
//
// Promises to the platform: an update is confirmed only after Inbox.Receive returned; no
// more calls are made than the published limits allow, and none while the platform asked
// to wait. Promises to users: nothing is lost because of how it was written; what the
// platform refuses with styles is sent again without; calls of one chat keep their order;
// an answer that cannot be sent because the platform is out of reach, refuses the token or
// asks for a long wait fails as core.ErrAway, to be sent later.
//
// It does not decide whether a message is answered, and it keeps no history. Calls are in
// package botapi, styles in package markup. The rest is larger than other packages: what
// comes in and what goes out share what is known about chats, accounts and buttons.
package telegram
