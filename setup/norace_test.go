//go:build !race

package setup

// raced says that the race detector watches.
const raced = false
