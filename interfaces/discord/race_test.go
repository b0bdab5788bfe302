//go:build race

package discord

// raceEnabled says that everything takes ten times as long.
const raceEnabled = true
