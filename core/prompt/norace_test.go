//go:build !race

package prompt

const raced = false
