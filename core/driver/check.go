package driver

import "fmt"

// FirstFault returns the first fault that a check of a configuration reports, as an error that begins with its key.
func FirstFault(check func(fault func(text string, at ...any))) (first error) {
	check(func(text string, at ...any) {
		if first == nil {
			first = fmt.Errorf("%v: %s", at[0], text)
		}
	})
	return first
}

// OrNone returns f, or a function that returns nothing if f is nil.
func OrNone[T any](f func() []T) func() []T {
	if f == nil {
		return func() []T { return nil }
	}
	return f
}
