//go:build race

package discord

// raceDetector says that everything takes ten times as long.
const raceDetector = true
