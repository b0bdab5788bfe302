//go:build !race

package telegram

// raceEnabled reports whether the race detector is on, which makes tests ten times slower.
const raceEnabled = false
