// Package telegramtest is a local Bot API server for tests. It is as strict as Telegram about texts, buttons, HTML
// entities, topics, replies, offsets and concurrent calls of getUpdates, rate limits, migrations, files and webhooks.
// It can fail requests on demand. It keeps the messages of each chat, so that a test sees them as a user would.
//
// It stores nothing on disk, and implements only what a chat bot uses of each method. Only tests import it.
package telegramtest
