// Package botapi speaks Telegram's Bot API: it makes calls within the rate limits,
// repeats what may be repeated, and takes updates in by polling or from a webhook.
//
// The library go-telegram-bot-api builds requests and reads answers; nothing else of it
// is used, and its types do not leave this package. Its traps, each worked around where
// the name is found:
//
//   - Errors of the network hold the address, and so the token: wire.broken.
//   - Calls have no context: Client.Call.
//   - The status is lost if an answer is not JSON, and of uploads in any case: wire.refused.
//   - Answers may have any size, and redirects would carry the token along: wire.Do, New.
//   - Its polling outlives its end, and stops at an update that it cannot read: Client.Poll.
//   - Its webhook checks no secret, and blocks: Client.Serve.
//   - The address of a file holds the token: Client.File.
//   - Its parameters end at version 6 of the Bot API: Params are plain texts.
//
// It does not know what updates mean, or what a place is.
package botapi
