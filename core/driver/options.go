package driver

// OrNone returns f, or a function that returns nothing if f is nil.
func OrNone[T any](f func() []T) func() []T {
	if f == nil {
		return func() []T { return nil }
	}
	return f
}
