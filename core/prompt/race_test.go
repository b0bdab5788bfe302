//go:build race

package prompt

const raced = true
