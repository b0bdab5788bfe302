// Package pairing keeps unknown users out of private chats until an admin lets them in. Who
// writes for the first time gets a code, and an admin confirms it in chat (/pair CODE), on
// the terminal (synthbot pair CODE) or on the page. Messages of unknown users are stored
// without their content.
//
// # What is kept
//
// Under a user's path, key "paired": when they were let in, and by whom. Under the plugin's
// own path, key "code " + hash of a code: whose it is, and until when.
package pairing
