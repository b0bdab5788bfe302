package prompt

// WindowStart returns the number of the entry after which a place's history begins in a prompt; last is the number of
// the newest entry. The history holds between n and 2n entries of the log (all of them while there are fewer). Its
// beginning moves once every n entries, so that consecutive prompts share it.
func WindowStart(last uint64, n int) uint64 {
	if n <= 0 {
		return last
	}
	steps := last / uint64(n)
	return (max(steps, 1) - 1) * uint64(n)
}
