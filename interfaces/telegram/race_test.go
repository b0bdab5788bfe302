//go:build race

package telegram

// watched tells that the race detector is on, which takes ten times as long.
const watched = true
