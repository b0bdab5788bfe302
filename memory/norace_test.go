//go:build !race

package memory

// watched tells that the race detector is on, which takes ten times as long.
const watched = false
