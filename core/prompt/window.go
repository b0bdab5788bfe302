package prompt

// WindowStart is the number of the entry after which a place's window begins, when last is its newest entry. The
// window holds between n and 2n entries of the log (all of them while there are fewer) and its beginning moves once
// every n entries, so that consecutive prompts share it.
func WindowStart(last uint64, n int) uint64 {
	if n <= 0 {
		return last
	}
	steps := last / uint64(n)
	return (max(steps, 1) - 1) * uint64(n)
}
