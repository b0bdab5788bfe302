// Package pairing keeps unknown people out of private chats until an admin lets
// them in: who writes for the first time is told a code, and an admin confirms
// it in chat (/pair CODE), on the terminal (synthbot pair CODE) or on the page.
// Of what an unknown person says nothing is kept but that he was there.
//
// # What is kept
//
// Under a person's path, key "paired": when he was let in, and by whom. Under the
// plugin's own path, key "code "+hash of a code: whose it is, and until when.
package pairing
