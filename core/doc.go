// Package core defines the vocabulary of synthbot: paths, messages, actions, plans,
// and the contracts that interfaces, plugins, engines and stores fulfil.
//
// It does no I/O, starts no goroutine and imports only packages llm and passage. It never names a platform: an
// interface describes what it can do by its actions and by the small optional interfaces of this package.
package core
