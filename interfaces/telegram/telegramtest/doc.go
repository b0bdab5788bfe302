// Package telegramtest is a Bot API server on the loopback, as strict as the
// platform, for tests: limits of texts and buttons, HTML entities, topics,
// replies, offsets of getUpdates, one reader at a time, rate limits, migrations,
// files, webhooks, and failures on demand. It keeps the messages of each chat, so
// that a test sees them as a user would.
//
// It is not the platform: nothing is kept on disk, and of each method it knows
// what a chat bot uses. Only tests import it.
package telegramtest
